"""
A healthy day of a queue and its workers, simulated job by job.

Healthy is not idle: there are bursts and tries that fail, a batch at night, deploys, a minute in which the far side
fails over, and a worker that is killed for want of memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import pi, sin
from random import Random

MINUTE, HOUR = 60, 3600
DAY = 24 * HOUR
# What happens, in seconds since midnight.
BATCH, BATCH_JOBS = 1 * HOUR, 50_000
DUMP, DUMP_ENDS = 3 * HOUR, 3 * HOUR + 20 * MINUTE  # after the batch, as one would plan it
DEPLOYS = (10 * HOUR, 14 * HOUR, 17 * HOUR)
FAILOVER, FAILOVER_ENDS = 13 * HOUR, 13 * HOUR + MINUTE
OUT_OF_MEMORY = 15 * HOUR + 20 * MINUTE
BURSTS, LARGEST_BURST = 40 * MINUTE, 700  # seconds between two of them, on average; jobs
TRIES, PAUSE = 3, 10  # of a job, and the seconds between two of them
FAILS, FAILS_FOR_GOOD = 0.02, 0.004  # shares of the tries


@dataclass(frozen=True)
class Kind:
    """What is decided of a queue, and how busy it is. Seconds."""

    connection: str
    queue: str
    workers: int
    target: float
    retry_after: float
    timeout: float
    peak: float  # jobs per second at noon
    quickest: float
    mean: float  # how long a job takes
    longest: float
    bursts: bool = False  # whether many jobs come at once now and then
    batch: int = 0  # jobs that come at once at night
    keeps_ids: bool = False  # whether a job that is released keeps its id, as on Redis


@dataclass(eq=False)
class Job:
    """A job in the queue."""

    id: int
    available: float
    attempts: int = 0
    reserved: float = 0.0


@dataclass(eq=False)
class Worker:
    """A process that takes one job after the other."""

    begun: float


def business(at: float) -> float:
    """How busy an hour is, from 0 to 1: a little at night, most at two in the afternoon."""
    return 0.1 + 0.9 * max(0.0, sin(pi * (at / HOUR - 6) / 16))


class Line:
    """A queue with workers of its own. Time goes on when it is asked for."""

    def __init__(self, kind: Kind, chance: Random) -> None:
        self.kind, self.chance, self.now = kind, chance, 0.0
        self.ready, self.delayed = deque[Job](), set[Job]()
        self.held, self.expired = dict[int, Job](), set[Job]()  # by id; an expired one is held and ready
        self.idle, self.busy = [Worker(0) for _ in range(kind.workers)], dict[Job, Worker]()
        self.wanted, self.restarted, self.away, self.closed = kind.workers, 0.0, False, False
        self.pushed = self.released = self.reserved = self.done = self.failed = 0  # since midnight
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number, self._ids = count(), count(1)
        self.at(0, self._arrive)
        if kind.batch:
            self.at(BATCH, lambda: self._push(kind.batch))
        if kind.bursts:
            self.at(0, self._burst)

    @property
    def workers(self) -> int:
        """Those that are alive."""
        return len(self.idle) + len(self.busy)

    @property
    def outdated(self) -> int:
        """Those of them that began before the last restart signal."""
        return sum(worker.begun < self.restarted for worker in (*self.idle, *self.busy.values()))

    @property
    def age(self) -> float:
        """Seconds for which the oldest job that could be taken has been waiting."""
        return self.now - self.ready[0].available if self.ready else 0.0

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Let something happen."""
        heappush(self._events, (when, next(self._number), what))

    def until(self, when: float) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= when:
            self.now, _, happens = heappop(self._events)
            happens()
        self.now = when

    def restart(self) -> None:
        """Each worker ends after its job, an idle one when it next looks, and its like begins."""
        self.restarted = self.now
        for worker in self.idle:
            self.at(self.now + self.chance.uniform(0, 3), lambda worker=worker: self._leave(worker))  # type: ignore[misc]

    def close(self, seconds: float) -> None:
        """For a while no worker is there and what is begun is done: as when Horizon is terminated and comes again."""
        self.closed = True
        self.at(self.now + seconds, self._open)

    def fail_over(self) -> None:
        """The far side is away: nothing can be pushed or taken, and all workers end in the middle of their jobs."""
        self.away = True
        for job in self.busy:
            self.at(job.reserved + self.kind.retry_after, lambda job=job: self._expire(job))  # type: ignore[misc]
        self.busy.clear()
        self.idle.clear()
        self.at(FAILOVER_ENDS, self._come_back)

    def kill(self) -> None:
        """A worker is killed in the middle of a job; if there is none, the next one that is."""
        if not self.busy:
            self.at(self.now + 1, self.kill)
            return
        job = next(iter(self.busy))
        del self.busy[job]
        self.at(job.reserved + self.kind.retry_after, lambda: self._expire(job))
        self.at(self.now + 2, self._begin)

    def scale(self, wanted: int) -> None:
        """Have so many workers; one in the middle of a job ends after it."""
        self.wanted = wanted
        del self.idle[max(0, wanted - len(self.busy)) :]
        for _ in range(wanted - self.workers):
            self._begin()

    def _arrive(self) -> None:
        if self.chance.random() < business(self.now):
            self._push()
        self.at(self.now + self.chance.expovariate(self.kind.peak), self._arrive)

    def _burst(self) -> None:
        self._push(round(self.chance.triangular(0, LARGEST_BURST, 0) * business(self.now)))
        self.at(self.now + self.chance.expovariate(1 / BURSTS), self._burst)

    def _push(self, jobs: int = 1) -> None:
        if self.away:
            return  # the dispatch fails
        self.pushed += jobs
        self.ready.extend(Job(next(self._ids), self.now) for _ in range(jobs))
        self._hand_out()

    def _hand_out(self) -> None:
        while self.idle and self.ready and not self.closed:
            job, worker = self.ready.popleft(), self.idle.pop(0)
            self.expired.discard(job)
            job.attempts, job.reserved = job.attempts + 1, self.now
            self.held[job.id], self.busy[job] = job, worker
            self.reserved += 1
            takes = self.kind.quickest + self.chance.expovariate(1 / (self.kind.mean - self.kind.quickest))
            end = self.now + min(takes, self.kind.longest)
            self.at(end, lambda job=job, worker=worker: self._end(job, worker))  # type: ignore[misc]

    def _end(self, job: Job, worker: Worker) -> None:
        if self.busy.get(job) is not worker:
            return  # it died
        del self.busy[job], self.held[job.id]
        luck = self.chance.random()
        if luck < FAILS_FOR_GOOD or (luck < FAILS and job.attempts == TRIES):
            self.failed += 1
        elif luck < FAILS:
            self._release(job)
        else:
            self.done += 1
        if self.workers >= self.wanted:
            return
        if worker.begun < self.restarted:
            self.at(self.now + 2, self._begin)
        else:
            self.idle.append(worker)
        self._hand_out()

    def _release(self, job: Job) -> None:
        id_ = job.id if self.kind.keeps_ids else next(self._ids)
        again = Job(id_, self.now + PAUSE, job.attempts)
        self.released += 1
        self.delayed.add(again)
        self.at(again.available, lambda: self._fall_due(again))

    def _fall_due(self, job: Job) -> None:
        self.delayed.remove(job)
        self.ready.append(job)
        self._hand_out()

    def _expire(self, job: Job) -> None:
        job.available = self.now
        self.expired.add(job)
        self.ready.append(job)
        self._hand_out()

    def _leave(self, worker: Worker) -> None:
        if worker in self.idle:
            self.idle.remove(worker)
            self.at(self.now + 2, self._begin)

    def _begin(self) -> None:
        if not self.away and self.workers < self.wanted:
            self.idle.append(Worker(self.now))
            self._hand_out()

    def _open(self) -> None:
        self.closed, self.restarted = False, self.now
        self.idle = [Worker(self.now) for _ in self.idle]
        self._hand_out()

    def _come_back(self) -> None:
        self.away = False
        for _ in range(self.wanted):
            self.at(self.now + self.chance.uniform(1, 5), self._begin)
