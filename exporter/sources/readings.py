"""Where sources leave what the far side's clock said, so that nobody has to connect a second time for it."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from ..timing import Clock

A_MINUTE = 60.0  # seconds


class Reading(NamedTuple):
    """How far a clock is ahead of ours, in seconds, and within how many that is right."""

    reference: str
    offset: float
    error: float

    @classmethod
    def between(cls, reference: str, far: float, sent: float, received: float) -> Reading:
        """What a far clock said between sending and receiving, as if read halfway. Unix times."""
        return cls(reference, far - (sent + received) / 2, (received - sent) / 2)


@dataclass(slots=True)
class Held:
    """A reading, how long it is good for, and whether somebody has seen it."""

    reading: Reading
    until: float  # on the monotonic clock
    seen: bool = False


class Readings:
    """The reading of each clock with the smallest error among those that nobody has seen yet."""

    def __init__(self, clock: Clock = Clock()) -> None:
        self._clock, self._lock = clock, Lock()
        self._held: dict[str, Held] = {}

    def put(self, reading: Reading, good_for: float = A_MINUTE) -> None:
        """
        Keep this reading for so many seconds, if no better one is held.

        One in which the answer came before the question is none: our clock was set back in between.
        """
        if reading.error < 0:
            return
        now = self._clock.mono()
        with self._lock:
            held = self._held.get(reading.reference)
            if held is None or held.seen or held.until < now or reading.error < held.reading.error:
                self._held[reading.reference] = Held(reading, now + good_for)

    def look(self) -> list[Reading]:
        """What is held and still good. From now on each gives way to any newer one."""
        now = self._clock.mono()
        with self._lock:
            self._held = {reference: held for reference, held in self._held.items() if now <= held.until}
            for held in self._held.values():
                held.seen = True
            return [held.reading for held in self._held.values()]
