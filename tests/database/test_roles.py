"""What the exporter's role may, and what it must never use."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import psycopg
import pytest

from exporter.demo.postgres import Postgres
from exporter.sources.database.questions import message, names
from exporter.sources.database.session import APPLICATION_NAME

from ..patience import until
from ..world import HandClock, add_jobs, database_of, poll, series, settings, state, states, value, watched
from .onlooker import Db, terminate

Pair = tuple[str, str]


@pytest.fixture
def role(server: Postgres, dsn: str, db: Db) -> Iterator[str]:
    """A role that may log in and nothing else; dropped at the end. Reach it with `as_role`."""
    name = f"watcher_of_{db.info.dbname}"
    db.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 3".encode())
    yield name
    db.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def as_role(dsn: str, role: str) -> str:
    return dsn.replace("postgres@", f"{role}@")


def test_the_least_privileged_role(dsn: str, db: Db, role: str) -> None:
    """SELECT on the tables, pg_monitor, three connections and a statement_timeout are all that is needed."""
    db.execute(f"GRANT SELECT ON jobs, failed_jobs, cache TO {role}; GRANT pg_monitor TO {role}".encode())
    db.execute(f"ALTER ROLE {role} SET statement_timeout = '2s'".encode())
    add_jobs(db, ("default", None, 0))
    with watched(as_role(dsn, role)) as watching:
        poll(watching)
        assert {state.error for state in states(watching).values()} == {""}
        assert {note for state in states(watching).values() for note in state.notes} == set()
        assert value(watching, "jobs", queue="default", state="ready") == 1
        assert value(watching, "database_connections", pool="other", state="idle") is not None


def test_without_select_those_that_read_rows_fail(dsn: str, db: Db, role: str) -> None:
    """A role without SELECT on the table gives `permission` for who reads its rows, and heals with the grant."""
    with watched(as_role(dsn, role), failed_table=None, cache=None) as watching:
        poll(watching)
        assert state(watching, "jobs").reason == "permission"
        assert state(watching, "jobs").error == "permission denied for table jobs"
        assert [name for name, state in states(watching).items() if not state.up] == ["jobs", "reservations"]
        assert "pg_monitor" in state(watching, "activity").notes[0]
        assert value(watching, "database_connections", pool="other", state="idle") is None
        db.execute(f"GRANT SELECT ON jobs TO {role}".encode())
        poll(watching, "jobs")
        assert state(watching, "jobs").up


@pytest.mark.parametrize("server", ["debian"], indirect=True)
def test_without_usage_of_the_schema(dsn: str, db: Db, role: str) -> None:
    """A role that may not use the schema is `permission` too."""
    db.execute("CREATE SCHEMA tenant_a; CREATE TABLE tenant_a.jobs (LIKE public.jobs)")
    with watched(as_role(dsn, role), schema="tenant_a") as watching:
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "permission"
        assert state(watching, "jobs").error == "permission denied for schema tenant_a"


def test_rows_hidden_by_a_policy_are_no_zero(dsn: str, db: Db, role: str) -> None:
    """Where row-level security would hide jobs from the role, `jobs` fails by `permission` and counts none."""
    db.execute(f"GRANT SELECT ON jobs TO {role}; ALTER TABLE jobs ENABLE ROW LEVEL SECURITY".encode())
    add_jobs(db, ("default", None, 0))
    with watched(as_role(dsn, role), queues={"default": None}) as watching:
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "permission"
        assert "row-level security" in state(watching, "jobs").error
        assert value(watching, "jobs", state="ready") is None


def test_only_the_catalogue_and_the_table_are_used(dsn: str, db: Db, role: str) -> None:
    """Case 24. A search_path with `now()`, operators and views of others in it changes nothing of what is asked."""
    db.execute(
        f"""
        CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO {role};
        CREATE FUNCTION evil.trap() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
        CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT evil.trap()::timestamptz $$;
        CREATE FUNCTION evil.set_config(text, text, bool) RETURNS text LANGUAGE sql AS $$ SELECT evil.trap() $$;
        CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT evil.trap() $$;
        CREATE FUNCTION evil.differs(int, bigint) RETURNS bool LANGUAGE sql AS $$ SELECT evil.trap() IS NULL $$;
        CREATE OPERATOR evil.<= (LEFTARG = int, RIGHTARG = bigint, FUNCTION = evil.differs);
        CREATE OPERATOR evil.> (LEFTARG = int, RIGHTARG = bigint, FUNCTION = evil.differs);
        CREATE VIEW evil.jobs AS SELECT evil.trap() AS queue;
        CREATE VIEW evil.pg_class AS SELECT evil.trap()::oid AS oid;
        CREATE VIEW evil.pg_stat_activity AS SELECT evil.trap() AS state;
        ALTER ROLE {role} SET search_path = evil, pg_catalog, public;
        GRANT SELECT ON jobs, failed_jobs, cache TO {role}; GRANT pg_monitor TO {role};
    """.encode()
    )
    add_jobs(db, ("default", None, 30), ("default", 95, 400))
    with psycopg.connect(as_role(dsn, role)) as trapped, pytest.raises(psycopg.Error, match="trapped"):
        trapped.execute("SELECT now()")
    with watched(as_role(dsn, role)) as watching:
        poll(watching)
        assert {state.error for state in states(watching).values()} == {""}
        assert value(watching, "jobs", queue="default", state="ready") == 1
        assert value(watching, "jobs", queue="default", state="expired") == 1


LIMITS = """
CREATE VIEW limits AS
SELECT name || ' = ' || current_setting(name) AS queue,
       0 AS id, 0 AS attempts, 0 AS available_at, NULL::int AS reserved_at
  FROM unnest(ARRAY['statement_timeout', 'lock_timeout', 'transaction_read_only', 'transaction_isolation',
                    'max_parallel_workers_per_gather', 'jit', 'search_path']) AS name
"""


@pytest.mark.parametrize("server", ["wheel"], indirect=True)
@pytest.mark.parametrize(
    ("timeouts", "in_force"),
    [
        (("0", "0"), ("900ms", "200ms")),
        (("1h", "2min"), ("900ms", "200ms")),
        (("500ms", "50ms"), ("500ms", "50ms")),
    ],
)
def test_limits_in_force(dsn: str, db: Db, role: str, timeouts: Pair, in_force: Pair) -> None:
    """While a question runs, each time limit is the tighter one of the role's and ours; it reads only, on one core."""
    db.execute(LIMITS)
    db.execute(
        f"""
        GRANT SELECT ON limits TO {role};
        ALTER ROLE {role} SET statement_timeout = '{timeouts[0]}';
        ALTER ROLE {role} SET lock_timeout = '{timeouts[1]}';
        ALTER ROLE {role} SET default_transaction_isolation = 'serializable';
    """.encode()
    )
    with watched(as_role(dsn, role), HandClock().clock, table="limits", timeout="1s") as watching:
        poll(watching, "jobs")
        queues = {dict(labels).get("queue") for _, labels in series(watching.exposition.page("text"))}
        assert queues - {None} == {
            f"statement_timeout = {in_force[0]}",
            f"lock_timeout = {in_force[1]}",
            "transaction_read_only = on",
            "transaction_isolation = read committed",
            "max_parallel_workers_per_gather = 0",
            "jit = off",
            "search_path = pg_catalog, pg_temp",
        }


@pytest.mark.parametrize("server", ["debian"], indirect=True)
def test_case_9_too_many_rows_for_the_role(dsn: str, db: Db, role: str) -> None:
    """Case 9. If counting takes longer than the role may, there is no number but a line with the limit and the indexes
    that would help; these, pasted as they stand, make it exact."""
    db.execute(f"ALTER ROLE {role} SET statement_timeout = '30ms'; GRANT SELECT ON jobs TO {role}".encode())
    db.execute("""
        INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)
        SELECT 'queue ' || n % 40, repeat('x', 100), 0, CASE n % 3 WHEN 0 THEN now END, now - n % 2, now
          FROM generate_series(1, 200000) AS n, (SELECT extract(epoch FROM now())::int AS now) AS clock
    """)
    with watched(as_role(dsn, role)) as watching:

        def advice() -> list[str]:
            poll(watching, "jobs")
            return state(watching, "jobs").error.split("; ")[1:]

        limit, *indexes = until(advice)  # on a busy machine even a smaller question may take too long
        assert limit == "it may take 30ms, the lower of the setting `timeout` and the role's statement_timeout"
        assert state(watching, "jobs").reason == "timeout"
        assert value(watching, "jobs", queue="queue 1", state="ready") is None
        for index in indexes:
            db.execute(index.removeprefix("with two indexes it takes far less: ").encode())
        db.execute(f"ALTER ROLE {role} SET statement_timeout = '2s'".encode())
        db.execute("VACUUM ANALYZE jobs")
        terminate(db)
        poll(watching, "jobs")
        assert state(watching, "jobs").error == ""
        ready = db.execute("SELECT count(*) FROM jobs WHERE queue = 'queue 1' AND reserved_at IS NULL").fetchall()[0][0]
        assert value(watching, "jobs", queue="queue 1", state="ready") == ready


SLOW = {
    "a view": "CREATE VIEW slow AS SELECT * FROM jobs WHERE pg_sleep(9) IS NOT NULL",
    "a partitioned table": """
        CREATE TABLE slow (LIKE jobs) PARTITION BY LIST (queue);
        CREATE TABLE slow_parts PARTITION OF slow DEFAULT;
        INSERT INTO slow SELECT n, 'default', '', 0, NULL, 1, 1 FROM generate_series(1, 300000) AS n
    """,
}


@pytest.mark.parametrize("kind", SLOW)
def test_indexes_are_advised_for_a_plain_table_only(dsn18: str, db18: Db, kind: str) -> None:
    """Nobody is told to create indexes by a statement that would fail: on a view, or on a partitioned table."""
    add_jobs(db18, ("default", None, 0))
    db18.execute(SLOW[kind].encode())
    db18.execute(f"ALTER DATABASE {db18.info.dbname} SET statement_timeout = '20ms'".encode())
    with watched(dsn18, table="slow") as watching:

        def error() -> str:
            poll(watching, "jobs")
            return state(watching, "jobs").error if "it may take" in state(watching, "jobs").error else ""

        assert until(error).endswith("the lower of the setting `timeout` and the role's statement_timeout")


def test_a_question_that_somebody_cancelled_took_not_too_long(dsn18: str, db18: Db) -> None:
    """After pg_cancel_backend the message is the server's own, without advice about time limits or indexes."""
    db18.execute("INSERT INTO jobs SELECT n, 'default', '', 0, NULL, 1, 1 FROM generate_series(1, 1000000) AS n")
    with watched(dsn18, timeout="20s") as watching:
        polling = Thread(target=poll, args=(watching, "jobs"))
        polling.start()
        cancel = (
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'active' AND application_name = %s AND clock_timestamp() - query_start > '50ms'"
        )
        until(lambda: db18.execute(cancel, [APPLICATION_NAME]).fetchall())
        polling.join()
        assert state(watching, "jobs").reason == "timeout"
        assert state(watching, "jobs").error == "canceling statement due to user request"


def test_a_last_moment_is_not_without_limit() -> None:
    """When hardly any time is left the server's limits are a millisecond, and not 0, which would be none at all."""
    text = message("sizes", names(database_of(settings("host=db"))), 0.0001).as_string()
    assert text.count(" 1)::bigint::text, true)") == 2
