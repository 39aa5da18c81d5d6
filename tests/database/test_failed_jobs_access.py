"""What the `failed_jobs` collector may read, by which names, and what it never tells."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from exporter.demo.postgres import Postgres
from exporter.logs import Line, Secrets
from exporter.queues import OTHER
from exporter.sources.database.failed_jobs import SLOWER

from ..patience import until
from ..world import HandClock, poll, state, states, value, watched
from .failures import Db, counted, create, fail, insert, kept, payload, shown
from .test_jobs_names import encoded
from .test_standby import Pair, pair

__all__ = ["pair"]  # the fixture

DEFAULT = ("database", "default")


@pytest.fixture
def role(dsn: str, db: Db) -> Iterator[str]:
    """A role that may read the jobs table and nothing else; dropped at the end."""
    name = f"failure_watcher_of_{db.info.dbname}"
    db.execute(f"CREATE ROLE {name} LOGIN; GRANT SELECT ON jobs TO {name}; GRANT pg_monitor TO {name}".encode())
    yield name
    db.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def as_role(dsn: str, role: str) -> str:
    return dsn.replace("postgres@", f"{role}@")


def test_without_the_right_failed_jobs_alone_fails(dsn: str, db: Db, role: str) -> None:
    """Case 20. A role that may not read the table gives `permission`, no zero, and the others go on."""
    create(db)
    with watched(as_role(dsn, role), queues={"default": None}, cache=None) as app:
        poll(app)
        assert state(app, "failed_jobs").reason == "permission"
        assert state(app, "failed_jobs").error == "permission denied for table failed_jobs"
        assert [name for name, state in states(app).items() if not state.up] == ["failed_jobs"]
        assert value(app, "failed_jobs", queue="default") is None
        db.execute(f"GRANT SELECT ON failed_jobs TO {role}".encode())
        poll(app, "failed_jobs")
        assert value(app, "failed_jobs", queue="default") == 0


@pytest.mark.parametrize(
    ("columns", "job_class"), [("id, connection, queue, payload", "A"), ("id, connection, queue", OTHER)]
)
def test_a_few_columns_are_enough(dsn: str, db: Db, role: str, columns: str, job_class: str) -> None:
    """SELECT on three columns is enough to count, and with the payload by class; nobody has to show us exceptions."""
    create(db)
    db.execute(f"GRANT SELECT ({columns}) ON failed_jobs TO {role}".encode())
    with watched(as_role(dsn, role)) as app:
        poll(app, "failed_jobs")
        fail(db, "A")
        poll(app, "failed_jobs")
        assert counted(app) == {(*DEFAULT, job_class): 1}
        assert bool(state(app, "failed_jobs").notes) == (job_class == OTHER)


def test_rows_hidden_by_a_policy_are_no_zero(dsn: str, db: Db, role: str) -> None:
    """Where row-level security would hide rows from the role, `failed_jobs` fails by `permission`."""
    create(db)
    db.execute(f"GRANT SELECT ON failed_jobs TO {role}; ALTER TABLE failed_jobs ENABLE ROW LEVEL SECURITY".encode())
    with watched(as_role(dsn, role), queues={"default": None}) as app:
        poll(app, "failed_jobs")
        assert state(app, "failed_jobs").reason == "permission"
        assert kept(app) == {}


def test_case_24_the_table_of_the_settings_and_no_other(dsn: str, db: Db) -> None:
    """Case 24. Whatever the search_path holds, the configured table is read, with PostgreSQL's own operators."""
    create(db)
    db.execute("""
        CREATE SCHEMA tenant_a; CREATE SCHEMA evil;
        CREATE TABLE tenant_a.failed_jobs (LIKE public.failed_jobs INCLUDING ALL);
        CREATE FUNCTION evil.trap() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
        CREATE VIEW evil.failed_jobs AS SELECT 1::bigint AS id, evil.trap() AS connection, evil.trap() AS queue;
        CREATE FUNCTION evil."left"(text, integer) RETURNS text LANGUAGE sql AS $$ SELECT evil.trap() $$;
        CREATE FUNCTION evil.same(bigint, integer) RETURNS bool LANGUAGE sql AS $$ SELECT evil.trap() IS NULL $$;
        CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.same);
        CREATE OPERATOR evil.- (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.same);
    """)
    fail(db, *"AAA")
    db.execute(f"ALTER DATABASE {db.info.dbname} SET search_path = evil, pg_catalog, public".encode())
    with watched(dsn, schema="tenant_a") as app:
        poll(app, "failed_jobs")
        db.execute(
            "INSERT INTO tenant_a.failed_jobs (id, uuid, connection, queue, payload, exception)"
            " VALUES (7, '7', 'database', 'default', '{}', '')"
        )
        poll(app, "failed_jobs")
        assert counted(app) == {(*DEFAULT, OTHER): 1}


def test_case_29_any_name(dsn: str, db: Db) -> None:
    """Case 29. Names of connections and queues come back from Prometheus's parser as they are, even with no letter."""
    create(db)
    names = ('a"b\\c\nd\\ne', "", " mail ", "очередь-🚀", "{job}", "'; DROP TABLE failed_jobs; --", "q" * 255, "other")
    insert(db, [(name, name, payload("App\\Jobs\\A")) for name in names])
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        for name in names:
            assert value(app, "failed_jobs", connection=name, queue=name) == 1
            assert value(app, "failed_jobs_total", connection=name, queue=name, job_class="App\\Jobs\\A") == 0


def test_case_27_bytes_that_are_no_text(server: Postgres) -> None:
    """Case 27. In SQL_ASCII bad bytes are replaced, names that look alike then are one, and good letters stay."""
    with encoded(server, "SQL_ASCII") as (dsn, db):
        create(db)
        with watched(dsn) as app:
            poll(app, "failed_jobs")
            for number, name in enumerate((rb"\xff\xfeA", rb"\xfe\xffA", "очередь".encode())):
                text = payload("App\\Jobs\\Été").encode().replace(b"\\", b"\\\\")
                db.execute(
                    b"INSERT INTO failed_jobs (uuid, connection, queue, payload, exception)"
                    b" VALUES ('%d', E'%b', E'%b', E'%b', E'\\xff')" % (number, name, name, text)
                )
            poll(app, "failed_jobs")
            odd = "\ufffd\ufffdA"
            assert counted(app) == {(odd, odd, "Été"): 2, ("очередь", "очередь", "Été"): 1}


CARD, PASSWORD = "4111-1111-1111-1111", "hunter2"
LEAKING = payload("App\\Jobs\\A", command=f'O:10:"App\\Jobs\\A":1:{{s:4:"card";s:19:"{CARD}";}}')


@pytest.mark.parametrize(
    "change",
    [
        "SELECT 1",
        "ALTER TABLE failed_jobs ALTER payload TYPE json USING payload::json",
        "ALTER TABLE failed_jobs ALTER payload TYPE bytea USING convert_to(payload, 'UTF8')",
        "ALTER TABLE failed_jobs DROP connection",
    ],
)
def test_case_19_nothing_of_a_job_but_its_name_is_told(
    dsn: str, db: Db, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 19. What is in payloads and exceptions is on no page and in no log, whether the question succeeds or not."""
    caplog.set_level(logging.DEBUG)
    create(db)
    db.execute(f"ALTER TABLE failed_jobs ALTER exception SET DEFAULT 'password={PASSWORD}'".encode())
    with watched(dsn, queues={"default": None}) as app:
        for _ in range(2):
            db.execute(
                "INSERT INTO failed_jobs (uuid, connection, queue, payload)"
                " VALUES (gen_random_uuid(), 'database', 'default', %s)",
                [LEAKING],
            )
            poll(app, "failed_jobs")
        db.execute(change.encode())
        poll(app)
        told = [Line("logfmt", Secrets()).format(record) for record in caplog.records]
        told += [state(app, "failed_jobs").error, app.exposition.page("text").decode()]
        assert "failed_jobs" in told[0]
        assert not [text for text in told for secret in (CARD, PASSWORD) if secret in text]


def test_case_22_a_standby_is_read_and_withheld(pair: Pair) -> None:
    """Case 22. A standby's rows are counted like a primary's; too far behind they are withheld, and none is lost."""
    create(pair.primary)
    pair.catch_up()
    hand = HandClock()
    with watched(pair.dsn, hand.clock, interval="200ms", queues={"default": None}) as app:
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 0}
        pair.standby.execute("SELECT pg_wal_replay_pause()")
        fail(pair.primary, "A")

        def withheld() -> bool:
            poll(app, "failed_jobs")
            return "behind its primary" in "".join(state(app, "failed_jobs").notes)

        until(withheld)
        assert value(app, "failed_jobs", queue="default") is None
        hand.pass_(SLOWER)  # time to count, but not there
        assert withheld()
        pair.standby.execute("SELECT pg_wal_replay_resume()")
        pair.catch_up()
        until(lambda: not withheld())
        assert kept(app) == {DEFAULT: 1}
        assert counted(app) == {(*DEFAULT, "A"): 1}
        assert shown(app)[*DEFAULT, OTHER] == 0
    pair.primary.execute("DROP TABLE failed_jobs")
