"""
What a poll costs a database: `python -m benchmarks.database [ROWS…]`.

For each number of rows, without and with the two optional indexes: milliseconds of each
collector's poll (median of several), buffers that the question on the jobs touches, and the
interval that the duty of 1 % then puts in force for `jobs`. At the end, what the indexes cost
the workers: WAL and HOT updates per job.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import psycopg

from exporter import app, config
from exporter.demo import laravel
from exporter.demo.postgres import Postgres

REPEATS = 9
JOBS = 3000  # pushed, reserved and deleted to measure what the indexes cost
SERVER = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
# Eight queues, one row in twenty delayed, 60 reserved, payloads of about 1 kB.
ROWS = """
INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)
SELECT 'queue' || (sqrt(random()) * 8)::int, repeat(md5(n::text), 30 + (random() * 8)::int), 0,
       CASE WHEN n %% greatest(%(rows)s / 60, 1) = 0 THEN now - 10 END,
       now + CASE WHEN random() < 0.05 THEN 3600 ELSE -(random() * 3600)::int END, now
  FROM generate_series(1, %(rows)s) AS n, (SELECT extract(epoch FROM now())::int AS now) AS clock
"""
INDEXES = """
CREATE INDEX jobs_waiting_index ON jobs (queue, available_at) WHERE reserved_at IS NULL;
CREATE INDEX jobs_reserved_index ON jobs (queue, reserved_at) WHERE reserved_at IS NOT NULL;
"""
READ = """
SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_user_tables WHERE relname = 'jobs'
"""


def main() -> None:
    """Print one line for each table."""
    sizes = [int(argument) for argument in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    with Postgres(settings=SERVER) as server, psycopg.connect(server.dsn(), autocommit=True) as db:
        print(db.execute("SELECT version()").fetchone())
        print(f"{'rows':>10} {'indexes':>8} {'jobs':>9} {'statistics':>11} {'activity':>9} {'sizes':>7}  (ms)", end="")
        print(f" {'buffers':>9} {'interval':>9}")
        for rows in sizes:
            db.execute("DROP TABLE IF EXISTS jobs")
            db.execute(laravel.JOBS)
            db.execute(ROWS, {"rows": rows})
            measure(server.dsn(), db, rows, "none")
            db.execute(INDEXES)
            measure(server.dsn(), db, rows, "both")
        for name, indexes in (("none", ""), ("both", INDEXES)):
            db.execute("DROP TABLE jobs")
            db.execute((laravel.JOBS + indexes).encode())
            print(f"indexes {name}: {work(db)}")


def measure(dsn: str, db: psycopg.Connection[Any], rows: int, indexes: str) -> None:
    """Poll each collector several times and print what it took."""
    db.execute("VACUUM (ANALYZE) jobs")
    watching = app.build(config.parse({"connections": {"database": {"driver": "database", "dsn": dsn, "timeout": 30}}}))
    poller = watching.pollers[0]
    taken: dict[str, float] = {}
    for turn in poller.turns:
        times = []
        for _ in range(REPEATS):
            poller.poll(turn)
            assert turn.state.up, turn.state.error
            times.append(turn.took * 1000)
        taken[turn.collector.name] = statistics.median(times)
    poller.source.close()
    before = buffers(db)
    once = app.build(config.parse({"connections": {"database": {"driver": "database", "dsn": dsn, "timeout": 30}}}))
    once.pollers[0].poll(once.pollers[0].turns[0])
    once.pollers[0].source.close()
    touched = buffers(db) - before
    interval = max(15.0, taken["jobs"] / 1000 / 0.008)
    print(
        f"{rows:>10,} {indexes:>8} {taken['jobs']:>9.1f} {taken['statistics']:>11.1f} {taken['activity']:>9.1f}", end=""
    )
    print(f" {taken['sizes']:>7.1f}       {touched:>9,} {interval:>8.0f}s")


def buffers(db: psycopg.Connection[Any]) -> int:
    """Pages of the table and its indexes that anybody has touched so far."""
    db.execute("SELECT pg_stat_force_next_flush()")
    (touched,) = db.execute(READ).fetchone() or (0,)
    return int(touched)


def work(db: psycopg.Connection[Any]) -> str:
    """Push, reserve and delete jobs as workers do; what each cost."""
    (start,) = db.execute("SELECT pg_current_wal_lsn()").fetchone() or (None,)
    for _ in range(JOBS):
        db.execute(
            "INSERT INTO jobs (queue, payload, attempts, available_at, created_at)"
            " VALUES ('a', repeat('x', 1000), 0, 1, 1)"
        )
        db.execute("UPDATE jobs SET reserved_at = 1, attempts = 1 WHERE id = currval('jobs_id_seq')")
        db.execute("DELETE FROM jobs WHERE id = currval('jobs_id_seq')")
    db.execute("SELECT pg_stat_force_next_flush()")
    wal = db.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s)", (start,)).fetchone() or (0,)
    hot = db.execute("SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE relname = 'jobs'").fetchone() or (
        0,
        1,
    )
    return f"{float(wal[0]) / JOBS:,.0f} bytes of WAL a job, {100 * hot[0] / hot[1]:.0f} % of the reservations HOT"


if __name__ == "__main__":
    main()
