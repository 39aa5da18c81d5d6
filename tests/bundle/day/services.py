"""A Redis with Horizon, SQS with ECS, and a time server, on a healthy day."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from exporter import queues
from exporter.sources.clock import metrics as clock
from exporter.sources.redis import horizon, server
from exporter.sources.redis import metrics as redis
from exporter.sources.sqs import metrics as sqs

from .far_side import ROW, FarSide, Says
from .line import BATCH_JOBS, HOUR, MINUTE, Kind, Line

GRACE = 30  # seconds in which Horizon ends and comes again


class Redis(FarSide):
    """Two supervisors of Horizon; a deploy terminates it, and Supervisor starts it again."""

    name = "redis"
    kinds = (
        Kind("redis", "default", 8, 60, 90, 60, 1.5, 0.05, 1.5, 40, bursts=True, keeps_ids=True),
        Kind("redis", "nightly", 10, 2 * HOUR, 90, 60, 0.001, 0.1, 0.5, 20, batch=BATCH_JOBS, keeps_ids=True),
    )

    def deploy(self, line: Line) -> None:
        """horizon:terminate."""
        line.close(GRACE)

    def collectors(self) -> Mapping[str, str]:
        return {"queues": "states", "signals": "paused", "server": "server", "horizon": "horizon"}

    def states(self) -> Says:
        yield from super().states()
        for queue, line in self.lines.items():
            yield redis.OVERDUE(line.closed and len(line.ready) > 0, "redis", queue)

    def server(self) -> Says:
        waiting = sum(len(line.ready) + len(line.held) for line in self.lines.values())
        yield server.MEMORY_USED(1e8 + 2 * ROW * waiting, "redis")
        yield server.MEMORY_MAX(1e9, "redis")
        yield server.EVICTED(0, "redis")
        yield server.POLICY(1, "redis", "noeviction")

    def horizon(self) -> Says:
        yield from self.failures()
        for queue, line in self.lines.items():
            alive = 0 if line.closed else line.workers
            yield horizon.PROCESSED(line.done - self.counted[queue].done, "redis", queue)
            yield horizon.PROCESSES(alive, "redis", queue)
            yield queues.WORKERS(alive, "redis", queue)
        yield horizon.MASTERS(not self.lines["default"].closed, "redis", "running")
        yield horizon.MASTERS(0, "redis", "paused")


class Sqs(FarSide):
    """A FIFO queue and one for the batch, for which ECS starts more tasks; its minute away is the network's."""

    name = "sqs"
    fails_over = False
    kinds = (
        Kind("sqs", "default", 8, 60, 90, 60, 1.5, 0.05, 1.5, 40, bursts=True),
        Kind("sqs", "nightly.fifo", 1, 2 * HOUR, 90, 60, 0.001, 0.1, 0.5, 20, batch=BATCH_JOBS),
    )
    most, per_task = 12, 4000  # tasks for the batch, and the backlog per task that the scaling wants
    scaled_in = 0.0

    def until(self, when: float) -> None:
        """The scaling looks each minute; it takes tasks away one by one, five minutes apart."""
        while self.now // MINUTE < when // MINUTE:
            super().until((self.now // MINUTE + 1) * MINUTE)
            line = self.lines["nightly.fifo"]
            wanted = min(self.most, max(1, ceil(len(line.ready) / self.per_task)))
            if wanted > line.wanted:
                line.scale(wanted)
            elif wanted < line.wanted and self.now - self.scaled_in >= 5 * MINUTE:
                self.scaled_in = self.now
                line.scale(max(wanted, line.wanted - 2))
        super().until(when)

    def collectors(self) -> Mapping[str, str]:
        return {"queues": "states", "cloudwatch": "cloudwatch", "ecs": "ecs", "derived": "derived"}

    def states(self) -> Says:
        yield from (s for s in super().states() if s.metric is queues.JOBS and s.labels[-1] != "expired")
        for kind in self.kinds:
            fifo = kind.queue.endswith(".fifo")
            info = ("true", "queue", "perQueue") if fifo else ("false", "", "")
            yield sqs.QUEUE_INFO(1, "sqs", kind.queue, *info)
            yield sqs.DEAD_LETTERS(0, "sqs", kind.queue)

    def cloudwatch(self) -> Says:
        """The age counts messages in flight, so it is an upper bound."""
        for queue, line in self.lines.items():
            known = (line.ready[0], *line.held.values()) if line.ready else ()
            oldest = min((job.available for job in known), default=self.now)
            yield queues.OLDEST_JOB_AGE(self.now - oldest, "sqs", queue)
            before, ended = self.counted[queue], line.done + line.failed
            yield sqs.SENT(line.pushed - before.pushed, "sqs", queue)
            yield sqs.DELETED(ended - before.done - before.failed, "sqs", queue)

    def ecs(self) -> Says:
        for queue, line in self.lines.items():
            yield sqs.RUNNING(line.workers, "sqs", queue)
            yield sqs.DESIRED(line.wanted, "sqs", queue)

    def derived(self) -> Says:
        for queue, line in self.lines.items():
            yield sqs.BACKLOG(len(line.ready) / max(line.workers, 1), "sqs", queue)
            yield sqs.ACCEPTABLE(line.kind.target / line.kind.mean, "sqs", queue)
            yield sqs.IDLE_TASKS(0, "sqs", queue)


class Clocks(FarSide):
    """A time server from which our clock wanders by milliseconds."""

    name = "clock"
    offset = 0.0

    def collectors(self) -> Mapping[str, str]:
        return {"ntp": "ntp"}

    def ntp(self) -> Says:
        self.offset = 0.95 * self.offset + self.chance.gauss(0, 0.002)
        yield clock.OFFSET(self.offset, "ntp:time1.internal")
        yield clock.ERROR(self.chance.uniform(0.0005, 0.01), "ntp:time1.internal")
