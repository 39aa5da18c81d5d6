"""The `statistics` collector: what went through the table, dead rows, and when autovacuum comes for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.demo.postgres import Postgres

from ..conftest import debian_postgres
from ..patience import until
from ..world import add_jobs, create_jobs, poll, state, states, value, watched

Db = psycopg.Connection[Any]

COLUMNS = {
    "table_live_tuples": "n_live_tup",
    "table_dead_tuples": "n_dead_tup",
    "table_rows_inserted_total": "n_tup_ins",
    "table_rows_updated_total": "n_tup_upd",
    "table_rows_deleted_total": "n_tup_del",
}
PARTITIONED = """
CREATE TABLE parts (LIKE jobs INCLUDING DEFAULTS) PARTITION BY LIST (queue);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE parts_rest PARTITION OF parts DEFAULT PARTITION BY HASH (id);
CREATE TABLE parts_rest_0 PARTITION OF parts_rest FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_rest_1 PARTITION OF parts_rest FOR VALUES WITH (MODULUS 2, REMAINDER 1);
"""


def settle(db: Db) -> None:
    """Have the session's numbers counted now instead of within a second."""
    db.execute("SELECT pg_stat_force_next_flush()")


def live_through(db: Db, table: str, jobs: int = 100) -> None:
    """A hundred jobs come in four queues, half of them are reserved, a quarter is done, and a push is rolled back."""
    add_jobs(db, *[("abcd"[n % 4], None, 0) for n in range(jobs)], table=table)
    db.execute(f"UPDATE {table} SET reserved_at = 1700000000, attempts = 1 WHERE queue IN ('a', 'b')")
    db.execute(f"DELETE FROM {table} WHERE queue = 'a'")
    with db.transaction(force_rollback=True):
        add_jobs(db, *[("c", None, 0)] * 10, table=table)
    settle(db)


def told(app: App, table: str) -> dict[str, float | None]:
    """The numbers that have a column in pg_stat_user_tables."""
    poll(app, "statistics")
    return {name: value(app, name, connection="database", table=table) for name in COLUMNS}


def seen(db: Db, pattern: str) -> dict[str, float]:
    """The same, as PostgreSQL's own view has it, summed over the tables whose names fit."""
    sums = ", ".join(f"sum({column})::int" for column in COLUMNS.values())
    row = db.execute(f"SELECT {sums} FROM pg_stat_user_tables WHERE relname LIKE %s", [pattern]).fetchone()
    return dict(zip(COLUMNS, row or (), strict=True))


def test_counters_are_those_of_pg_stat_user_tables(dsn: str, db: Db) -> None:
    """Live, dead, inserted, updated and deleted rows are the numbers of pg_stat_user_tables; a rollback counts too."""
    live_through(db, "jobs")
    with watched(dsn) as app:
        assert told(app, "jobs") == seen(db, "jobs")
        assert seen(db, "jobs")["table_rows_inserted_total"] == 110
        assert value(app, "table_rows_updated_total") == 50
        assert value(app, "table_rows_deleted_total") == 25


def test_a_partitioned_table_is_the_sum_of_its_parts(dsn: str, db: Db) -> None:
    """Rows and triggers of partitions, and of partitions of partitions, are added up under the table's name."""
    db.execute(PARTITIONED)
    live_through(db, "parts")
    with watched(dsn, table="parts") as app:
        assert told(app, "parts") == seen(db, "parts%")
        assert value(app, "table_autovacuum_trigger_tuples", table="parts") == 3 * 50
        db.execute("ALTER TABLE parts_a SET (autovacuum_enabled = false)")
        poll(app, "statistics")
        assert value(app, "table_autovacuum_enabled", table="parts") == 0


def test_counters_only_grow(dsn: str, db: Db) -> None:
    """
    Dropped partitions, reset statistics, and a table that is gone for a while take nothing off what was counted.

    A counter that falls would be read as one that began at 0, and all that is left would count again.
    """
    db.execute(PARTITIONED)
    add_jobs(db, *[("a", None, 0)] * 7, *[("b", None, 0)] * 20, table="parts")
    settle(db)

    def inserted() -> float | None:
        return told(app, "parts")["table_rows_inserted_total"]

    with watched(dsn, table="parts") as app:
        assert inserted() == 27
        db.execute("DROP TABLE parts_a")
        assert inserted() == 27
        add_jobs(db, *[("a", None, 0)] * 3, table="parts")
        settle(db)
        assert inserted() == 30
        db.execute("SELECT pg_stat_reset()")
        until(lambda: seen(db, "parts%")["table_rows_inserted_total"] == 0)
        add_jobs(db, *[("a", None, 0)] * 2, table="parts")
        settle(db)
        assert inserted() == 32
        db.execute("ALTER TABLE parts RENAME TO gone")
        assert inserted() is None
        db.execute("ALTER TABLE gone RENAME TO parts")
        assert inserted() == 32


def test_last_vacuum_is_absent_until_every_part_has_had_one(dsn: str, db: Db) -> None:
    """The time of the last vacuum is absent if there was none, and that of the part that waits longest."""
    db.execute(PARTITIONED)
    with watched(dsn, table="parts") as app:
        poll(app, "statistics")
        assert value(app, "table_last_vacuum_timestamp_seconds") is None
        db.execute("VACUUM parts_a")
        db.execute("VACUUM parts_rest_0")
        settle(db)
        poll(app, "statistics")
        assert value(app, "table_last_vacuum_timestamp_seconds") is None
        db.execute("VACUUM parts")
        settle(db)
        poll(app, "statistics")
        first = value(app, "table_last_vacuum_timestamp_seconds")
        assert first == pytest.approx(time.time(), abs=5)
        db.execute("VACUUM parts_a")
        settle(db)
        poll(app, "statistics")
        assert value(app, "table_last_vacuum_timestamp_seconds") == pytest.approx(first, abs=0.001)


TRIGGERS = (  # storage parameters, rows, and the trigger by the manual's formula
    ("", None, 50),
    ("", 1000, 50 + 0.2 * 1000),
    ("autovacuum_vacuum_threshold = 7", 1000, 7 + 0.2 * 1000),
    ("autovacuum_vacuum_scale_factor = 0.01", 1000, 50 + 0.01 * 1000),
    ("autovacuum_vacuum_scale_factor = '1e-2', autovacuum_vacuum_threshold = '0x10'", 1000, 16 + 0.01 * 1000),
    ("autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0", 1000, 0),
    ("autovacuum_vacuum_insert_threshold = 3, fillfactor = 70", 1000, 50 + 0.2 * 1000),
)
CAPPED = (  # from PostgreSQL 18 on
    ("autovacuum_vacuum_max_threshold = 100", 1000, 100),
    ("autovacuum_vacuum_max_threshold = 1000", 1000, 250),
    ("autovacuum_vacuum_max_threshold = 0", 1000, 0),
    ("autovacuum_vacuum_max_threshold = -1", 1000, 250),
)


def test_autovacuum_trigger_by_the_manual(dsn: str, db: Db) -> None:
    """The trigger is threshold + scale factor × rows with the table's own parameters, on 18 capped; never analysed
    means no rows."""
    with watched(dsn) as app:
        for parameters, rows, trigger in TRIGGERS + (CAPPED if db.info.server_version >= 180000 else ()):
            db.execute("DROP TABLE jobs")
            create_jobs(db)
            add_jobs(db, *[("default", None, 0)] * (rows or 100))
            if rows:
                db.execute("ANALYZE jobs")
            if parameters:
                db.execute(f"ALTER TABLE jobs SET ({parameters})")
            poll(app, "statistics")
            assert value(app, "table_autovacuum_trigger_tuples", table="jobs") == pytest.approx(trigger), parameters


def test_autovacuum_switched_off(dsn18: str, db18: Db) -> None:
    """A table may be left out of autovacuum, in each spelling that PostgreSQL takes; or the server may have none."""
    spellings = {"off": ("false", "f", "FALSE", "fa", "off", "of", "no", "n", "0"), "on": ("true", "t", "tr", "y", "1")}
    with watched(dsn18) as app:
        for meant, spelled in spellings.items():
            for spelling in spelled:
                db18.execute(f"ALTER TABLE jobs SET (autovacuum_enabled = '{spelling}')")
                poll(app, "statistics")
                assert value(app, "table_autovacuum_enabled") == (meant == "on"), spelling


def test_a_server_without_autovacuum(postgres_debian: Postgres) -> None:
    """Where the server has no autovacuum, or no statistics to go by, no table has it."""
    with Postgres(postgres_debian.binaries, {"track_counts": "off"}) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as db:
            create_jobs(db)
            db.execute("ALTER TABLE jobs SET (autovacuum_enabled = true)")
        with watched(server.dsn()) as app:
            poll(app, "statistics")
            assert value(app, "table_autovacuum_enabled") == 0


def test_statistics_answer_while_the_table_is_locked(dsn: str, db: Db) -> None:
    """Under an ALTER TABLE who reads the table gives up after the lock timeout; `statistics` and `activity` go on."""
    for statement in ("CREATE INDEX ON jobs (queue, available_at) WHERE reserved_at IS NULL", PARTITIONED):
        db.execute(statement)
    for table in ("jobs", "parts"):
        with watched(dsn, table=table) as app, db.transaction():
            db.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            poll(app)
            reasons = {name: state.reason for name, state in states(app).items()}
            assert {name for name, reason in reasons.items() if reason} == {"jobs", "reservations", "sizes"}
            assert {*filter(None, reasons.values())} == {"lock_timeout"}
            assert state(app, "jobs").duration < 1


def test_case_31_a_long_transaction_keeps_dead_rows(dsn: str, db: Db) -> None:
    """Case 31: while a transaction holds the horizon dead rows stay above the trigger, vacuum or not; then they go."""
    with watched(dsn) as app, psycopg.connect(dsn, application_name="reports") as holder:
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        began = time.time()
        db.execute(
            "INSERT INTO jobs (queue, payload, attempts, available_at, created_at)"
            " SELECT 'default', '{}', 0, 0, 0 FROM generate_series(1, 50000)"
        )
        db.execute("DELETE FROM jobs")
        settle(db)
        db.execute("VACUUM jobs")
        age = time.time() - began
        poll(app)
        assert value(app, "table_dead_tuples") == 50_000
        assert (value(app, "table_autovacuum_trigger_tuples") or 0) < 50_000
        held = value(app, "database_oldest_transaction_age_seconds", holder="idle_in_transaction")
        assert held is not None
        assert age <= held < time.time() - began + 1
        holder.execute("COMMIT")
        db.execute("VACUUM jobs")
        settle(db)
        poll(app)
        assert value(app, "table_dead_tuples") == 0
        assert value(app, "database_oldest_transaction_age_seconds", holder="idle_in_transaction") == 0


def autovacuumed(db: Db, table: str) -> float | None:
    """Unix time of the table's last autovacuum."""
    row = db.execute("SELECT pg_stat_get_last_autovacuum_time(%s::regclass)", [table]).fetchone()
    return row[0].timestamp() if row and row[0] else None


@pytest.fixture(params=["debian", "wheel"])
def eager(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """A server whose autovacuum looks around every second."""
    with Postgres(debian_postgres() if request.param == "debian" else None, {"autovacuum_naptime": "1s"}) as server:
        yield server


def test_autovacuum_starts_above_the_trigger(eager: Postgres) -> None:
    """With as many dead rows as the trigger says autovacuum leaves the table alone; with one more it comes."""
    with psycopg.connect(eager.dsn(), autocommit=True) as db, watched(eager.dsn()) as app:
        capped = db.info.server_version >= 180000
        cap = "autovacuum_vacuum_max_threshold = 30," if capped else ""
        for table in ("jobs", "one_more"):
            create_jobs(db, table)
            add_jobs(db, *[("default", None, 0)] * 100, table=table)
            db.execute(
                f"ALTER TABLE {table} SET ({cap} autovacuum_vacuum_threshold = 20,"
                " autovacuum_vacuum_scale_factor = 0.2, autovacuum_analyze_threshold = 1000000)"
            )
            db.execute(f"ANALYZE {table}")
        poll(app, "statistics")
        trigger = value(app, "table_autovacuum_trigger_tuples", table="jobs")
        assert trigger == (30 if capped else 20 + 0.2 * 100)
        with db.transaction():
            db.execute(f"DELETE FROM jobs WHERE id <= {trigger}")
            db.execute(f"DELETE FROM one_more WHERE id <= {trigger + 1}")
        settle(db)
        until(lambda: autovacuumed(db, "one_more"), within=15)
        assert autovacuumed(db, "jobs") is None
        db.execute(f"DELETE FROM jobs WHERE id = {trigger + 1}")
        settle(db)
        at = until(lambda: autovacuumed(db, "jobs"), within=15)
        poll(app, "statistics")
        assert value(app, "table_dead_tuples", table="jobs") == 0
        assert value(app, "table_last_vacuum_timestamp_seconds", table="jobs") == pytest.approx(at, abs=0.001)
