"""What can be set for the clocks."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from ...settings import Name, Seconds, Settings

SLOWEST_ALLOWED = 64.0  # seconds between two requests to one NTP server: what its operators expect


def slow_enough(value: float) -> float:
    """NTP servers answer a client that asks more often with a kiss-o'-death."""
    if value < SLOWEST_ALLOWED:
        raise ValueError("expected 64s or more, so that no NTP server is asked too often")
    return value


class ClockSettings(Settings):
    """NTP servers to compare our clock with; none unless named."""

    ntp: tuple[Name, ...] = ()
    interval: Annotated[Seconds, AfterValidator(slow_enough)] = SLOWEST_ALLOWED
    timeout: Seconds = 2.0
