"""Horizon's failed jobs: which are kept, and which have failed since we look. Arithmetic only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import NamedTuple

from ...errors import SourceError
from ...queues import OTHER
from .. import payloads
from ..resp.link import Command
from ..resp.replies import Reply, number, pairs
from .fleet import LONGEST

MOST = 1000  # that are looked at, the last ones


class Failure(NamedTuple):
    """That a job failed: the same one may fail, be retried and fail again."""

    id: str
    at: float  # Unix time


class Job(NamedTuple):
    """A job that failed."""

    queue: str
    job_class: str  # as it is shown


Class = tuple[str, str]  # queue and class of a job, by the names that they are shown under


class Tally(NamedTuple):
    """What is known, as of the last look. A new look makes a new one."""

    jobs: Mapping[Failure, Job | None] = {}  # those that are kept; None for one that was there before us, unreadable
    total: Mapping[Class, int] = {}  # failed since we look
    is_first: bool = True

    def unknown(self, failures: list[Failure]) -> list[Failure]:
        """Those that have to be looked up."""
        return [failure for failure in failures if self.jobs.get(failure) is None]

    def after(self, failures: list[Failure], looked_up: Mapping[Failure, Job], shown: Mapping[str, str]) -> Tally:
        """
        What is known now, of queues that are shown. Those of the first look were there before us.

        Where more are kept than we look at, one that is older than all that were known has only
        come into sight, as a newer one was forgotten.
        """
        jobs: dict[Failure, Job | None] = {}
        for failure in failures:
            job = self.jobs.get(failure) or looked_up.get(failure)
            if job or self.is_first or failure in self.jobs:
                jobs[failure] = job
        oldest = min((failure.at for failure in self.jobs), default=-inf) if len(self.jobs) >= MOST else -inf
        new = Counter(
            (shown[job.queue], job.job_class)
            for failure, job in jobs.items()
            if job and not self.is_first and failure not in self.jobs and failure.at >= oldest
        )
        names = {*shown.values()}
        known = {key: number for key, number in self.total.items() if key[0] in names}
        classes = {(shown[job.queue], job.job_class) for job in jobs.values() if job}
        return Tally(jobs, {key: known.get(key, 0) + new[key] for key in {*known, *classes}}, is_first=False)

    def kept(self) -> Counter[str]:
        """How many are kept, by queue."""
        return Counter(job.queue for job in self.jobs.values() if job)


def which(prefix: str) -> list[Command]:
    """How many are kept, and which are the last ones? Horizon sorts them by minus the time, so that they come first."""
    key = f"{prefix}failed_jobs"
    return [("ZCARD", key), ("ZRANGE", key, 0, MOST - 1, "WITHSCORES")]


def failures(reply: Reply) -> list[Failure]:
    """Those that there are; none where that could not be answered."""
    scored = () if isinstance(reply, SourceError) else pairs(reply)
    return [
        Failure(id_.decode(errors="replace"), -minus) for id_, score in scored if (minus := number(score)) is not None
    ]


def each(prefix: str, failures: Iterable[Failure]) -> list[Command]:
    """What do we need to know of each?"""
    return [("HMGET", f"{prefix}{failure.id}", "queue", "name") for failure in failures]


def jobs(
    failures: Iterable[Failure], replies: Iterable[Reply], shown: Callable[[str | None], str]
) -> tuple[dict[Failure, Job], int]:
    """
    The jobs by the answers to `each`, and how many have a class that is not shown under its name.

    One that Horizon has forgotten in the meantime is of the queue `other`.
    """
    found, folded = {}, 0
    for failure, reply in zip(failures, replies, strict=True):
        if not isinstance(reply, SourceError):
            queue, name = (value and value.decode(errors="replace") for value in reply)
            job_class = name if payloads.is_class(name) else None
            found[failure] = Job(queue if queue and len(queue) <= LONGEST else OTHER, shown(job_class))
            folded += job_class not in (None, found[failure].job_class)
    return found, folded
