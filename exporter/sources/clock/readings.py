"""Where sources leave what the far side's clock said, so that nobody has to connect a second time for it."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple


class Reading(NamedTuple):
    """A far clock, read at some moment between sending and receiving. Unix times."""

    reference: str
    far: float
    sent: float
    received: float

    @property
    def offset(self) -> float:
        """Reference minus local clock, in seconds, as if read halfway."""
        return self.far - (self.sent + self.received) / 2

    @property
    def error(self) -> float:
        """Half the round trip, in seconds: the offset is right within this."""
        return (self.received - self.sent) / 2


class Readings:
    """The reading of each clock with the smallest error, since they were last taken."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._best: dict[str, Reading] = {}

    def put(self, reading: Reading) -> None:
        """Keep this reading if no better one is held."""
        with self._lock:
            held = self._best.get(reading.reference)
            if held is None or reading.error < held.error:
                self._best[reading.reference] = reading

    def take(self) -> list[Reading]:
        """Hand over what is held, and start anew."""
        with self._lock:
            taken, self._best = self._best, {}
        return list(taken.values())
