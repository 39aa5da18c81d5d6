"""The database source: its collectors, the most important first, over one connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ... import queues
from ...model import Metric, Sample
from ...source import Collector, Source
from ...timing import Clock
from .. import named
from ..readings import Readings
from .activity import Activity
from .failed_jobs import FailedJobs
from .jobs import Jobs
from .locks import Locks
from .pop import Pop
from .reservations import Reservations
from .session import Session
from .settings import Database
from .signals import Signals
from .sizes import Sizes
from .statistics import Statistics

COLLECTORS = (Jobs, Reservations, FailedJobs, Statistics, Activity, Sizes, Locks, Signals, Pop)
TABLES = {"failed_jobs": "failed_table", "signals": "cache"}  # collector → the setting of its table; null for none
SETTINGS: tuple[Metric, ...] = (*queues.SETTINGS, queues.WORKER_TIMEOUT)
METRICS: tuple[Metric, ...] = tuple(
    dict.fromkeys((*SETTINGS, *(metric for collector in COLLECTORS for metric in collector.metrics)))
)
DUTY = 0.01  # share of a database's time that all questions together may take


def open(  # noqa: A001  # as each source's
    name: str, settings: Database, readings: Readings, clock: Clock = Clock(), *, once: bool = False
) -> Source:
    """The source for one connection of the settings, that will be polled `once` only. Connects then, not here."""
    session = Session(name, settings, readings, clock, once=once)
    return Source(
        name=name,
        collectors=tuple(collector(session) for collector in switched_on(settings)),
        timeout=settings.timeout,
        duty=DUTY,
        constants=tuple(constants(name, settings)),
        close=session.close,
    )


def switched_on(settings: Database) -> Iterator[Callable[[Session], Collector[Any]]]:
    """The collectors of all tables that are not set to null: what is not there cannot fail."""
    for collector in COLLECTORS:
        if collector.name not in TABLES or getattr(settings, TABLES[collector.name]) is not None:
            yield collector


def constants(name: str, settings: Database) -> Iterator[Sample]:
    """What the settings alone say; shown even when the database is gone."""
    for connection in sorted({name, *(settings.connection_of(queue, name) for queue in settings.queues)}):
        yield queues.CONNECTION_INFO(1, connection, settings.driver)
    for queue in settings.queues:
        yield from named.of_queue(settings, name, queue)
    for pool, process in settings.pools.items():
        for queue in process.queues:
            if process.timeout is not None:
                yield queues.WORKER_TIMEOUT(process.timeout, settings.connection_of(queue, name), pool, queue)
