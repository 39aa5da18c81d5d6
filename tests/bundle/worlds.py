"""
Worlds of simulated series, one for each driver: nothing is wrong in them.

Each holds what that driver emits and no more, built from the metrics as the code declares them, so no series
here can have a name or a label that the exporter does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import NamedTuple

from exporter import exposition, queues
from exporter.model import Metric
from exporter.queues import STATES
from exporter.sources import held
from exporter.sources.clock import metrics as clock
from exporter.sources.database import activity, locks, metrics, pop, reservations, sizes, statistics
from exporter.sources.redis import horizon, server
from exporter.sources.redis import metrics as redis
from exporter.sources.sqs import metrics as sqs

JOB = "laravel-queue-exporter"
BEGINS = 20  # minutes of health before an incident
LONG = 420  # minutes: longer than any test
INVOICE = "App\\Jobs\\SendInvoice"
COLLECTORS = {
    "database": ("jobs", "reservations", "statistics", "activity"),
    "redis": ("queues", "reservations", "server", "horizon"),
    "sqs": ("queues", "cloudwatch", "ecs", "derived"),
    "any": ("ntp",),
}


class Series(NamedTuple):
    """A name with its labels, those of the target left out."""

    name: str
    labels: tuple[tuple[str, str], ...]

    def on(self, target: Mapping[str, str]) -> str:
        """As promtool and Prometheus write it, with a target's labels."""
        labels = {**target, **dict(self.labels)}
        return f"{self.name}{{{','.join(f'{name}={json.dumps(value)}' for name, value in labels.items())}}}"


World = dict[Series, str]  # series → its values a minute apart, in promtool's notation
UP = Series("up", ())


def of(metric: Metric, *labels: str) -> Series:
    """A series of a metric. Raises ValueError if the labels are not those that it has."""
    return Series(metric.name, tuple(metric(_any_value(metric), *labels).labelled.items()))


def _any_value(metric: Metric) -> float:
    if metric.buckets:
        raise ValueError(f"{metric.name}: no rule is made of a histogram")
    return 0.0


def always(value: float) -> str:
    return f"{value:.12g}x{LONG}"


def counting(per_minute: float) -> str:
    return f"0+{per_minute:.12g}x{LONG}"


def step(before: float, after: float, minutes: int = LONG) -> str:
    """One value until the incident begins, and another one from then on; for so many minutes, then the old one."""
    during = f"{after:.12g}x{minutes - 1}" if isfinite(after) else " ".join(["+Inf"] * min(minutes, 60))
    return f"{before:.12g}x{BEGINS - 1} {during} {before:.12g}x{LONG}"


def growing(before: float, per_minute: float, start: float = 0) -> str:
    """A value that grows from the beginning of the incident on."""
    return f"{before:.12g}x{BEGINS - 1} {start:.12g}+{per_minute:.12g}x{LONG}"


def faster(per_minute: float, afterwards: float) -> str:
    """A counter that changes its pace when the incident begins."""
    return f"0+{per_minute:.12g}x{BEGINS - 1} {per_minute * BEGINS:.12g}+{afterwards:.12g}x{LONG}"


def shared(
    connection: str, queue: str, target: float, counts: tuple[int, ...], age: float
) -> Iterator[tuple[Series, str]]:
    """What every driver says of a queue."""
    at = (connection, queue)
    for state, count in zip(STATES, counts, strict=False):
        yield of(queues.JOBS, *at, state), always(count)
    yield of(queues.OLDEST_JOB_AGE, *at), always(age)
    yield of(queues.TARGET_WAIT, *at), always(target)
    yield of(queues.RETRY_AFTER, *at), always(90)
    yield of(queues.WORKER_TIMEOUT, connection, queue, queue), always(60)


def holding(connection: str, queue: str) -> Iterator[tuple[Series, str]]:
    """What is said where single jobs can be looked at."""
    at = (connection, queue)
    yield of(queues.PAUSED, *at), always(0)
    yield of(held.REPEATED, *at), always(0)
    yield of(held.LONG, *at, INVOICE), always(0)
    yield of(held.TIMEOUT, *at, INVOICE), always(30)
    yield of(held.PAST_TIMEOUT, *at), always(0)
    yield of(queues.LAST_RESERVATION, *at), counting(60)  # now


def database() -> Iterator[tuple[Series, str]]:
    """Two queues with a pool each; 2 jobs a second, 3 of 7 workers busy."""
    for queue, target, counts, age in (("default", 60, (5, 3, 2, 0), 2), ("emails", 600, (0, 0, 1, 0), 0)):
        at = ("database", queue)
        yield from shared(*at, target, counts, age)
        yield from holding(*at)
        yield of(queues.WORKERS, *at), always(4 if queue == "default" else 3)
        yield of(metrics.OUTDATED, *at), always(0)
        yield of(queues.RETRIED, *at), always(3)
        yield of(queues.FAILED_TOTAL, *at, queues.OTHER), counting(0.3)
        yield of(reservations.LEAD, *at), always(0)
        yield of(pop.DURATION, *at), always(0.001)
        yield of(pop.BUFFERS, *at), always(6)
        yield of(pop.SKIPPED, *at), always(3)
    yield from table()
    yield of(metrics.USAGE, "database"), always(0.3)
    for holder in ("active", "idle_in_transaction", "prepared", "replication_slot", "standby"):
        yield of(activity.OLDEST_TRANSACTION, "database", holder), always(1)


def table() -> Iterator[tuple[Series, str]]:
    """The jobs table of that database."""
    at = ("database", "jobs")
    yield of(statistics.LIVE, *at), always(11)
    yield of(statistics.DEAD, *at), always(40)
    yield of(statistics.TRIGGER, *at), always(52)
    yield of(statistics.ENABLED, *at), always(1)
    yield of(statistics.LAST_VACUUM, *at), counting(60)
    yield of(statistics.INSERTED, *at), counting(120)
    yield of(statistics.DELETED, *at), counting(120)
    yield of(locks.WAITERS, *at), always(0)
    yield of(locks.LONGEST_WAIT, *at), always(0)
    for part, size in (("heap", 8e6), ("toast", 8192), ("indexes", 2e6)):
        yield of(sizes.SIZE, *at, part), always(size)


def redis_and_horizon() -> Iterator[tuple[Series, str]]:
    """Two queues with a supervisor each; nothing has ever failed in one of them."""
    for queue, per_minute in (("default", 60), ("mail", 6)):
        at = ("redis", queue)
        yield from shared(*at, 60, (3, 0, 1, 0), 1)
        yield from holding(*at)
        yield of(redis.OVERDUE, *at), always(0)
        yield of(horizon.PROCESSES, *at), always(3)
        yield of(horizon.PROCESSED, *at), counting(per_minute)
        yield of(queues.WORKERS, "redis", queue), always(3)
    yield of(queues.FAILED_TOTAL, "redis", "default", queues.OTHER), counting(0.3)
    for state, count in (("running", 1), ("paused", 0)):
        yield of(horizon.MASTERS, "redis", state), always(count)
    yield of(server.MEMORY_USED, "redis"), always(1e8)
    yield of(server.MEMORY_MAX, "redis"), always(1e9)
    yield of(server.EVICTED, "redis"), always(0)
    yield of(server.POLICY, "redis", "noeviction"), always(1)


def sqs_and_ecs() -> Iterator[tuple[Series, str]]:
    """A FIFO queue and another one, with a service each."""
    for queue, fifo in (("mail.fifo", "true"), ("exports", "false")):
        at = ("sqs", queue)
        yield from shared(*at, 300, (4, 0, 3), 2)
        yield of(sqs.QUEUE_INFO, *at, fifo, "queue" if fifo == "true" else "", ""), always(1)
        yield of(sqs.DEAD_LETTERS, *at), always(0)
        yield of(sqs.SENT, *at), counting(60)
        yield of(sqs.DELETED, *at), counting(60)
        yield of(sqs.RUNNING, *at), always(4)
        yield of(sqs.DESIRED, *at), always(4)
        yield of(sqs.BACKLOG, *at), always(1)
        yield of(sqs.ACCEPTABLE, *at), always(100)
        yield of(sqs.IDLE_TASKS, *at), always(0)


def health(source: str, collector: str) -> Iterator[tuple[Series, str]]:
    """What the exporter says of its own asking."""
    at = (source, collector)
    yield of(exposition.UP, *at), always(1)
    yield of(exposition.FRESH, *at), always(1)
    yield of(exposition.INTERVAL, *at), always(15)
    yield of(exposition.CONFIGURED, *at), always(15)
    yield of(exposition.ERRORS, *at, "too_many_connections"), always(0)


def clocks() -> Iterator[tuple[Series, str]]:
    """A clock that is right."""
    yield of(clock.OFFSET, "ntp:time1.internal"), always(0.01)
    yield of(clock.ERROR, "ntp:time1.internal"), always(0.002)


DRIVEN = {"database": database, "redis": redis_and_horizon, "sqs": sqs_and_ecs, "any": clocks}


def healthy(driver: str) -> World:
    """An exporter that watches one connection of this driver, named like it; of `any`, only a clock."""
    source = "clock" if driver == "any" else driver
    own = [each for collector in COLLECTORS[driver] for each in health(source, collector)]
    return {UP: always(1), **dict(DRIVEN[driver]()), **dict(own)}
