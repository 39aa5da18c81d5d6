"""The source for Redis: its collectors, the most important first, over one connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import queues
from ...model import Metric, Sample
from ...source import Collector, Source
from ...timing import Clock
from .. import named
from ..readings import Readings
from .horizon import Horizon
from .queues import Queues
from .reservations import Reservations
from .server import Server
from .session import Session
from .settings import Redis
from .signals import Signals

COLLECTORS = (Queues, Horizon, Reservations, Signals, Server)  # who is told something after who tells it
METRICS: tuple[Metric, ...] = tuple(
    dict.fromkeys((*queues.SETTINGS, *(metric for collector in COLLECTORS for metric in collector.metrics)))
)
WORKERS = "workers"  # the pool of those whose timeout is set; Horizon names its own
DUTY = 0.01  # share of a Redis's time that all questions together may take


def open(  # noqa: A001  # as each source's
    name: str, settings: Redis, readings: Readings, clock: Clock = Clock(), *, once: bool = False
) -> Source:
    """The source for one connection of the settings, that will be polled `once` only. Connects then, not here."""
    session = Session(name, settings, readings, clock, once)
    collectors: list[Collector[Any] | None] = [
        Queues(session),
        Horizon(session, settings.horizon.prefix) if settings.horizon else None,
        Reservations(session),
        Signals(session) if settings.cache or settings.horizon else None,
        Server(session),
    ]
    return Source(
        name=name,
        collectors=tuple(filter(None, collectors)),
        timeout=settings.timeout,
        duty=DUTY,
        constants=tuple(constants(name, settings)),
        close=session.close,
    )


def constants(name: str, settings: Redis) -> Iterator[Sample]:
    """What the settings alone say; shown even when the Redis is gone."""
    for connection in sorted({name, *(settings.connection_of(queue, name) for queue in settings.queues)}):
        yield queues.CONNECTION_INFO(1, connection, settings.driver)
    for queue in settings.queues:
        yield from named.of_queue(settings, name, queue)
        if (timeout := settings.worker_timeout_of(queue)) is not None:
            yield queues.WORKER_TIMEOUT(timeout, settings.connection_of(queue, name), WORKERS, queue)
