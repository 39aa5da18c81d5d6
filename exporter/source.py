"""
What a source and a collector are.

A source is one thing watched over one connection. It has collectors: each asks one
question, in two halves. `fetch` does I/O and no arithmetic, `measure` does arithmetic
and no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from .errors import SourceError
from .model import Metric, Note, Sample
from .timing import FAILURES_PAID, Deadline

Raw = TypeVar("Raw")
Result = Sample | Note | SourceError


class Collector(Protocol[Raw]):
    """One question asked of a source; it succeeds whole or fails alone."""

    name: str
    metrics: tuple[Metric, ...]  # all that `measure` may yield

    @property
    def interval(self) -> float:
        """Seconds between two polls, as configured; less while something needs to be watched closely."""

    def fetch(self, deadline: Deadline) -> Raw:
        """Ask the far side, handing `deadline.left()` to all that can block. Raises `SourceError`."""

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        """
        Turn the answer into samples; the same answer measured again gives the same ones, counters as well.

        A part that failed (one queue of many) is a `SourceError`, yielded and not raised: it is
        counted under its reason and told, its samples are not there, and the rest stands.
        `now` is our own Unix time; a far side that has a clock uses its own.
        """


class Joined(NamedTuple):
    """What follows from the answers of several collectors, and until when that holds."""

    samples: tuple[Sample, ...] = ()
    until: float = inf  # on the monotonic clock


Join = Callable[[Collection[str]], Joined]  # given the names of the collectors whose answers may be shown; asks nobody


def nothing_joined(_: Collection[str]) -> Joined:
    """Each answer stands for itself."""
    return Joined()


def nothing() -> None:
    """Close nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """One thing watched, polled by one thread over one connection."""

    name: str
    collectors: tuple[Collector[Any], ...]  # the most important first
    timeout: float  # seconds that one poll may take
    duty: float = 1.0  # share of the wall time that all collectors together may keep the far side busy
    constants: tuple[Sample, ...] = ()  # what the settings alone say; never withdrawn
    joined: Join = nothing_joined  # called whenever a page is made
    close: Callable[[], None] = nothing

    @property
    def failures_paid(self) -> float:
        """How many times its length a failed poll is paid for with; once where all the time may be taken."""
        return min(FAILURES_PAID, 1 / self.duty)
