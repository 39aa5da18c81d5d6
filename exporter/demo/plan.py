"""
The nouns that a world is made of. Plain frozen data: an incident is a change of some of these numbers.

Imports nothing but the standard library. Seconds everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

RETRY_AFTER = 90  # seconds, as in config/queue.php of a new application


@dataclass(frozen=True, slots=True)
class Job:
    """A class of jobs: what its payload says, and what happens when one of it runs."""

    name: str
    seconds: tuple[float, float] = (0.1, 0.3)  # how long it runs: between these
    timeout: int | None = None  # its own $timeout
    tries: int | None = None  # its own $tries
    backoff: tuple[int, ...] = ()  # its own $backoff
    fails: float = 0.0  # the chance that it throws
    releases: float = 0.0  # the chance that it puts itself back (a rate limit)
    kills: float = 0.0  # the chance that its worker is killed half way through


@dataclass(frozen=True, slots=True)
class Pool:
    """Worker processes started with the same command line, on the same machine."""

    name: str
    queues: tuple[str, ...]  # --queue: all of the first before any of the second
    workers: int
    sleep: float = 1.0  # --sleep
    timeout: int = 60  # --timeout
    tries: int = 3  # --tries
    backoff: int = 5  # --backoff
    ahead: float = 0.0  # by how much the machine's clock is wrong
    skip_locked: bool = True
    own_cache: bool = False  # a cache store of its own: neither restart nor pause reaches it

    @property
    def application_name(self) -> str:
        """How its workers' sessions are called."""
        return f"worker-{self.name}"


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Jobs that the web application dispatches, at random moments."""

    queue: str
    job: Job
    per_second: float
    delay: int = 0


@dataclass(frozen=True, slots=True)
class Backlog:
    """
    Jobs that are in the table from the start.

    They became due between `oldest` and `newest` seconds ago, in the order of their ids; below
    zero they are delayed. With `reserved` a worker that is gone took them so many seconds ago.
    """

    queue: str
    job: Job
    count: int
    oldest: float
    newest: float = 0.0
    reserved: float | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Horizon:
    """A Redis with queues in it, and the Horizon that works on them; where there is a redis-server."""

    state: Literal["running", "paused", "down"] = "running"
    workers: Mapping[str, int] = field(default_factory=lambda: {"default": 3, "mails": 2})  # by queue
    per_second: Mapping[str, float] = field(default_factory=lambda: {"default": 4.0, "mails": 2.0})  # that arrive
    backlog: int = 0  # jobs in `default` from the start, the oldest of them ten minutes old
    due: Mapping[str, int] = field(default_factory=dict)  # by queue: delayed jobs that were due five minutes ago
    sessions: int = 0  # of customers, who fill the memory
    server: Mapping[str, str] = field(default_factory=dict)  # settings of Redis


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole world."""

    targets: Mapping[str, int]  # queue that the settings name → how long a job may wait
    target_wait: int = 60  # the same for all other queues
    pools: tuple[Pool, ...] = ()
    arrivals: tuple[Arrivals, ...] = ()
    backlogs: tuple[Backlog, ...] = ()
    web_sessions: int = 6  # connections of the web application, which dispatches the arrivals
    open_transactions: tuple[str, ...] = ()  # application names of sessions that never commit
    dead_rows: int = 0  # jobs that came and went before, and left their dead rows if something holds the horizon
    retry_after: int = RETRY_AFTER
    paused: tuple[str, ...] = ()  # queues
    restart_after: float | None = None  # when a deploy calls queue:restart
    autovacuum_threshold: int = 5000  # dead rows of the jobs table; the default, 50, is no setting for a queue
    server: Mapping[str, str] = field(default_factory=dict)  # settings of PostgreSQL
    cores: int | None = None  # that PostgreSQL may use; None for all
    horizon: Horizon = Horizon()

    @property
    def jobs(self) -> dict[str, Job]:
        """All classes of jobs by name."""
        jobs = [backlog.job for backlog in self.backlogs] + [some.job for some in self.arrivals]
        return {job.name: job for job in jobs}

    @property
    def workers(self) -> int:
        """All workers of all pools."""
        return sum(pool.workers for pool in self.pools)
