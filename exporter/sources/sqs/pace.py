"""How long a job takes, by Little's law: jobs under way = jobs done per second × seconds per job. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from .session import Counts

WINDOW = 900.0  # seconds that the means are of
SHORTEST = 300.0  # seconds; below that a mean says little
FEWEST_JOBS, FEWEST_COUNTS = 10, 4
MINUTE = 60


def seconds_per_job(history: Sequence[Counts], queue: str, done: Mapping[int, float], until: int) -> float | None:
    """
    Mean seconds from receiving to deleting a message; None while too little is known.

    `done` says how many were deleted in the minute that began at each Unix time; `until` is the
    end of the last minute that CloudWatch has settled.
    """
    if not history:
        return None
    since = max(until - WINDOW, -(-history[0].wall // MINUTE) * MINUTE)
    held = [counts.reserved[queue] for counts in history if since <= counts.wall < until and queue in counts.reserved]
    jobs = sum(count for minute, count in done.items() if since <= minute < until)
    if until - since < SHORTEST or len(held) < FEWEST_COUNTS or jobs < FEWEST_JOBS:
        return None
    return fmean(held) * (until - since) / jobs or None
