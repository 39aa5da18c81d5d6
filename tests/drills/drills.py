"""A drill for each incident."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from exporter.demo.postgres import Postgres

from ..runbooks import waits
from . import stages
from .conducted import Drill, conduct, cures, under
from .stages import among_workers, fargate, horizon, world

WORKERS, POSTGRES, REDIS, AWS = "real workers", "the demo's PostgreSQL", "the demo's Horizon", "the demo's SQS"
ROWS = "DRILL_ROWS"  # the folder in which the rows of the table are left, if somebody wants them
ALL = 1.0  # of the database's time: what is dear may be asked again at once
UNSEEN = "has no word for it"
BY_HAND = "its page has nothing to copy: two files are edited, and the next deploy brings them"


def late(queue: str) -> str:
    """What the status page says of a queue whose jobs wait for longer than they may."""
    return f"{queue} +oldest job [0-9dhms ]+[dhms]"


DRILLS = {
    "flash-sale": Drill("ConnectionsHigh", WORKERS, among_workers(waits.flash_sale, KEEP="4"), cure=cures),
    "double-run": Drill(
        "JobsReservedTwice", WORKERS, among_workers(stages.double_run), "was handed out again", grows=12, cure=cures
    ),
    "stale-code": Drill("WorkersOutdated", WORKERS, among_workers(stages.stale_code), cure=cures),
    "bloat": Drill("DeadTuplesHigh", POSTGRES, world("bloat"), cure=cures),
    "short-retry-after": Drill(
        "TimeoutExceedsRetryAfter", WORKERS, among_workers(stages.short_retry_after), incurable=BY_HAND
    ),
    "sigkill": Drill("OrphanedReservations", WORKERS, among_workers(stages.sigkill), cure=cures),
    "clock-skew": Drill("WorkerClockAhead", WORKERS, among_workers(stages.clock_skew), cure=cures),
    "no-skip-locked": Drill(
        "LockWaits",
        WORKERS,
        among_workers(stages.no_skip_locked, KEEP="6"),
        cure=under("Workers lock without SKIP LOCKED"),
    ),
    "database-bound": Drill("PopSlow", POSTGRES, world("database-bound", ALL), cure=under("Jobs of another queue")),
    "dead-head": Drill("PopSlow", POSTGRES, world("dead-head", ALL), cure=under("Dead rows")),
    "delayed-head": Drill("PopSlow", POSTGRES, world("delayed-head", ALL), cure=under("Delayed jobs")),
    "retry-storm": Drill("RetryStorm", WORKERS, among_workers(stages.retry_storm), cure=cures),
    "starvation": Drill("Starved", WORKERS, among_workers(waits.starvation), late("database/default"), cure=cures),
    "dead-consumer": Drill("Stalled", WORKERS, among_workers(waits.dead_consumer), late("database/emials"), cure=cures),
    "paused": Drill(
        "PausedWithBacklog",
        POSTGRES,
        world("paused", QUEUE="emails", CONNECTION="database", CACHE_PREFIX="laravel_cache_"),
        cure=cures,
    ),
    "horizon-down": Drill("HorizonInactive", REDIS, horizon("horizon-down"), cure=cures),
    "horizon-paused": Drill(
        "HorizonPaused", REDIS, horizon("horizon-paused"), r"paused in Horizon: [\w-]+", cure=cures
    ),
    "no-processes": Drill("HorizonNoProcesses", REDIS, horizon("no-processes", "exports"), cure=cures),
    "overdue": Drill("HorizonNoProcesses", REDIS, horizon("overdue", "exports"), cure=cures),
    "redis-memory": Drill("RedisEvictions", REDIS, horizon("redis-memory"), "Redis may throw jobs away", cure=cures),
    "redis-full": Drill("RedisFull", REDIS, horizon("redis-full"), cure=cures),
    "single-group": Drill("FifoStuck", AWS, fargate("single-group", 1), cure=cures),
    "scale-from-zero": Drill(
        "ScaleFromZeroStuck", AWS, fargate("scale-from-zero", 1), late("sqs/notifications.fifo"), cure=cures
    ),
    "backlog-per-task": Drill("BacklogPerTaskHigh", AWS, fargate("backlog-per-task", 6), cure=cures),
    "flapping": Drill("EcsTasksFlapping", AWS, fargate("flapping", 1, step=1.0), grows=120, unseen=UNSEEN, cure=cures),
    "dead-letters": Drill("DeadLettersPresent", AWS, fargate("dead-letters", 3), grows=10, cure=cures),
    "redelivery": Drill("TimeoutExceedsRetryAfter", AWS, fargate("redelivery"), incurable=BY_HAND),
    "more-tasks-than-groups": Drill("FifoStuck", AWS, fargate("more-tasks-than-groups", 2), cure=cures),
    "tasks-missing": Drill("EcsTasksMissing", AWS, fargate("tasks-missing", 4), unseen=UNSEEN, cure=cures),
}
NOT_DRILLED: dict[str, str] = {}  # incident → why not
TELLING = ("dead-consumer", "horizon-down", "single-group")  # what `make test` drills


def in_(where: str) -> list[Any]:
    """The incidents that are brought about there; those that only `make drill` drills are marked."""
    return [
        pytest.param(name, marks=[] if name in TELLING else [pytest.mark.drill])
        for name, drill in DRILLS.items()
        if drill.where == where
    ]


def drill(incident: str, postgres: Postgres) -> None:
    """Conduct it, and leave its row where somebody wants it."""
    outcome = conduct(incident, DRILLS[incident], postgres)
    if folder := os.environ.get(ROWS):
        (Path(folder) / f"{incident}.json").write_text(json.dumps(asdict(outcome)), "utf-8")
