"""The clocks of the databases, as their own sources read them; nobody is asked a second time."""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Metric, Note, Sample
from ...timing import Deadline
from ..readings import Reading, Readings
from . import metrics

INTERVAL = 15.0  # seconds


class Databases:
    """A database that has not answered for as long as its other numbers are believed has no offset."""

    name = "databases"
    metrics: tuple[Metric, ...] = metrics.METRICS

    def __init__(self, readings: Readings, interval: float = INTERVAL) -> None:
        self.readings, self.interval = readings, interval

    def fetch(self, deadline: Deadline) -> list[Reading]:
        """What the databases' own sources have read."""
        return self.readings.look()

    def measure(self, raw: list[Reading], now: float) -> Iterable[Sample | Note]:
        """Offset and error of each database's clock."""
        yield from metrics.samples(raw)
