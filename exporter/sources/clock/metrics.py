"""What is said of a clock."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Limit, Metric, Sample
from ..readings import Reading

ERROR = Metric(
    "laravel_queue_clock_offset_error_seconds", "Half the round trip: the offset is right within this.", ("reference",)
)
OFFSET = Metric(
    "laravel_queue_clock_offset_seconds",
    "Reference clock minus the exporter's clock.",
    ("reference",),
    limit=Limit(
        1, "by the exporter's clock, this one is {value:ahead}", "LaravelQueueClockOffset", either_way=True, slack=ERROR
    ),
)
METRICS = (OFFSET, ERROR)


def samples(readings: list[Reading]) -> Iterator[Sample]:
    """Offset and error of each reading."""
    for reading in readings:
        yield OFFSET(reading.offset, reading.reference)
        yield ERROR(reading.error, reading.reference)
