"""Horizon's failed jobs: which are kept, and which have failed since we look. Arithmetic only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

MOST = 1000  # that are looked at, the last ones

Failure = tuple[str, float]  # a job's id, and minus the Unix time at which it failed: one may fail, be retried and fail
Class = tuple[str, str]  # queue and class of a job, by the names that they are shown under


class Job(NamedTuple):
    """A job that failed."""

    queue: str
    job_class: str  # as it is shown


class Tally(NamedTuple):
    """What is known, as of the last look. A new look makes a new one."""

    jobs: Mapping[Failure, Job] = {}  # those that are kept
    total: Mapping[Class, int] = {}  # failed since we look
    is_first: bool = True

    def unknown(self, failures: list[Failure]) -> list[Failure]:
        """Those that have to be looked up."""
        return [failure for failure in failures if failure not in self.jobs]

    def after(self, failures: list[Failure], looked_up: Mapping[Failure, Job], shown: Mapping[str, str]) -> Tally:
        """
        What is known now, of queues that are shown. Those of the first look were there before us.

        Where more are kept than we look at, one that is older than all that were known has only
        come into sight, as a newer one was forgotten.
        """
        jobs = {failure: job for failure in failures if (job := self.jobs.get(failure) or looked_up.get(failure))}
        oldest = max((minus for _, minus in self.jobs), default=0.0) if len(self.jobs) >= MOST else 0.0
        new = Counter(
            (shown[job.queue], job.job_class)
            for failure, job in jobs.items()
            if not self.is_first and failure not in self.jobs and failure[1] <= oldest
        )
        names = {*shown.values()}
        known = {key: number for key, number in self.total.items() if key[0] in names}
        classes = {(shown[job.queue], job.job_class) for job in jobs.values()}
        return Tally(jobs, {key: known.get(key, 0) + new[key] for key in {*known, *classes}}, is_first=False)

    def kept(self) -> Counter[str]:
        """How many are kept, by queue."""
        return Counter(job.queue for job in self.jobs.values())
