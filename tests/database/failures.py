"""Failed jobs as Laravel writes them, in the tables of all its versions, and what is shown of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, LiteralString

import psycopg

from exporter.app import App
from exporter.sources.database.failed_jobs import FailedJobs

from ..world import poll, state, value

Db = psycopg.Connection[Any]
Failures = dict[tuple[str, str, str], float]

TABLE: LiteralString = (
    "CREATE TABLE failed_jobs (id {id} PRIMARY KEY, {uuid}connection {name} NOT NULL, queue {name} NOT NULL, "
    "payload text NOT NULL, exception text NOT NULL, failed_at timestamp(0) NOT NULL DEFAULT CURRENT_TIMESTAMP)"
)
UUID: LiteralString = "uuid varchar(255) NOT NULL UNIQUE, "
TABLES: dict[str, LiteralString] = {
    "5.4": TABLE.format(id="serial", uuid="", name="text"),
    "5.5": TABLE.format(id="bigserial", uuid="", name="text"),
    "8": TABLE.format(id="bigserial", uuid=UUID, name="text"),
    "13.9": TABLE.format(id="bigserial", uuid=UUID, name="varchar(255)")
    + "; CREATE INDEX ON failed_jobs (connection, queue, failed_at)",
}
UUIDS: LiteralString = TABLE.format(id="uuid", uuid="", name="text")


def create(db: Db, version: str = "8") -> None:
    """The table as this version of Laravel makes it."""
    db.execute("DROP TABLE IF EXISTS failed_jobs")
    db.execute(TABLES[version])


def payload(job_class: str, command: str = "") -> str:
    """The payload of a job of this class, in Laravel's order."""
    data = {"commandName": job_class, "command": command}
    return json.dumps({"uuid": "6120087c", "displayName": job_class, "timeout": None, "data": data})


def fail(db: Db, *classes: str, queue: str = "default", connection: str = "database") -> list[int]:
    """A failed job of each of these classes (A is App\\Jobs\\A). Returns the ids."""
    return insert(db, [(connection, queue, payload(f"App\\Jobs\\{name}")) for name in classes])


def insert(db: Db, rows: Iterable[tuple[str, str, str]]) -> list[int]:
    """Rows of (connection, queue, payload), in whichever of the tables there is. Returns the ids."""
    columns = {
        name for (name,) in db.execute("SELECT attname FROM pg_attribute WHERE attrelid = 'failed_jobs'::regclass")
    }
    also = ("uuid, ", "gen_random_uuid()::text, ") if "uuid" in columns else ("", "")
    connections, queues, payloads = zip(*rows, strict=True)
    found = db.execute(
        f"INSERT INTO failed_jobs ({also[0]}connection, queue, payload, exception)"
        f" SELECT {also[1]}new.*, 'Exception: it failed' FROM unnest(%s::text[], %s::text[], %s::text[]) AS new"
        " RETURNING id",
        [[*connections], [*queues], [*payloads]],
    )
    return [id_ for (id_,) in found]


def collector(app: App) -> FailedJobs:
    """The collector itself, to ask it apart from the poller."""
    (found,) = [c for c in app.pollers[0].source.collectors if isinstance(c, FailedJobs)]
    return found


def shown(app: App) -> Failures:
    """All counters by (connection, queue, class), as of the last poll."""
    samples = state(app, "failed_jobs").samples
    return {
        (labels[0], labels[1], labels[2].removeprefix("App\\Jobs\\")): number
        for metric, labels, number in samples
        if metric.name == "laravel_queue_failed_jobs_total"
    }


def counted(app: App) -> Failures:
    """The counters that are not zero, polled anew."""
    poll(app, "failed_jobs")
    assert not state(app, "failed_jobs").error, state(app, "failed_jobs").error
    return {labels: number for labels, number in shown(app).items() if number}


def dropped(app: App, label: str) -> float:
    """How many values of this label were counted under `other`."""
    return value(app, "labels_dropped_total", collector="failed_jobs", label=label) or 0


def kept(app: App) -> dict[tuple[str, str], float]:
    """The rows by connection and queue, as of the last poll."""
    samples = state(app, "failed_jobs").samples
    return {labels[:2]: number for metric, labels, number in samples if metric.name == "laravel_queue_failed_jobs"}  # type: ignore[misc]
