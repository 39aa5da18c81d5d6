"""Readings of a jobs table, told in seconds since the first of them, and a ledger to take them in."""

from __future__ import annotations

import json
from collections.abc import Iterable

from exporter.sources.classes import JobClasses
from exporter.sources.ledger import Job, Key, Ledger, Reading, Rules

NOW = 1_800_000_000  # the second 0
SLOW = "App\\Jobs\\Slow"
RETRY_AFTER = 90


def payload(job_class: str = SLOW, timeout: float | None = None) -> str:
    """As much of a payload as is looked at."""
    return json.dumps({"displayName": job_class, "timeout": timeout, "data": {"commandName": job_class}})


def job(
    id_: int,
    reserved_at: int,
    attempts: int = 1,
    *,
    queue: str = "default",
    of: str = payload(),
    since: int | None = None,
    available_at: int = 0,
) -> Job:
    """A row that a worker holds since so many seconds."""
    return Job(Key(id_, available_at), queue, attempts, NOW + reserved_at, of, None if since is None else NOW + since)


def reading(
    now: int,
    *rows: Job,
    asked: Iterable[int] = (),
    queues: Iterable[str] = ("default",),
    is_pass: bool = True,
) -> Reading:
    """A look at these rows, and at other ids that were asked for and are gone."""
    ids = frozenset(row.key.id for row in rows) | frozenset(asked)
    return Reading(NOW + now, is_pass, ids, rows, frozenset(queues) | {row.queue for row in rows})


def ledger(interval: float = 15, timeouts: dict[str, float] | None = None, most: int = 100) -> Ledger:
    """One that knows nothing yet; `timeouts` are the workers' by queue."""
    return Ledger(Rules(interval, lambda queue: RETRY_AFTER, (timeouts or {}).get, JobClasses(most).shown))
