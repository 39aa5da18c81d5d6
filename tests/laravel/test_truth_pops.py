"""What makes a pop slow: delayed jobs at the head, and dead rows that an open transaction keeps."""

from __future__ import annotations

import time
from statistics import median

import psycopg
from psycopg import IsolationLevel

from exporter.app import App

from ..patience import until
from ..world import poll, value, watched
from .laravel import Laravel
from .shown import counts, shown

QUEUES: dict[str, object] = {"default": {}}
DELAYED = 50_000
COPIES = f"""
INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)
SELECT queue, payload, attempts, reserved_at, available_at, created_at FROM jobs, generate_series(2, {DELAYED})
"""


def pops(app: App, laravel: Laravel) -> tuple[float, float]:
    """
    Seconds that a worker's pops took, by its log, and ours at the same time: the median.

    By the log: from the beginning of the worker's loop to the start of the job.
    """
    known, ours = len(laravel.truth.events("started")), []
    laravel.start_dispatching(n=20, rate=20, seconds=0)
    while len(laravel.truth.events("processed")) < known + 20:
        pop(app)
        ours.append(shown(app, "pop_duration_seconds"))
    started = laravel.truth.events("started")[known:]
    return median(event.span.ended - event.span.began for event in started), median(ours)


def pop(app: App) -> float:
    """How many pages a pop touches now."""
    poll(app, "pop")
    return shown(app, "pop_buffers")


def dead(app: App) -> float:
    """How many dead rows the statistics tell of now."""
    poll(app, "statistics")
    found = value(app, "table_dead_tuples", table="jobs")
    assert found is not None
    return found


def oldest_transaction(app: App) -> float:
    """How long the oldest transaction that does nothing has been open now."""
    poll(app, "activity")
    found = value(app, "database_oldest_transaction_age_seconds", holder="idle_in_transaction")
    assert found is not None
    return found


def test_delayed_jobs_at_the_head_are_stepped_over_by_each_pop(laravel: Laravel) -> None:
    """
    With 50,000 delayed jobs before it each pop steps over all of them, in thousands of pages; VACUUM changes nothing.

    The workers' own pops become slower by as long as ours take: by their logs, within a factor of five.
    """
    laravel.work()
    with watched(laravel.dsn, queues=QUEUES) as app, psycopg.connect(laravel.dsn, autocommit=True) as db:
        laravel.dispatch(delay=3600)
        before, _ = pops(app, laravel)
        for change in (COPIES, "VACUUM ANALYZE jobs"):
            db.execute(change)
            theirs, ours = pops(app, laravel)
            assert ours / 5 <= theirs - before <= ours * 5
            assert 1000 < pop(app) < 10_000
            assert shown(app, "pop_skipped_rows") == DELAYED
            assert counts(app)["delayed"] == DELAYED


def test_open_transaction_keeps_every_row_that_the_workers_finish(laravel: Laravel) -> None:
    """
    While a transaction is open each finished job leaves two dead rows, and each pop passes over them.

    A vacuum does not help before it ends; after that a pop touches a handful. Its age is never
    less than the truth, and dead rows are right within a tenth.
    """
    jobs = 600
    with (
        watched(laravel.dsn, queues=QUEUES) as app,
        psycopg.connect(laravel.dsn, autocommit=True) as db,
        psycopg.connect(laravel.dsn) as holder,
    ):
        holder.isolation_level = IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT FROM failed_jobs")
        since = time.monotonic()
        for _ in range(3):
            laravel.work()
        buffers = [pop(app)]
        laravel.start_dispatching(n=jobs, seconds=0)
        for share in (1, 2, 3):
            laravel.truth.wait_for("processed", jobs * share // 3)
            buffers.append(pop(app))
        assert buffers[0] < 10
        assert min(buffers[1:]) > 30

        laravel.stop()
        until(lambda: abs(dead(app) - 2 * jobs) <= 2 * jobs / 10)
        db.execute("VACUUM jobs")
        until(lambda: abs(dead(app) - 2 * jobs) <= 2 * jobs / 10)
        assert pop(app) > 50
        least = time.monotonic() - since
        assert least - 0.05 <= oldest_transaction(app) <= least + 2
        holder.commit()
        db.execute("VACUUM jobs")
        assert pop(app) < 10
        until(lambda: dead(app) == 0)
        assert oldest_transaction(app) == 0
