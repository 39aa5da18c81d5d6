"""The clock source: NTP where servers are named, and the databases' clocks."""

from __future__ import annotations

from typing import Any

from ...model import Metric
from ...source import Collector, Source
from ...timing import Clock
from ..readings import Readings
from . import metrics
from .databases import Databases
from .settings import PORT, ClockSettings

NAME = "clock"
METRICS: tuple[Metric, ...] = metrics.METRICS


def open(  # noqa: A001  # as each source's
    settings: ClockSettings, readings: Readings, clock: Clock = Clock(), port: int = PORT
) -> Source:
    """The source for the clocks; asks nobody who is not named in the settings."""
    collectors: list[Collector[Any]] = [Databases(readings)]
    if settings.ntp:
        from .ntp import Ntp  # brings the NTP library, so only when asked for

        collectors.append(Ntp(settings, clock, port))
    return Source(NAME, tuple(collectors), timeout=settings.timeout)
