"""What can be set for the clocks."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from ...settings import Name, Seconds, Settings

SHORTEST_INTERVAL = 64.0  # seconds between two requests to one NTP server: what its operators expect


def slow_enough(value: float) -> float:
    """NTP servers answer a client that asks more often with a kiss-o'-death."""
    if value < SHORTEST_INTERVAL:
        raise ValueError("expected 64s or more, so that no NTP server is asked too often")
    return value


def each_once(servers: tuple[str, ...]) -> tuple[str, ...]:
    """A server named twice would be asked twice as often."""
    if len(set(servers)) < len(servers):
        raise ValueError("expected each server once")
    return servers


class ClockSettings(Settings):
    """NTP servers to compare our clock with; none unless named."""

    ntp: Annotated[tuple[Name, ...], AfterValidator(each_once)] = ()
    interval: Annotated[Seconds, AfterValidator(slow_enough)] = SHORTEST_INTERVAL
    timeout: Seconds = 2.0
