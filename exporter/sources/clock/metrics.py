"""What is said of a clock."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Metric, Sample
from ..readings import Reading

OFFSET = Metric("laravel_queue_clock_offset_seconds", "Reference clock minus the exporter's clock.", ("reference",))
ERROR = Metric(
    "laravel_queue_clock_offset_error_seconds", "Half the round trip: the offset is right within this.", ("reference",)
)
METRICS = (OFFSET, ERROR)


def samples(readings: list[Reading]) -> Iterator[Sample]:
    """Offset and error of each reading."""
    for reading in readings:
        yield OFFSET(reading.offset, reading.reference)
        yield ERROR(reading.error, reading.reference)
