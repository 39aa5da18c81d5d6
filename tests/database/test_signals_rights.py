"""The `signals` collector and its surroundings: rights, a view, schemas, encodings, a pooler, a standby."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from exporter.demo.postgres import Postgres

from ..patience import until
from ..world import poll, state, value, watched
from .cached import PAUSED, RESTART, VIEW, create_cache, put, restart
from .test_jobs_names import encoded
from .test_pgbouncer import pgbouncer
from .test_standby import Pair, pair

__all__ = ["pair"]  # a fixture

Db = psycopg.Connection[Any]

QUEUES: dict[str, Any] = {"default": {}, "mail": {}}
SECRET = "laravel_cache_session:1"


@pytest.fixture
def cache(db: Db) -> Db:
    """A database with a signal, a paused queue, and something that is nobody's business in its cache."""
    create_cache(db)
    put(db, RESTART, "i:1796058608;")
    put(db, PAUSED.format(queue="mail"), "b:1;")
    put(db, SECRET, "s3cret")
    return db


@pytest.fixture
def role(cache: Db) -> Iterator[str]:
    """A role with pg_monitor that may read the jobs, and nothing else."""
    cache.execute("CREATE ROLE queue_signals_reader LOGIN; GRANT pg_monitor TO queue_signals_reader")
    cache.execute("GRANT SELECT ON jobs TO queue_signals_reader")
    yield "queue_signals_reader"
    cache.execute("DROP OWNED BY queue_signals_reader; DROP ROLE queue_signals_reader")


def as_role(dsn: str, role: str) -> str:
    return dsn.replace("postgres@", f"{role}@")


@pytest.mark.parametrize("server", ["wheel"], indirect=True)
def test_without_select_signals_alone_fails(dsn: str, cache: Db, role: str) -> None:
    """A role that may not read the cache gives `permission` for `signals` alone; it heals with the grant."""
    with watched(as_role(dsn, role), queues=QUEUES) as app:
        poll(app)
        assert state(app, "signals").reason == "permission"
        assert state(app, "signals").error == "permission denied for table cache"
        assert state(app, "jobs").up
        assert value(app, "paused", queue="default") is None
        cache.execute(f"GRANT SELECT ON cache TO {role}".encode())
        poll(app, "signals")
        assert value(app, "paused", queue="mail") == 1


def test_a_view_may_be_granted_instead(dsn: str, cache: Db, role: str) -> None:
    """With the view alone the role gets all that it needs, and no other key of the cache by any means."""
    cache.execute(f"{VIEW}; GRANT SELECT ON queue_signals TO {role}".encode())
    with watched(as_role(dsn, role), queues=QUEUES, cache={"table": "queue_signals"}) as app:
        poll(app, "signals")
        assert state(app, "signals").error == ""
        assert [value(app, "paused", queue=queue) for queue in QUEUES] == [0, 1]
        assert value(app, "restart_signal_timestamp_seconds") == 1_796_058_608
    with psycopg.connect(as_role(dsn, role), autocommit=True) as limited:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            limited.execute("SELECT * FROM cache")
        assert SECRET not in tempted(limited)


def tempted(limited: Db) -> set[str]:
    """The keys that a function of one's own gets to see when it is cheaper than the view's own condition."""
    seen: set[str] = set()
    limited.add_notice_handler(lambda notice: seen.add(notice.message_primary or ""))
    limited.execute("""
        CREATE FUNCTION pg_temp.peep(key text) RETURNS bool COST 0.0001 LANGUAGE plpgsql AS
        $$ BEGIN RAISE NOTICE '%', key; RETURN true; END $$
    """)
    limited.execute("SELECT * FROM queue_signals WHERE pg_temp.peep(key)")
    assert RESTART in seen
    return seen


@pytest.mark.parametrize("server", ["wheel"], indirect=True)
def test_an_open_view_would_leak(dsn: str, cache: Db, role: str) -> None:
    """Without security_barrier the same function sees every key: that is why the view has it."""
    cache.execute(VIEW.replace("WITH (security_barrier) ", "").encode())
    cache.execute(f"GRANT SELECT ON queue_signals TO {role}".encode())
    with psycopg.connect(as_role(dsn, role), autocommit=True) as limited:
        assert SECRET in tempted(limited)


def test_case_24_the_schema_in_the_settings(dsn: str, cache: Db) -> None:
    """Case 24: the cache of the configured schema is read, whatever the search_path would put in front."""
    cache.execute("CREATE SCHEMA tenant_a; CREATE TABLE tenant_a.jobs (LIKE public.jobs); CREATE SCHEMA evil")
    create_cache(cache, table="tenant_a.cache")
    put(cache, RESTART, "i:1796058699;", table="tenant_a.cache")
    put(cache, PAUSED.format(queue="default"), "b:1;", table="tenant_a.cache")
    cache.execute("CREATE VIEW evil.cache AS SELECT * FROM public.cache WHERE false")
    cache.execute("CREATE VIEW evil.pg_stat_activity AS SELECT 1 AS pid")
    cache.execute("CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$")
    cache.execute("CREATE FUNCTION evil.left(text, int) RETURNS text LANGUAGE sql AS $$ SELECT 'i:1234567890;' $$")
    cache.execute("CREATE FUNCTION evil.none(bigint, bigint) RETURNS bool LANGUAGE sql AS $$ SELECT false $$")
    cache.execute("CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.none)")
    cache.execute(f"ALTER DATABASE {cache.info.dbname} SET search_path = evil, pg_catalog, public".encode())
    with watched(dsn, schema="tenant_a", queues=QUEUES) as app:
        poll(app)
        assert state(app, "signals").error == ""
        assert value(app, "restart_signal_timestamp_seconds") == 1_796_058_699
        assert [value(app, "paused", queue=queue) for queue in QUEUES] == [1, 0]


def test_a_cache_in_another_schema_is_none(dsn18: str, db18: Db) -> None:
    """The cache is looked for in the schema of the settings, and in no other."""
    db18.execute("DROP TABLE IF EXISTS cache; CREATE SCHEMA elsewhere")
    create_cache(db18, table="elsewhere.cache")
    db18.execute(f"ALTER DATABASE {db18.info.dbname} SET search_path = elsewhere, public".encode())
    with watched(dsn18, queues=QUEUES) as app:
        poll(app, "signals")
        assert state(app, "signals").reason == "undefined_table"


def test_case_27_bytes_that_are_no_text(server: Postgres) -> None:
    """Case 27: in SQL_ASCII good names are found by their keys; of a name that is no text no pause is known."""
    with encoded(server, "SQL_ASCII") as (dsn, db):
        create_cache(db)
        for name in (rb"\xff\xfeA", "очередь-🚀".encode()):
            db.execute(
                b"INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (E'%b', '', 0, 0, 0)"
                % name
            )
            key = PAUSED.format(queue="").encode() + name
            db.execute(b"INSERT INTO cache VALUES (E'%b', 'b:1;', 2000000000), (E'\\xff%b', E'\\xff', 0)" % (key, key))
        put(db, RESTART, "i:1796058608;")
        with watched(dsn) as app:
            poll(app)
            assert state(app, "signals").error == ""
            assert value(app, "paused", queue="очередь-🚀") == 1
            assert value(app, "paused", queue="\ufffd\ufffdA") is None
            assert value(app, "jobs", queue="\ufffd\ufffdA", state="ready") == 1
            assert value(app, "restart_signal_timestamp_seconds") == 1_796_058_608


def test_case_15_behind_pgbouncer(dsn18: str, db18: Db, postgres18: Postgres) -> None:
    """Case 15: through one server connection shared with others all is read, and nothing that we set is left in it."""
    create_cache(db18)
    put(db18, PAUSED.format(queue="mail"), "b:1;")
    worker = psycopg.connect(dsn18, application_name="worker-1")
    pools = {"default": {"application_name": "worker-*", "queues": ["default"]}}
    with pgbouncer(postgres18.port) as port, worker:
        pooled = f"postgresql://postgres@127.0.0.1:{port}/{db18.info.dbname}"
        with watched(pooled, queues=QUEUES, pools=pools) as app, psycopg.connect(pooled, autocommit=True) as second:
            second.prepare_threshold = None
            for _ in range(3):
                poll(app, "signals")
                assert second.execute("SHOW enable_seqscan").fetchone() == ("on",)
            assert state(app, "signals").errors == {}
            assert [value(app, "paused", queue=queue) for queue in QUEUES] == [0, 1]
            restart(db18)
            poll(app, "signals")
            assert value(app, "workers_outdated", pool="default") == 1


@pytest.mark.parametrize("server", ["wheel"], indirect=True)
def test_case_22_a_standby(pair: Pair) -> None:
    """Case 22: a standby tells signals and pauses while it keeps up, but nothing of workers: they are elsewhere."""
    create_cache(pair.primary)
    signal = restart(pair.primary)
    put(pair.primary, PAUSED.format(queue="mail"), "b:1;")
    pair.catch_up()
    pools = {"default": {"application_name": "*", "queues": ["default"]}}
    with watched(pair.dsn, queues=QUEUES, pools=pools, interval="200ms") as app:
        poll(app, "signals")
        assert state(app, "signals").error == ""
        assert value(app, "restart_signal_timestamp_seconds") == signal
        assert [value(app, "paused", queue=queue) for queue in QUEUES] == [0, 1]
        assert value(app, "workers_outdated", pool="default") is None
        pair.standby.execute("SELECT pg_wal_replay_pause()")
        later = restart(pair.primary, ahead=60)

        def withheld() -> bool:
            poll(app, "signals")
            return value(app, "paused", queue="mail") is None

        until(withheld)
        assert "behind its primary" in state(app, "signals").notes[0]
        assert value(app, "restart_signal_timestamp_seconds") is None
        pair.standby.execute("SELECT pg_wal_replay_resume()")
        until(lambda: not withheld())
        assert value(app, "restart_signal_timestamp_seconds") == later
    pair.primary.execute("DROP TABLE cache")
