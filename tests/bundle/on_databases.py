"""Alerts on a PostgreSQL: its table, its connections, its locks, and the workers that it sees."""

from __future__ import annotations

from exporter import exposition
from exporter.sources.database import activity, locks, metrics, pop, sizes, statistics

from .case import DEFAULT, TABLE, Case
from .worlds import BEGINS, LONG, faster, growing, of, step

CONNECTION = {"connection": "database"}
AT = ("database", "jobs")
QUEUE = ("database", "default")

CASES = [
    Case(
        "WorkersOutdated", "database", 30, {**CONNECTION, "pool": "default"},
        "3 workers of database/default began before the restart signal and have not ended for 30 minutes.",
        {of(metrics.OUTDATED, *QUEUE): step(0, 3)},
    ),
    Case(
        "DeadTuplesHigh", "database", 15, TABLE,
        "database/jobs has 111.6k dead rows, more than autovacuum waits for, and no vacuum removes them.",
        {of(statistics.DEAD, *AT): step(40, 111_575)},
    ),
    Case(
        "AutovacuumNotRunning", "database", 41, TABLE,
        "database/jobs has 500 dead rows, more than autovacuum waits for, and there was no vacuum within 30 minutes.",
        {of(statistics.DEAD, *AT): step(40, 500), of(statistics.LAST_VACUUM, *AT): faster(60, 0)},
    ),
    Case(
        "AutovacuumNotRunning", "database", 10, TABLE,
        "database/jobs has 500 dead rows, more than autovacuum waits for, and there was no vacuum within 30 minutes.",
        {of(statistics.DEAD, *AT): step(40, 500), of(statistics.LAST_VACUUM, *AT): f"_x{LONG}"},  # never
    ),
    Case(
        "AutovacuumDisabled", "database", 15, TABLE,
        "Autovacuum does not look after database/jobs, or not after all of it.",
        {of(statistics.ENABLED, *AT): step(1, 0)},
    ),
    Case(
        "XminHeld", "database", 3, {**CONNECTION, "holder": "idle_in_transaction"},
        "A transaction on database (idle_in_transaction) has been open for 18m 0s,"
        " and no row that it may still see can be removed.",
        {of(activity.OLDEST_TRANSACTION, "database", "idle_in_transaction"): growing(1, 60, start=900)},
    ),
    Case(
        "TableBloated", "database", 60, TABLE,
        "database/jobs takes 1.002GiB for a few rows, more than 100 kB for each of them.",
        {of(sizes.SIZE, *AT, "heap"): step(8e6, 2**30)},
    ),
    Case(
        "ConnectionsHigh", "database", 5, CONNECTION,
        "89% of the connections that an application can get from database are in use.",
        {of(metrics.USAGE, "database"): step(0.3, 0.89)},
    ),
    Case(
        "ConnectionsExhausted", "database", 1, CONNECTION,
        "Over 95% of the connections that an application can get from database are in use,"
        " or the exporter was refused one within 5 minutes.",
        {of(metrics.USAGE, "database"): step(0.3, 0.97)},
    ),
    Case(
        "ConnectionsExhausted", "database", 2, CONNECTION,
        "Over 95% of the connections that an application can get from database are in use,"
        " or the exporter was refused one within 5 minutes.",
        {
            of(exposition.ERRORS, "database", "activity", "too_many_connections"): step(0, 1),
            of(metrics.USAGE, "database"): f"0.3x{BEGINS} _x{LONG}",  # who is refused cannot count
        },
    ),
    Case(
        "LockWaits", "database", 2, TABLE,
        "2 sessions wait for a lock on database/jobs, one of them for long or some of them at every look.",
        {of(locks.WAITERS, *AT): step(0, 2), of(locks.LONGEST_WAIT, *AT): step(0, 30)},
    ),
    Case(
        "LockWaits", "database", 7, TABLE,  # each of them for a moment, as without SKIP LOCKED
        "11 sessions wait for a lock on database/jobs, one of them for long or some of them at every look.",
        {of(locks.WAITERS, *AT): step(0, 11), of(locks.LONGEST_WAIT, *AT): step(0, 0.1)},
    ),
    *(
        Case(
            "PopSlow", "database", 10, DEFAULT,
            f"The search for the next job of database/default takes {takes},"
            " touches over 1000 pages or steps over more than 1000 rows.",
            changes,
        )
        for takes, changes in (
            ("250ms", {of(pop.DURATION, *QUEUE): step(0.001, 0.25)}),
            ("34ms", {of(pop.DURATION, *QUEUE): step(0.001, 0.034), of(pop.BUFFERS, *QUEUE): step(6, 7692)}),
            ("1ms", {of(pop.SKIPPED, *QUEUE): step(3, 100_000)}),
        )
    ),
]  # fmt: skip
