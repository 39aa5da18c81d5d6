"""A PostgreSQL on a healthy day."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from random import Random

from exporter import queues
from exporter.sources.database import activity, locks, metrics, pop, reservations, sizes, statistics

from .far_side import ROW, FarSide, Says
from .line import BATCH_JOBS, DUMP, DUMP_ENDS, FAILOVER, FAILOVER_ENDS, HOUR, MINUTE, Kind, business

PAGE = 8192  # bytes


class Database(FarSide):
    """One table for all queues; a batch and a dump at night; autovacuum comes when there is enough to do."""

    name = "database"
    kinds = (
        Kind("database", "default", 8, 60, 90, 60, 1.5, 0.05, 1.5, 40, bursts=True),
        Kind("database", "nightly", 10, 2 * HOUR, 90, 60, 0.001, 0.1, 0.5, 20, batch=BATCH_JOBS),
        Kind("database-long", "exports", 3, 900, 1500, 1200, 0.006, 20, 90, 240),
    )

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.dead, self.made, self.rows, self.heap = 0, 0, 0, 100 * PAGE
        self.vacuumed: float | None = 0.0
        self.next_round: float = MINUTE

    def until(self, when: float) -> None:
        """A round of autovacuum each minute; what the dump may still see stays."""
        while self.next_round <= when:
            super().until(self.next_round)
            self._autovacuum()
            self.next_round += MINUTE
        super().until(when)
        self._take_in()

    def _take_in(self) -> None:
        made = sum(line.reserved + line.done + line.failed + line.released for line in self.lines.values())
        self.dead, self.made = self.dead + made - self.made, made
        self.heap = max(self.heap, ROW * (self.live + self.dead))
        if self.away:
            self.dead, self.vacuumed = 0, None  # the statistics begin anew

    def _autovacuum(self) -> None:
        self._take_in()
        if self.away or self.dead <= self.trigger:
            return
        self.vacuumed, self.rows = self.now, self.live
        if not DUMP <= self.now < DUMP_ENDS:
            self.dead = 0

    @property
    def live(self) -> int:
        return sum(len(line.ready) + len(line.delayed) + len(line.held) for line in self.lines.values())

    @property
    def trigger(self) -> float:
        """PostgreSQL's own settings."""
        return 50 + 0.2 * self.rows

    def collectors(self) -> Mapping[str, str]:
        return {
            "jobs": "states", "failed_jobs": "failures", "statistics": "statistics", "activity": "activity",
            "sizes": "sizes", "locks": "locks", "signals": "signals", "pop": "pop",
        }  # fmt: skip

    def states(self) -> Says:
        yield from super().states()
        for line in self.lines.values():
            waiting = [*line.delayed, *(list(line.ready) if len(line.ready) < BATCH_JOBS // 2 else [])]
            tried = sum(job.attempts > 0 for job in waiting)
            yield queues.RETRIED(tried, line.kind.connection, line.kind.queue)

    def statistics(self) -> Says:
        at = ("database", "jobs")
        lines = self.lines.values()
        yield statistics.LIVE(self.live, *at)
        yield statistics.DEAD(self.dead, *at)
        yield statistics.TRIGGER(self.trigger, *at)
        yield statistics.ENABLED(1, *at)
        if self.vacuumed is not None:
            yield statistics.LAST_VACUUM(self.vacuumed, *at)
        yield statistics.INSERTED(sum(line.pushed + line.released for line in lines), *at)
        yield statistics.DELETED(sum(line.done + line.failed + line.released for line in lines), *at)

    def activity(self) -> Says:
        for queue, line in self.lines.items():
            yield queues.WORKERS(line.workers, "database", queue)
        web = 10 + 30 * business(self.now) + 25 * exp(-max(0, self.now - FAILOVER_ENDS) / 60) * (self.now > FAILOVER)
        used = sum(line.workers for line in self.lines.values()) + self.chance.gauss(web, 3)
        yield metrics.USAGE(used / 97, "database")
        ages = {"active": self.chance.expovariate(1 / 5), "idle_in_transaction": self.chance.expovariate(2)}
        if DUMP <= self.now < DUMP_ENDS:
            ages["active"] = self.now - DUMP
        for holder in ("active", "idle_in_transaction", "prepared", "replication_slot", "standby"):
            yield activity.OLDEST_TRANSACTION(ages.get(holder, 0), "database", holder)

    def sizes(self) -> Says:
        for part, size in (("heap", self.heap), ("toast", PAGE), ("indexes", self.heap / 5)):
            yield sizes.SIZE(size, "database", "jobs", part)

    def locks(self) -> Says:
        waits = self.chance.random() < 0.01
        yield locks.WAITERS(waits, "database", "jobs")
        yield locks.LONGEST_WAIT(waits * self.chance.expovariate(2), "database", "jobs")

    def signals(self) -> Says:
        yield from self.paused()
        for queue, line in self.lines.items():
            yield metrics.OUTDATED(line.outdated, "database", queue)

    def pop(self) -> Says:
        for queue, line in self.lines.items():
            at = (line.kind.connection, queue)
            yield pop.DURATION(self.chance.uniform(0.0004, 0.002), *at)
            yield pop.BUFFERS(5 + self.dead / 40, *at)
            yield pop.SKIPPED(len(line.held) + len(line.delayed), *at)

    def reservations(self) -> Says:
        for line in self.lines.values():
            if line.held:
                yield reservations.LEAD(0, line.kind.connection, line.kind.queue)
