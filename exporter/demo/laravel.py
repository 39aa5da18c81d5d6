"""
Laravel's `database` queue driver, statement by statement, as Laravel 12 sends them.

Each function is one call of Laravel's, over the connection of the process that makes it; `now`
is that process's own clock, in whole Unix seconds. Source: Illuminate/Queue/DatabaseQueue.php.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg

from .payload import serialised

Connection = psycopg.Connection[Any]

JOBS = """
CREATE TABLE "jobs" (
    "id" bigserial NOT NULL PRIMARY KEY, "queue" varchar(255) NOT NULL, "payload" text NOT NULL,
    "attempts" smallint NOT NULL, "reserved_at" integer NULL, "available_at" integer NOT NULL,
    "created_at" integer NOT NULL);
CREATE INDEX "jobs_queue_index" ON "jobs" ("queue");
"""
TABLES = f"""{JOBS}
CREATE TABLE "failed_jobs" (
    "id" bigserial NOT NULL PRIMARY KEY, "uuid" varchar(255) NOT NULL, "connection" text NOT NULL,
    "queue" text NOT NULL, "payload" text NOT NULL, "exception" text NOT NULL,
    "failed_at" timestamp(0) without time zone NOT NULL DEFAULT CURRENT_TIMESTAMP);
ALTER TABLE "failed_jobs" ADD CONSTRAINT "failed_jobs_uuid_unique" UNIQUE ("uuid");
CREATE TABLE "cache" (
    "key" varchar(255) NOT NULL PRIMARY KEY, "value" text NOT NULL, "expiration" integer NOT NULL);
CREATE INDEX "cache_expiration_index" ON "cache" ("expiration");
CREATE TABLE "cache_locks" (
    "key" varchar(255) NOT NULL PRIMARY KEY, "owner" varchar(255) NOT NULL, "expiration" integer NOT NULL);
"""
CONNECTION = "database"  # its name in config/queue.php
CACHE_PREFIX = "laravel_cache_"
RESTART = "illuminate:queue:restart"
PAUSED = f"illuminate:queue:paused:{CONNECTION}:{{queue}}"
FOREVER = 315_360_000  # ten years, in seconds

POP = (
    'select * from "jobs" where "queue" = %s and (("reserved_at" is null and "available_at" <= %s)'
    ' or ("reserved_at" <= %s)) order by "id" asc limit 1'
)
INSERT = (
    'insert into "jobs" ("queue", "attempts", "reserved_at", "available_at", "created_at", "payload")'
    ' values (%s, %s, %s, %s, %s, %s) returning "id"'
)


@dataclass(frozen=True, slots=True)
class Record:
    """A reserved job as its worker holds it in memory."""

    id: int
    queue: str
    payload: str
    attempts: int

    @property
    def fields(self) -> dict[str, Any]:
        """The payload, read; nothing if it is not JSON, or not an object."""
        try:
            fields = json.loads(self.payload)
        except ValueError:
            return {}
        return fields if isinstance(fields, dict) else {}


def migrate(connection: Connection, autovacuum_threshold: int) -> None:
    """`php artisan migrate`, and an autovacuum setting of its own for the jobs table."""
    connection.execute(TABLES)
    connection.execute(
        'ALTER TABLE "jobs" SET (autovacuum_vacuum_scale_factor = 0,'
        f" autovacuum_vacuum_threshold = {autovacuum_threshold})"
    )


def push(connection: Connection, queue: str, payload: str, now: int, delay: int = 0) -> int:
    """`Queue::push`, or `later` with a delay. Returns the id."""
    return _insert(connection, (queue, 0, None, now + delay, now, payload))


def pop(connection: Connection, queue: str, now: int, retry_after: int, *, skip_locked: bool = True) -> Record | None:
    """`pop`: in one transaction, lock the first job that may be taken and reserve it."""
    lock = " FOR UPDATE SKIP LOCKED" if skip_locked else " for update"  # Laravel spells them so
    with connection.transaction():
        row = connection.execute(POP + lock, (queue, now, now - retry_after)).fetchone()
        if row is None:
            return None
        id_, queue, payload, attempts = row[:4]
        connection.execute(
            'update "jobs" set "reserved_at" = %s, "attempts" = %s where "id" = %s', (now, attempts + 1, id_)
        )
        return Record(id_, queue, payload, attempts + 1)


def delete(connection: Connection, record: Record) -> None:
    """`deleteReserved`: the job is done. If it is gone already, nothing happens."""
    with connection.transaction():
        _delete(connection, record)


def release(connection: Connection, record: Record, now: int, delay: int = 0) -> int:
    """
    `deleteAndRelease`: a new row with a new id, and the attempts so far. Returns the id.

    The row is written even if the old one is gone: after a double run the job is there twice.
    """
    with connection.transaction():
        _delete(connection, record)
        return _insert(connection, (record.queue, record.attempts, None, now + delay, now, record.payload))


def fail(connection: Connection, record: Record, exception: str, now: int) -> None:
    """`Job::fail`: the row goes, then the failure is logged by the failed job provider `database-uuids`."""
    delete(connection, record)
    connection.execute(
        'insert into "failed_jobs" ("uuid", "connection", "queue", "payload", "exception", "failed_at")'
        " values (%s, %s, %s, %s, %s, %s)",
        (
            record.fields["uuid"],
            CONNECTION,
            record.queue,
            record.payload,
            exception,
            datetime.fromtimestamp(now, UTC).replace(tzinfo=None),
        ),
    )


def cached(connection: Connection, key: str, now: int) -> str | None:
    """`Cache::get`, as the database store keeps it: serialised by PHP."""
    row = connection.execute(
        'select "value", "expiration" from "cache" where "key" in (%s)', (CACHE_PREFIX + key,)
    ).fetchone()
    return row[0] if row is not None and row[1] > now else None


def cache_forever(connection: Connection, key: str, value: object, now: int) -> None:
    """`Cache::forever`."""
    connection.execute(
        'insert into "cache" ("expiration", "key", "value") values (%s, %s, %s)'
        ' on conflict ("key") do update set "expiration" = excluded."expiration", "value" = excluded."value"',
        (now + FOREVER, CACHE_PREFIX + key, serialised(value)),
    )


def restart(connection: Connection, now: int) -> None:
    """`php artisan queue:restart`."""
    cache_forever(connection, RESTART, now, now)


def pause(connection: Connection, queue: str, now: int) -> None:
    """`php artisan queue:pause database:QUEUE`."""
    cache_forever(connection, PAUSED.format(queue=queue), True, now)


def resume(connection: Connection, queue: str) -> None:
    """`php artisan queue:resume database:QUEUE`."""
    connection.execute('delete from "cache" where "key" = %s', (CACHE_PREFIX + PAUSED.format(queue=queue),))


def copy_in(connection: Connection, rows: Iterable[tuple[str, int, int | None, int, int, str]]) -> None:
    """Many jobs at once, in the order of `columns`, for a past that the world begins with."""
    columns = '"queue", "attempts", "reserved_at", "available_at", "created_at", "payload"'
    with connection.cursor().copy(f'COPY "jobs" ({columns}) FROM STDIN') as copy:
        for row in rows:
            copy.write_row(row)


def _insert(connection: Connection, row: tuple[str, int, int | None, int, int, str]) -> int:
    (id_,) = connection.execute(INSERT, row).fetchone() or (0,)
    return int(id_)


def _delete(connection: Connection, record: Record) -> None:
    if connection.execute('select * from "jobs" where "id" = %s limit 1 for update', (record.id,)).fetchone():
        connection.execute('delete from "jobs" where "id" = %s', (record.id,))
