"""What workers are told through Laravel's cache: the keys, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .. import queues
from ..model import Metric

RESTART_SIGNAL = Metric(
    "laravel_queue_restart_signal_timestamp_seconds",
    "Unix time of the last queue:restart, by the clock of the machine that called it. Absent without the key.",
    ("connection",),
)

RESTART = "illuminate:queue:restart"
PAUSED = "illuminate:queue:paused:{connection}:{queue}"  # Laravel 12.40 and later
ALL_PAUSED = "illuminate:queues:paused"  # Laravel 13.25 and later
FALSE = "b:0;"  # as PHP serialises it
TIME = re.compile(r"i:([0-9]{1,18});|([0-9]{1,18})")  # as PHP serialises a number, or as a number is kept plainly
NO_TIME = "the restart signal is no time from 2005 to ten years ahead, so it is not shown"


def newest(signals: Iterable[str], now: float) -> str | None:
    """Of the restart signals under several prefixes the last one; one that is no time only if there is no other."""
    return max(signals, key=lambda signal: (time_of(signal, now) or 0, signal), default=None)


def time_of(signal: str, now: float) -> int | None:
    """The Unix time that a restart signal is; None if it cannot be one."""
    match = TIME.fullmatch(signal)
    time = int(match[1] or match[2]) if match else 0
    return time if queues.EARLIEST <= time <= now + queues.TEN_YEARS else None
