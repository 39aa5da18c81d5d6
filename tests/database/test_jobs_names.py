"""The `jobs` collector and names: of schemas, tables, queues and connections, in any spelling and encoding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from exporter import app as exporter
from exporter import config
from exporter.demo.postgres import Postgres
from exporter.errors import ConfigError

from ..world import add_jobs, create_jobs, poll, series, state, states, value, watched

Db = psycopg.Connection[Any]

ODD = (
    "Jobs", "app_jobs", "jobs queue", "a.b", "a'b", 'a"b', "a%sb%", "a{jobs}b", "\\", "select", "очередь-🚀", "x" * 63,
)  # fmt: skip


def test_any_name_of_a_schema_and_a_table(dsn: str, db: Db) -> None:
    """Quoted, mixed-case, prefixed and stranger names of schemas and tables are used as they are written."""
    for name in ODD:
        quoted = sql.Identifier(name, name).as_string(db)
        db.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        create_jobs(db, quoted)
        add_jobs(db, ("default", None, 5), table=quoted.replace("%", "%%"))
        with watched(dsn, schema=name, table=name) as app:
            poll(app)
            assert value(app, "jobs", queue="default", state="ready") == 1
            assert value(app, "table_autovacuum_enabled", table=name) == 1
            assert value(app, "table_size_bytes", table=name, part="heap") == 8192


def test_case_24_the_schema_in_the_settings(dsn: str, db: Db) -> None:
    """Case 24: the table of the configured schema is read, whatever the role's search_path would put in front."""
    db.execute("CREATE SCHEMA tenant_a; CREATE SCHEMA evil")
    create_jobs(db, "tenant_a.jobs")
    add_jobs(db, *[("default", None, 5)] * 3)
    add_jobs(db, *[("default", None, 5)] * 7, table="tenant_a.jobs")
    db.execute("CREATE VIEW evil.jobs AS SELECT * FROM public.jobs WHERE false")
    db.execute("CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$")
    db.execute("CREATE FUNCTION evil.same(integer, bigint) RETURNS bool LANGUAGE sql AS $$ SELECT true $$")
    db.execute("CREATE OPERATOR evil.> (LEFTARG = integer, RIGHTARG = bigint, FUNCTION = evil.same)")
    db.execute(f"ALTER DATABASE {db.info.dbname} SET search_path = evil, pg_catalog, public")
    with watched(dsn, schema="tenant_a") as app:
        poll(app)
        assert value(app, "jobs", queue="default", state="ready") == 7
        assert value(app, "jobs", queue="default", state="delayed") == 0
        assert value(app, "oldest_job_age_seconds", queue="default") in (5, 6)


def test_case_25_a_table_that_comes_later(dsn: str, db: Db) -> None:
    """Case 25: without its table `jobs` says undefined_table, the others go on, and it heals when the table comes."""
    with watched(dsn, table="app_jobs", queues={"default": {}}) as app:
        poll(app)
        assert state(app, "jobs").reason == state(app, "reservations").reason == "undefined_table"
        assert state(app, "jobs").error == "there is no table public.app_jobs"
        assert [name for name, state in states(app).items() if not state.up] == ["jobs", "reservations"]
        assert value(app, "jobs", queue="default", state="ready") is None
        assert value(app, "table_live_tuples", table="app_jobs") is None
        create_jobs(db, "app_jobs")
        poll(app)
        assert value(app, "jobs", queue="default", state="ready") == 0
        assert value(app, "table_live_tuples", table="app_jobs") == 0


def test_a_missing_schema(dsn18: str) -> None:
    """A schema that is not there means the same as a table that is not."""
    with watched(dsn18, schema="tenant_a") as app:
        poll(app, "jobs")
        assert state(app, "jobs").reason == "undefined_table"


def test_a_view_stands_in_for_a_table(dsn: str, db: Db) -> None:
    """A view of several tables is counted like a table; it has no statistics and no size, and that is no failure."""
    create_jobs(db, "more_jobs")
    db.execute("CREATE VIEW every_job AS SELECT * FROM jobs UNION ALL SELECT * FROM more_jobs")
    add_jobs(db, ("default", None, 1), ("default", 1, 1))
    add_jobs(db, ("default", None, 9), table="more_jobs")
    with watched(dsn, table="every_job") as app:
        poll(app)
        assert value(app, "jobs", queue="default", state="ready") == 2
        assert value(app, "oldest_job_age_seconds", queue="default") in (9, 10)
        assert all(state.up for state in states(app).values())
        assert value(app, "table_live_tuples") is None
        assert value(app, "table_size_bytes", part="heap") is None
        assert value(app, "database_in_recovery") == 0


def test_queues_whose_names_look_alike(dsn: str, db: Db) -> None:
    """The empty name, 255 characters, spaces at the end, case: each is a queue of its own, shown as it is."""
    names = ("", "q" * 255, "mail", "mail ", " mail", "Mail", "MAIL", "é", "e\u0301")
    add_jobs(db, *[(name, None, -5) for name in names for _ in range(names.index(name) + 1)])
    with watched(dsn, queues={"mail ": {"retry_after": 7}}) as app:
        poll(app, "jobs")
        for count, name in enumerate(names, start=1):
            assert value(app, "jobs", queue=name, state="delayed") == count
            assert value(app, "retry_after_seconds", queue=name) == (7 if name == "mail " else 90)
        assert value(app, "queues") == len(names)


@contextmanager
def encoded(server: Postgres, encoding: str) -> Iterator[tuple[str, Db]]:
    """A database in another encoding than UTF-8, with a jobs table."""
    name = f"test_{encoding.lower()}"
    with psycopg.connect(server.dsn(), autocommit=True) as main:
        main.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        try:
            with psycopg.connect(server.dsn(name), autocommit=True) as db:
                create_jobs(db)
                yield server.dsn(name), db
        finally:
            main.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_case_27_bytes_that_are_no_text(server: Postgres) -> None:
    """Case 27: in SQL_ASCII bad bytes are replaced, names that look alike then are one, good Unicode is unchanged."""
    with encoded(server, "SQL_ASCII") as (dsn, db):
        for name in (rb"\xff\xfeA", rb"\xfe\xffA", "очередь-🚀".encode()):
            db.execute(
                b"INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (E'%b', '', 0, 0, 0)"
                % name
            )
        with watched(dsn, queues={"очередь-🚀": {"retry_after": 5}}, failed_table=None, cache=None) as app:
            poll(app, "jobs")
            assert state(app, "jobs").error == ""
            assert value(app, "jobs", queue="\ufffd\ufffdA", state="ready") == 2
            assert value(app, "jobs", queue="очередь-🚀", state="ready") == 1
            poll(app)
            assert {state.error for state in states(app).values()} == {""}


def test_a_database_in_another_encoding(server: Postgres) -> None:
    """Names in the settings mean the same letters whatever the database stores them as."""
    with encoded(server, "LATIN1") as (dsn, db):
        create_jobs(db, "tâches")
        add_jobs(db, ("été", None, 1), table="tâches")
        with watched(dsn, table="tâches", queues={"été": {"retry_after": 5}}) as app:
            poll(app, "jobs")
            assert value(app, "jobs", queue="été", state="ready") == 1


def test_case_29_quotes_backslashes_and_line_breaks(dsn: str, db: Db) -> None:
    """Case 29: a queue's name comes back from Prometheus's own parser as the same string."""
    name = 'a"b\\c\nd\\ne'
    add_jobs(db, (name, None, 1))
    with watched(dsn) as app:
        poll(app, "jobs")
        assert value(app, "jobs", queue=name, state="ready") == 1


WHERE = ("connections", "connections.database.pools", "connections.database.queues")
NAMES = ('"instance', "__x", "9a", "a\nb", "x" * 255, "x" * 300, "\ud800", "a\0b")


def named(where: str, name: str, dsn: str) -> dict[str, dict[str, Any]]:
    """Connections of which one, or a pool or a queue of one, has this name."""
    database: dict[str, Any] = {"driver": "database", "dsn": dsn}
    if where == "connections":
        return {name: database}
    if where == "connections.database.pools":
        return {"database": database | {"pools": {name: {"application_name": "*", "queues": ["default"]}}}}
    return {"database": database | {"queues": {name: {"retry_after": 60}}}}


@pytest.mark.parametrize("where", WHERE)
def test_case_30_names_in_the_settings(dsn18: str, db18: Db, where: str) -> None:
    """Case 30: the name of a connection, pool or queue is shown exactly or refused with its path."""
    for name in NAMES:
        try:
            app = exporter.build(config.parse({"connections": named(where, name, dsn18)}))
        except ConfigError as error:
            refusal, shown = str(error), False
        else:
            app.poll_once()
            refusal = ""
            shown = name in {label for _, labels in series(app.exposition.page("text")) for _, label in labels}
            assert {turn.state.error for poller in app.pollers for turn in poller.turns} == {""}, name
        assert shown or (refusal.startswith(f"{where}.") and "expected" in refusal), name


def test_a_queue_that_is_no_text_is_a_wrong_type(db: Db, dsn: str) -> None:
    """A view of somebody's own with a null or a number for a queue fails by name, alone, and the page stays whole."""
    for queue in ("NULL::text", "7"):
        db.execute(
            f"CREATE VIEW odd{len(queue)} AS SELECT id, {queue} AS queue, attempts, reserved_at, available_at FROM jobs"
        )
        add_jobs(db, ("default", None, 1))
        with watched(dsn, table=f"odd{len(queue)}") as app:
            assert value(app, "source_up", collector="jobs") == 0
            poll(app)
            assert state(app, "jobs").reason == "wrong_type"
            assert state(app, "activity").up
            assert value(app, "source_errors_total", collector="jobs", reason="wrong_type") == 1
