"""What is made of CloudWatch's numbers, of which each is of one minute: totals, and how long a job takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from .session import Counts

MINUTE = 60  # seconds
SETTLED = 120  # seconds after which a minute's number is taken to be complete
WINDOW = 900  # seconds that the means are of
SHORTEST = 300.0  # seconds; below that a mean says little
FEWEST_JOBS, FEWEST_COUNTS = 10, 4
KEPT = 45  # minutes: those of a window, a clock that is set by as much as AWS bears with, and some more

Minutes = Mapping[int, float]  # Unix time at which a minute began → its number


def beginning(at: float) -> int:
    """When the minute of this moment began."""
    return int(at // MINUTE * MINUTE)


class Tally(NamedTuple):
    """
    How many there were, by the largest number that CloudWatch has told of each minute.

    So what it learns of a minute later is added, nothing is added twice, and our own clock may be wrong for a while.
    """

    total: float
    since: int  # Unix time; no minute before it is counted, except those that are kept
    minutes: Minutes

    @classmethod
    def begun(cls, told: Minutes, now: float) -> Tally:
        """Nothing has been counted yet: what CloudWatch knows already is not ours."""
        return cls(0, beginning(now), newest(told))

    def after(self, told: Minutes, now: float) -> Tally:
        """With what CloudWatch has told `now`. Where we began with a clock that was ahead, from now on."""
        since = self.since if self.total else min(self.since, beginning(now))
        more = {
            at: count
            for at, count in told.items()
            if count > self.minutes.get(at, 0) and (at >= since or at in self.minutes)
        }
        total = self.total + sum(count - self.minutes.get(at, 0) for at, count in more.items())
        minutes = {**self.minutes, **more}
        kept = newest(minutes)
        if len(kept) < len(minutes):  # an older one would be taken for a new one
            since = max(since, min(kept))
        return Tally(total, since, kept)


def newest(minutes: Minutes) -> Minutes:
    """As many of the newest minutes as are kept."""
    return dict(sorted(minutes.items())[-KEPT:])


def seconds_per_job(history: Sequence[Counts], queue: str, done: Minutes, until: int) -> float | None:
    """
    Mean seconds from receiving to deleting a message; None while too little is known.

    By Little's law: jobs under way = jobs done per second × seconds per job. `done` says how many
    were deleted in each minute; `until` is the end of the last one that CloudWatch has settled.
    """
    if not history:
        return None
    since = max(until - WINDOW, -(-history[0].wall // MINUTE) * MINUTE)
    held = [counts.reserved[queue] for counts in history if since <= counts.wall < until and queue in counts.reserved]
    jobs = sum(count for minute, count in done.items() if since <= minute < until)
    if until - since < SHORTEST or len(held) < FEWEST_COUNTS or jobs < FEWEST_JOBS:
        return None
    return fmean(held) * (until - since) / jobs or None
