"""Alerts on what every queue has: waits, jobs that are held, failures, workers."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from exporter import queues
from exporter.model import Metric
from exporter.sources import held
from exporter.sources.database import reservations
from exporter.sources.redis import metrics as redis

from .case import DEFAULT, ON_REDIS, QUEUES, Case
from .worlds import BEGINS, INVOICE, LONG, World, always, faster, growing, of, step

HELD = {"database": DEFAULT, "redis": ON_REDIS}  # where single jobs can be looked at
NEVER = f"_x{LONG}"


def one(metric: Metric, labels: dict[str, str], values: str, *more: str) -> World:
    """One series of a queue."""
    return {of(metric, *labels.values(), *more): values}


def abandoned(at: dict[str, str]) -> World:
    """A queue whose jobs nobody takes any more, from the beginning of the incident on."""
    return {
        **one(queues.OLDEST_JOB_AGE, at, growing(0, 60)),
        **one(queues.JOBS, at, step(3, 50), "ready"),
        **one(queues.JOBS, at, step(2, 0), "reserved"),
    }


def without_target(at: dict[str, str]) -> World:
    return one(queues.TARGET_WAIT, at, NEVER)


def waits() -> Iterator[Case]:
    """Somebody waits."""
    for driver, at in QUEUES.items():
        where = "/".join(at.values())
        late = one(queues.OLDEST_JOB_AGE, at, step(2, 400))
        says = f"The oldest job of {where} has been waiting for 6m 40s, longer than its target wait."
        yield Case("WaitTooLong", driver, 3, at, says, late)

        says = f"{where} was over its target wait for 100% of the last 6 hours; more than 3% is too much."
        yield Case("WaitBudgetBurn", driver, 365, at, says, one(queues.OLDEST_JOB_AGE, at, always(400)))

        waiting = one(queues.OLDEST_JOB_AGE, at, step(2, 1000)) | without_target(at)
        says = f"The oldest job of {where} has been waiting for 16m 40s, and the queue has no target_wait."
        yield Case("WaitWithoutTarget", driver, 3, at, says, waiting)

        also = ("Starved",) if driver in HELD else ()
        says = f"{where} has had 50 jobs or more that a worker could take, and no worker takes one."
        yield Case("Stalled", driver, 16, at, says, abandoned(at) | without_target(at), also)
    overdue = one(redis.OVERDUE, ON_REDIS, step(0, 40))
    says = "redis/default has had 40 jobs or more that a worker could take, and no worker takes one."
    yield Case("Stalled", "redis", 10, ON_REDIS, says, overdue)


def standing_still() -> Iterator[Case]:
    """Nobody takes the jobs of a queue, and there is a reason."""
    for driver, at in HELD.items():
        where = "/".join(at.values())
        says = (
            f"The oldest job of {where} has been waiting for 16m 0s and none is taken,"
            " although workers that list the queue are alive and complete other jobs."
        )
        yield Case("Starved", driver, 16, at, says, abandoned(at), ("Stalled", "WaitTooLong"))

        paused = abandoned(at) | one(queues.PAUSED, at, step(0, 1))
        says = f"{where} is paused and 50 jobs are ready in it."
        yield Case("PausedWithBacklog", driver, 30, at, says, paused)

        pools = {"database": ("default", "emails"), "redis": ("default", "mail")}[driver]
        gone = {of(queues.WORKERS, driver, pool): step(3, 0) for pool in pools}
        gone |= {of(queues.LAST_RESERVATION, driver, queue): faster(60, 0) for queue in ("default", pools[1])}
        ready = 3 + (3 if driver == "redis" else 2)
        labels = {"connection": driver}
        yield Case("NoWorkers", driver, 6, labels, f"{ready} jobs are ready on {driver}, and it has no worker.", gone)

        share = {"database": "171.4%", "redis": "200%"}[driver]
        busy = {of(queues.JOBS, driver, pool, "reserved"): step(1, 6) for pool in pools}
        says = f"The workers of {driver} were busy for {share} of the last 30 minutes: above 80% waits grow steeply."
        yield Case("CapacityLow", driver, 60, labels, says, busy)


def held_jobs() -> Iterator[Case]:
    """What is seen of a job while a worker holds it."""
    for driver, at in HELD.items():
        where = "/".join(at.values())
        again = one(held.REPEATED, at, step(0, 2))
        died = one(held.PAST_TIMEOUT, at, step(0, 2, minutes=1))
        says = (
            f"About 2 jobs of {where} outlasted their reservation within 15 minutes and were started a second time,"
            " and no worker was seen to have died."
        )
        yield Case("JobsReservedTwice", driver, 5, at, says, again)
        says = (
            f"About 2 jobs of {where} were started again within 15 minutes,"
            " after workers had died in the middle of a job or while the exporter was blind."
        )
        yield Case("JobsRerun", driver, 14, at, says, again | died)
        says = (
            f"2 jobs of {where} are held past their timeout and wait for retry_after, so their worker should be dead."
        )
        yield Case("OrphanedReservations", driver, 4, at, says, died)
        says = f"2 jobs of {where} are past retry_after: their worker is dead or slow, and no other one takes them."
        yield Case("ReservationsExpired", driver, 5, at, says, one(queues.JOBS, at, step(0, 2), "expired"))
        says = (
            f"About 5 jobs of {INVOICE} on {where} took more than half of retry_after within the last hour:"
            " those that take all of it run twice."
        )
        long = one(held.LONG, at, step(0, 5), INVOICE)
        yield Case("DurationNearRetryAfter", driver, 2, {**at, "job_class": INVOICE}, says, long)
        says = f"Jobs of {INVOICE} on {where} may take 1m 30s, and that is not less than retry_after."
        timeout = one(held.TIMEOUT, at, step(30, 90), INVOICE)
        yield Case("TimeoutExceedsRetryAfter", driver, 5, {**at, "job_class": INVOICE}, says, timeout)
    ahead = one(reservations.LEAD, DEFAULT, step(0, 40))
    says = "Jobs of database/default are reserved 40s ahead of the clock of the database."
    yield Case("WorkerClockAhead", "database", 15, DEFAULT, says, ahead)
    behind = one(reservations.LEAD, DEFAULT, step(0, -30))
    says = "Jobs of database/default are reserved by a clock that is behind that of the database (-30s)."
    yield Case("WorkerClockAhead", "database", 15, DEFAULT, says, behind)


def timeouts_of_workers() -> Iterator[Case]:
    """The same timeout for whatever the workers take."""
    for driver, at in QUEUES.items():
        pool = at["queue"]
        labels = {"connection": driver, "pool": pool, "queue": pool}
        endless = {of(queues.WORKER_TIMEOUT, driver, pool, pool): step(60, inf)}
        says = (
            f"Workers of {pool} on {driver}/{pool} may take as long as they like,"
            " and that is not less than retry_after."
        )
        yield Case("TimeoutExceedsRetryAfter", driver, 5, labels, says, endless)


def failures() -> Iterator[Case]:
    """Jobs fail for good."""
    of_redis = of(queues.FAILED_TOTAL, "redis", "mail", queues.OTHER)
    of_database = of(queues.FAILED_TOTAL, "database", "default", queues.OTHER)
    says = "{} of what was done for {} within 15 minutes were jobs that failed for good."
    mail = {"connection": "redis", "queue": "mail"}
    yield Case(
        "FailureRatioHigh", "redis", 25, mail, says.format("50%", "redis/mail"),
        {of_redis: f"0x{BEGINS - 1} 0+6x{LONG}"}, ("FailureRatioElevated",),
    )  # fmt: skip
    yield Case(
        "FailureRatioElevated", "redis", 27, mail, says.format("14.29%", "redis/mail"),
        {of_redis: f"0x{BEGINS - 1} 0+1x{LONG}"},
    )  # fmt: skip
    connection = {"connection": "database"}
    yield Case(
        "FailureRatioHigh", "database", 22, connection, says.format("33.58%", "database"),
        {of_database: faster(0.3, 40)}, ("FailureRatioElevated",),
    )  # fmt: skip
    yield Case(
        "FailureRatioElevated", "database", 27, connection, says.format("10.25%", "database"),
        {of_database: faster(0.3, 12)},
    )  # fmt: skip
    says = "400 jobs of database/default have failed before and wait for another try."
    yield Case("RetryStorm", "database", 10, DEFAULT, says, one(queues.RETRIED, DEFAULT, step(3, 400)))


CASES = [*waits(), *standing_still(), *held_jobs(), *timeouts_of_workers(), *failures()]
