"""Values as people read them."""

from __future__ import annotations

from math import inf

import pytest

from exporter.amounts import amount, duration
from exporter.model import Metric

AGE = Metric("laravel_queue_age_seconds", "An age.")
USE = Metric("laravel_queue_use_ratio", "Use.")
JOBS = Metric("laravel_queue_some_jobs", "Jobs.")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"), (0.9, "0s"), (1, "1s"), (59.9, "59s"), (60, "1m"), (61, "1m 1s"), (760, "12m 40s"), (3600, "1h"),
        (3660, "1h 1m"), (11100, "3h 5m"), (86399, "23h 59m"), (86400, "1d"), (187200, "2d 4h"), (31536000, "365d"),
        (-40, "-40s"), (-100, "-1m 40s"), (inf, "none"),
    ],
)  # fmt: skip
def test_durations(seconds: float, said: str) -> None:
    """Two units at most, and never a unit that is full."""
    assert duration(seconds) == said


def test_amounts() -> None:
    """A value is told in the unit that its metric's name ends in."""
    assert amount(AGE, 90) == "1m 30s"
    assert amount(USE, 0.805) == "80 %"
    assert amount(JOBS, 1234567) == "1,234,567"
