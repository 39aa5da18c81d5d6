"""All arithmetic about time, as pure functions of numbers handed in. Seconds everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .errors import SourceError

BELIEF = 3.5  # a number is believed for so many of the intervals in force when it was taken
PAID_OVER = 4  # polls: what one of them cost is spread over so many intervals
FAILURES_PAID = 30.0  # a failed poll is paid for with so many times its length: two seconds a minute at most
FOR_ALL = 0.4  # of the duty is shared out evenly, so that a dear question does not slow down the cheap ones
LONGEST_BACKOFF = 60.0  # a healed source is seen healed within a minute


def uptime() -> float:
    """Seconds since the machine started: never jumps and, where the system can tell, goes on while it sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Clock:
    """The two clocks, handed in so that tests need not wait."""

    wall: Callable[[], float] = time.time  # Unix time: to compare with what the far side wrote
    mono: Callable[[], float] = uptime  # never jumps: to measure how long


@dataclass(frozen=True, slots=True)
class Deadline:
    """One budget of time for a whole poll, however many calls it takes."""

    at: float
    mono: Callable[[], float] = time.monotonic

    def left(self) -> float:
        """Seconds left; raises `SourceError("timeout")` when there are none."""
        if (left := self.at - self.mono()) <= 0:
            raise SourceError("timeout", "no answer within the time allowed")
        return left

    def share(self, among: int) -> Deadline:
        """An equal part of what is left, so that one who is dead leaves time for the next."""
        return Deadline(self.mono() + self.left() / among, self.mono)


class Need(NamedTuple):
    """What a collector would like: to be asked every `interval`, at `cost` of the far side's time."""

    interval: float
    cost: float


def stretch(needs: Sequence[Need], duty: float) -> list[float]:
    """
    The intervals at which all needs together take at most the share `duty` of the wall time.

    Two fifths of the duty are for all alike, and what one does not need is the others': so what costs
    little keeps its pace. The rest is given out in the order of the needs, which is that of
    their importance: so the first stretches last, and none waits for ever.
    """
    wanted = [need.cost / need.interval for need in needs]
    shares = level(wanted, FOR_ALL * duty)
    left = duty - sum(shares)
    for index, want in enumerate(wanted):
        more = min(want - shares[index], left)
        shares[index] += more
        left -= more
    return [
        need.interval if share >= want else need.cost / share
        for need, want, share in zip(needs, wanted, shares, strict=True)
    ]


def level(wanted: Sequence[float], amount: float) -> list[float]:
    """The amount shared out so that nobody gets more than is wanted, and the smallest share is as large as can be."""
    shares = [0.0] * len(wanted)
    for served, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[index] = min(wanted[index], (amount - sum(shares)) / (len(wanted) - served))
    return shares


def backoff(interval: float, streak: int, roll: float) -> float:
    """
    The pause after `streak` failures in a row: doubled each time, up to a minute.

    `roll`, in [0, 1), takes up to a tenth off, so that exporters do not come back in step.
    What is asked for once a minute or less often keeps its own pace.
    """
    if interval >= LONGEST_BACKOFF:
        return interval
    doubled = interval * 2.0 ** min(streak, 16)
    return max(interval, min(doubled, LONGEST_BACKOFF) * (1 - roll / 10))
