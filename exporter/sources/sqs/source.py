"""The SQS source: its collectors, the most important first, over one account."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from math import inf
from typing import Any

from ... import queues
from ...model import Metric, Sample
from ...source import Collector, Joined, Source
from ...timing import Clock
from . import metrics
from .cloudwatch import CloudWatch
from .ecs import Ecs
from .publish import Publish
from .queues import Queues
from .session import Session
from .settings import Sqs

COLLECTORS = (Queues, CloudWatch, Ecs, Publish)  # the most important first
SETTINGS: tuple[Metric, ...] = (queues.TARGET_WAIT, queues.CONNECTION_INFO, queues.WORKER_TIMEOUT)
JOINED: tuple[Metric, ...] = (queues.OLDEST_JOB_AGE, metrics.REQUESTS)
METRICS: tuple[Metric, ...] = (*SETTINGS, *(each for collector in COLLECTORS for each in collector.metrics), *JOINED)

WORKERS = "workers"  # the pool of a queue whose service nobody named


def open(  # noqa: A001  # as each source's
    name: str, settings: Sqs, clock: Clock = Clock(), *, once: bool = False
) -> Source:
    """The source for one connection of the settings, that will be polled `once` only. Connects then, not here."""
    session = Session(name, settings, clock=clock)
    return Source(
        name=name,
        collectors=tuple(collectors(session, once=once)),
        timeout=settings.timeout,
        constants=tuple(constants(name, settings)),
        joined=partial(joined, session),
        close=session.aws.close,
    )


def collectors(session: Session, *, once: bool) -> Iterator[Collector[Any]]:
    """Those that have something to ask."""
    settings = session.settings
    yield Queues(session)
    if settings.cloudwatch is not None:
        yield CloudWatch(session, settings.cloudwatch.interval)
    if any(queue.ecs for queue in settings.queues.values()):
        yield Ecs(session)
    if settings.publish and not once:  # who only wants to look writes nothing
        yield Publish(session)


def constants(name: str, settings: Sqs) -> Iterator[Sample]:
    """What the settings alone say; shown even when AWS is out of reach."""
    yield queues.CONNECTION_INFO(1, name, settings.driver)
    for queue, said in settings.queues.items():
        if (target := settings.target_wait_of(queue)) is not None:
            yield queues.TARGET_WAIT(target, name, queue)
        if said.timeout is not None:
            yield queues.WORKER_TIMEOUT(said.timeout, name, said.ecs.service if said.ecs else WORKERS, queue)


def joined(session: Session, fresh: Collection[str]) -> Joined:
    """
    How long the oldest job waits, which takes the answers of both SQS and CloudWatch, and how much was asked.

    With none ready nobody waits, whatever is in flight. Without a count that may be shown nothing is known.
    """
    samples, holds = [], []
    for queue, ready in session.counted().ready.items() if Queues.name in fresh else ():
        if not ready:
            samples.append(queues.OLDEST_JOB_AGE(0, session.name, queue))
        elif age := session.age_of(queue):
            samples.append(queues.OLDEST_JOB_AGE(age.seconds, session.name, queue))
            holds.append(age.until)
    for (operation, outcome), count in session.aws.requests.counts().items():
        samples.append(metrics.REQUESTS(count, session.name, operation, outcome))
    return Joined(tuple(samples), min(holds, default=inf))
