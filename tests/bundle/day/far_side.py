"""What is watched over one connection: a far side with its queues, and what every driver says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import NamedTuple

from exporter import queues
from exporter.model import Sample

from .line import DEPLOYS, FAILOVER, FAILOVER_ENDS, OUT_OF_MEMORY, Kind, Line

INVOICE = "App\\Jobs\\SendInvoice"
ROW = 1000  # bytes of a job
Says = Iterator[Sample]


class Counts(NamedTuple):
    """What has happened to the jobs of a queue."""

    pushed: int
    done: int
    failed: int


class FarSide:
    """What is watched over one connection. Time goes on when it is asked for, and events come on the way."""

    name = ""
    kinds: tuple[Kind, ...] = ()
    fails_over = True

    def __init__(self, chance: Random) -> None:
        self.chance, self.now = chance, 0.0
        self.lines = {kind.queue: Line(kind, chance) for kind in self.kinds}
        self.counted: Mapping[str, Counts] = {}  # when the exporter began
        self.exporter_begins()
        for line in self.lines.values():
            for deploy in DEPLOYS:
                line.at(deploy, lambda line=line: self.deploy(line))  # type: ignore[misc]
            if self.fails_over:
                line.at(FAILOVER, line.fail_over)
        if self.lines:
            self.lines["default"].at(OUT_OF_MEMORY, self.lines["default"].kill)

    @property
    def away(self) -> bool:
        """Whether nobody answers at this moment."""
        return FAILOVER <= self.now < FAILOVER_ENDS

    def until(self, when: float) -> None:
        """Let time pass."""
        for line in self.lines.values():
            line.until(when)
        self.now = when

    def deploy(self, line: Line) -> None:
        """New code for its workers."""
        line.restart()

    def exporter_begins(self) -> None:
        """What it counts for itself begins at 0."""
        self.counted = {queue: Counts(line.pushed, line.done, line.failed) for queue, line in self.lines.items()}

    def constants(self) -> Says:
        """What the settings say."""
        for kind in self.kinds:
            yield queues.TARGET_WAIT(kind.target, kind.connection, kind.queue)
            yield queues.RETRY_AFTER(kind.retry_after, kind.connection, kind.queue)
            yield queues.WORKER_TIMEOUT(kind.timeout, kind.connection, kind.queue, kind.queue)

    def collectors(self) -> Mapping[str, str]:
        """Its collectors, each with the method that it asks, besides the one that looks at single jobs."""
        raise NotImplementedError

    def states(self) -> Says:
        for line in self.lines.values():
            at = (line.kind.connection, line.kind.queue)
            reserved = len(line.held) - len(line.expired)
            counts = (len(line.ready) - len(line.expired), len(line.delayed), reserved, len(line.expired))
            for state, jobs in zip(queues.STATES, counts, strict=True):
                yield queues.JOBS(jobs, *at, state)
            yield queues.OLDEST_JOB_AGE(line.age, *at)

    def reservations(self) -> Says:
        """What a driver says of jobs that are held, beside what every driver says."""
        return iter(())

    def paused(self) -> Says:
        for kind in self.kinds:
            yield queues.PAUSED(0, kind.connection, kind.queue)

    def failures(self) -> Says:
        for queue, line in self.lines.items():
            yield queues.FAILED_TOTAL(line.failed - self.counted[queue].failed, line.kind.connection, queue, INVOICE)
            yield queues.FAILED_TOTAL(0, line.kind.connection, queue, queues.OTHER)
