"""
Which alert is meant for which incident: the first one tells it, the others may rightly fire with it.

The names are those that `queue-exporter demo --incident` takes.
"""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """How an incident is told."""

    by: tuple[str, ...]  # at least one of these has to fire, and each of them may
    with_: tuple[str, ...] = ()  # what else is true then


WAITING = ("WaitTooLong", "WaitBudgetBurn", "WaitWithoutTarget")
DEAD_ROWS = ("DeadTuplesHigh", "AutovacuumNotRunning", "TableBloated", "XminHeld")
TOLD = {
    "flash-sale": Told(("ConnectionsHigh", "ConnectionsExhausted"), (*WAITING, "CapacityLow")),
    "double-run": Told(("JobsReservedTwice",), ("DurationNearRetryAfter", "TimeoutExceedsRetryAfter", *WAITING)),
    "stale-code": Told(("WorkersOutdated",)),
    "bloat": Told(("DeadTuplesHigh", "XminHeld"), (*DEAD_ROWS, "PopSlow")),
    "short-retry-after": Told(("TimeoutExceedsRetryAfter",), ("DurationNearRetryAfter",)),
    "sigkill": Told(
        ("OrphanedReservations",), ("JobsRerun", "ReservationsExpired", "DurationNearRetryAfter", *WAITING)
    ),
    "clock-skew": Told(("WorkerClockAhead",), ("JobsReservedTwice", *WAITING)),
    "no-skip-locked": Told(("LockWaits",), (*WAITING, "CapacityLow")),
    "database-bound": Told(("PopSlow",), (*WAITING, "PollSlow", "CapacityLow")),
    "dead-head": Told(("PopSlow",), ("XminHeld", "DeadTuplesHigh", "TableBloated")),
    "delayed-head": Told(("PopSlow",), ("PollSlow",)),
    "retry-storm": Told(("RetryStorm",), ("FailureRatioElevated", "FailureRatioHigh", *WAITING, "CapacityLow")),
    "starvation": Told(("Starved",), (*WAITING, "Stalled", "CapacityLow")),
    "dead-consumer": Told(("Stalled",), WAITING),
    "paused": Told(("PausedWithBacklog",), WAITING),  # once it is resumed, what was left there is late
    "horizon-down": Told(
        ("HorizonInactive",), (*WAITING, "HorizonNoProcesses", "NoWorkers", "Stalled", "ReservationsExpired")
    ),
    "horizon-paused": Told(("HorizonPaused", "PausedWithBacklog"), WAITING),  # the same
    "no-processes": Told(("HorizonNoProcesses",), (*WAITING, "Stalled")),
    "redis-full": Told(
        ("RedisFull",), ("RedisMemoryHigh", "HorizonInactive", "HorizonNoProcesses", "NoWorkers", *WAITING)
    ),
    "redis-memory": Told(("RedisEvictions", "RedisEvictionPolicy"), ("RedisMemoryHigh", "FailureRatioElevated")),
    "overdue": Told(("Stalled", "HorizonNoProcesses"), WAITING),
    "single-group": Told(("FifoStuck",), (*WAITING, "BacklogPerTaskHigh")),
    "scale-from-zero": Told(("ScaleFromZeroStuck",), (*WAITING, "Stalled", "BacklogPerTaskHigh")),
    "backlog-per-task": Told(("BacklogPerTaskHigh",), (*WAITING, "EcsTasksMissing")),
    "flapping": Told(("EcsTasksFlapping",), ("EcsTasksMissing", *WAITING)),
    "dead-letters": Told(("DeadLettersPresent",), WAITING),
    "redelivery": Told(("TimeoutExceedsRetryAfter",)),
    "more-tasks-than-groups": Told(("FifoStuck",), (*WAITING, "BacklogPerTaskHigh")),
    "tasks-missing": Told(("EcsTasksMissing",), (*WAITING, "BacklogPerTaskHigh")),
}
