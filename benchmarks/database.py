"""
What a poll costs a database: `python -m benchmarks.database [ROWS…]`.

For each number of rows, without and with the two optional indexes: milliseconds of each
collector's poll (median of several; the first of `failed_jobs` counts the rows), buffers that the
question on the jobs touches, and the interval that the duty of 1 % then puts in force for `jobs`.
At the end, what the indexes cost the workers: WAL and HOT updates per job.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import psycopg

from exporter import app, config
from exporter.demo import laravel
from exporter.demo.postgres import Postgres
from exporter.poller import Poller, Turn
from exporter.sources.database.source import COLLECTORS

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
# Ten thousand failures with their exceptions.
FAILED = """
INSERT INTO failed_jobs (uuid, connection, queue, payload, exception)
SELECT n::text, 'database', 'queue' || n % 8, repeat(md5(n::text), 32), repeat(md5(n::text), 160)
  FROM generate_series(1, 10000) AS n
"""
INDEXES = """
CREATE INDEX jobs_waiting_index ON jobs (queue, available_at) WHERE reserved_at IS NULL;
CREATE INDEX jobs_reserved_index ON jobs (queue, reserved_at) WHERE reserved_at IS NOT NULL;
"""
READ = """
SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_user_tables WHERE relname = 'jobs'
"""


def main() -> None:
    """Print one line for each table, in Markdown."""
    sizes = [int(argument) for argument in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    with Postgres(settings=SERVER) as server, psycopg.connect(server.dsn(), autocommit=True) as db:
        print(db.execute("SELECT version()").fetchone())
        db.execute(laravel.TABLES)
        db.execute(FAILED)
        print("", "rows", "indexes", *(collector.name for collector in COLLECTORS), "pages", "interval", "", sep=" | ")
        for rows in sizes:
            db.execute("DROP TABLE IF EXISTS jobs")
            db.execute(laravel.JOBS)
            db.execute(ROWS, {"rows": rows})
            measure(server.dsn(), db, rows, "no")
            db.execute(INDEXES)
            measure(server.dsn(), db, rows, "yes")
        for name, indexes in (("no", ""), ("yes", INDEXES)):
            db.execute("DROP TABLE jobs")
            db.execute((laravel.JOBS + indexes).encode())
            print(f"indexes {name}: {work(db)}")


def measure(dsn: str, db: psycopg.Connection[Any], rows: int, indexes: str) -> None:
    """Poll each collector several times and print what it took."""
    db.execute("VACUUM (ANALYZE) jobs")
    poller = exporter(dsn)
    first = {turn.collector.name: milliseconds(poller, turn) for turn in poller.turns}
    print(f"(rows {rows:,}: the count of the failed jobs took {first['failed_jobs']:.0f} ms)", file=sys.stderr)
    taken = [statistics.median(milliseconds(poller, turn) for _ in range(REPEATS)) for turn in poller.turns]
    interval = poller.turns[0].state.interval
    poller.source.close()
    once = exporter(dsn)
    before = buffers(db)
    milliseconds(once, once.turns[0])
    once.source.close()
    cells = (f"{rows:,}", indexes, *(f"{took:.1f}" for took in taken), f"{buffers(db) - before:,}", f"{interval:.0f} s")
    print("", *cells, "", sep=" | ")


def exporter(dsn: str) -> Poller:
    """What polls the database, but with time enough for the largest table."""
    return app.build(
        config.parse({"connections": {"database": {"driver": "database", "dsn": dsn, "timeout": 30}}})
    ).pollers[0]


def milliseconds(poller: Poller, turn: Turn) -> float:
    """How long one poll keeps the database busy."""
    poller.poll(turn)
    assert turn.state.up, turn.state.error
    return turn.took * 1000


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
