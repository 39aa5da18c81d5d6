"""Jobs that workers hold, for tests: put there, handed out again, and let grow older at once."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from exporter.app import App

from ..world import value

Db = psycopg.Connection[Any]

SLOW = "App\\Jobs\\Slow"


def ago(seconds: str) -> str:
    """So many seconds ago, by the database's clock, as PHP would say it: in whole seconds that have begun."""
    return f"floor(extract(epoch FROM clock_timestamp()) - {seconds})::int"


NOW = ago("0")


def payload(job_class: str = SLOW, timeout: float | None = None) -> str:
    """A payload of Laravel's, its command cut short."""
    command = {"commandName": job_class, "command": 'O:13:"App\\Jobs\\Slow":1:{s:8:"\0*\0order";i:4711;}'}
    return json.dumps({"displayName": job_class, "timeout": timeout, "data": command})


def hold(db: Db, age: float = 0, queue: str = "default", of: str | None = None, attempts: int = 1) -> int:
    """A job that somebody has held for so many seconds, by the database's clock. Returns its id."""
    row = db.execute(
        "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
        f" VALUES (%s, %s, %s, {ago('%s')}, 0, 0) RETURNING id".encode(),
        (queue, payload() if of is None else of, attempts, age),
    ).fetchone()
    return int((row or (0,))[0])


def hand_out_again(db: Db, id_: int, ahead: int = 0) -> None:
    """A second worker takes the job, whose clock is ahead by so many seconds."""
    db.execute(
        f"UPDATE jobs SET attempts = attempts + 1, reserved_at = {NOW} + %s WHERE id = %s".encode(), (ahead, id_)
    )


def grow_older(db: Db, seconds: float) -> None:
    """Let all that is held have been held for longer, as if time had passed."""
    db.execute("UPDATE jobs SET reserved_at = reserved_at - %s", [seconds])


def repeated(app: App, queue: str = "default") -> float | None:
    """Jobs of the queue that were handed out again, on the page."""
    return value(app, "reservations_repeated_total", queue=queue)


def long(app: App, queue: str = "default", job_class: str = SLOW) -> float | None:
    """Long reservations of a class, on the page."""
    return value(app, "long_reservations_total", queue=queue, job_class=job_class)


def lead(app: App, queue: str = "default") -> float | None:
    """How far a worker's clock of the queue is said to be off."""
    return value(app, "reserved_at_lead_seconds", queue=queue)
