"""What can be set for the clocks."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ...settings import Name, Seconds, Settings, at_least, each_once

PORT = 123  # of every NTP server; a test has its own
SHORTEST_INTERVAL = 64.0  # seconds between two requests to one NTP server: what its operators expect


class ClockSettings(Settings):
    """NTP servers to compare our clock with; none unless named."""

    ntp: Annotated[tuple[Name, ...], AfterValidator(each_once)] = Field(
        default=(), description="NTP servers; with two, one that is wrong or gone shows"
    )
    interval: Annotated[
        Seconds, AfterValidator(at_least(SHORTEST_INTERVAL, "so that no NTP server is asked too often"))
    ] = Field(default=SHORTEST_INTERVAL, description="between two requests to one server; 64s at least")
    timeout: Seconds = Field(default=2.0, description="of one round of requests")
