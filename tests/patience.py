"""Waiting for real processes: as long as it takes, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

PAUSE = 0.02  # seconds between two looks
PATIENCE = 60.0  # seconds: on a busy machine a poll is dear, and the next one may be half a minute away


def until(
    condition: Callable[[], Answer], within: float = PATIENCE, pause: float = PAUSE, what: Callable[[], str] = str
) -> Answer:
    """
    What `condition` answers as soon as that is true; fails the test after `within` seconds of real time.

    Between two looks it waits `pause` seconds; `what` tells how things are when it fails.
    """
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"still {answer!r} after {within} s {what()}".rstrip()
        time.sleep(pause)
    return answer
