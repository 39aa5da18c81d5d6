"""The driver's calls, on a real PostgreSQL."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from random import Random

import psycopg
import pytest

from exporter.demo import laravel
from exporter.demo.laravel import Connection, Record
from exporter.demo.payload import payload
from exporter.demo.plan import Job

NOW = 1_800_000_000
INVOICE = payload(Job("App\\Jobs\\SendInvoice"), "default", Random(1), NOW)


def push(connection: Connection, now: int = NOW, delay: int = 0, queue: str = "default") -> int:
    """Dispatch a job. Returns its id."""
    return laravel.push(connection, queue, INVOICE, now, delay)


def pop(connection: Connection, now: int = NOW, queue: str = "default", retry_after: int = 90) -> Record | None:
    """Take a job, if there is one to take."""
    return laravel.pop(connection, queue, now, retry_after)


def popped(connection: Connection, now: int = NOW) -> Record:
    """Take a job; there must be one."""
    record = pop(connection, now)
    assert record
    return record


def row(connection: Connection, id_: int) -> tuple[object, ...] | None:
    """Attempts, reserved_at, available_at and created_at of a row."""
    return connection.execute(
        "SELECT attempts, reserved_at, available_at, created_at FROM jobs WHERE id = %s", (id_,)
    ).fetchone()


def test_tables_are_laravels(connection: Connection) -> None:
    """The jobs table has the columns, types and indexes that Laravel's migration gives it on PostgreSQL."""
    columns = connection.execute(
        "SELECT attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END"
        "  FROM pg_attribute WHERE attrelid = 'jobs'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    assert [column for (column,) in columns] == [
        "id bigint not null",
        "queue character varying(255) not null",
        "payload text not null",
        "attempts smallint not null",
        "reserved_at integer",
        "available_at integer not null",
        "created_at integer not null",
    ]
    indexes = connection.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'jobs' ORDER BY 1").fetchall()
    assert [index for (index,) in indexes] == ["jobs_pkey", "jobs_queue_index"]


def test_pop_takes_the_lowest_id(connection: Connection) -> None:
    """The order is that of the ids, whatever became due first; a taken job is reserved with one more attempt."""
    first, second = push(connection, delay=20), push(connection, delay=0)
    taken = [popped(connection, NOW + 30), popped(connection, NOW + 31)]
    assert [record.id for record in taken] == [first, second]
    assert pop(connection, NOW + 32) is None
    assert row(connection, first) == (1, NOW + 30, NOW + 20, NOW)
    assert taken[0] == Record(first, "default", INVOICE, 1)


def test_delayed_job_is_taken_when_due(connection: Connection) -> None:
    """A delayed job is taken in the second in which it becomes due, not before."""
    push(connection, delay=60)
    assert pop(connection, NOW + 59) is None
    assert pop(connection, NOW + 60)


def test_expired_job_is_taken_again(connection: Connection) -> None:
    """A job held for retry_after is taken again, before all newer ones, with one more attempt."""
    held, waiting = push(connection), push(connection)
    popped(connection)
    assert popped(connection, NOW + 89).id == waiting
    again = popped(connection, NOW + 90)
    assert (again.id, again.attempts) == (held, 2)
    assert row(connection, held) == (2, NOW + 90, NOW, NOW)


def test_no_row_is_taken_twice(tables: str, connection: Connection) -> None:
    """A worker steps over the row that another one is just taking, and does not wait for it."""
    first, second = push(connection), push(connection)
    with psycopg.connect(tables, autocommit=True) as other, connection.transaction():
        assert popped(connection).id == first
        other.execute("SET lock_timeout = '5s'")
        assert popped(other).id == second
        assert pop(other) is None


def test_without_skip_locked_workers_wait(tables: str, connection: Connection) -> None:
    """Without SKIP LOCKED a worker waits for the one that is just taking a row."""
    push(connection)
    push(connection)
    with psycopg.connect(tables, autocommit=True) as other, connection.transaction():
        popped(connection)
        other.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            laravel.pop(other, "default", NOW, 90, skip_locked=False)


def test_many_workers_share_the_jobs(tables: str, connection: Connection) -> None:
    """Eight workers at once take each of 200 jobs exactly once."""
    pushed = [push(connection) for _ in range(200)]

    def work(_: int) -> list[int]:
        with psycopg.connect(tables, autocommit=True) as own:
            return [record.id for record in iter(lambda: pop(own), None)]

    with ThreadPoolExecutor(8) as workers:
        taken = [id_ for ids in workers.map(work, range(8)) for id_ in ids]
    assert sorted(taken) == pushed


def test_release_is_a_new_row(connection: Connection) -> None:
    """A released job has a new id and a new created_at, and keeps its payload and its attempts."""
    old = push(connection)
    new = laravel.release(connection, popped(connection), NOW + 5, delay=10)
    assert new > old
    assert row(connection, old) is None
    assert row(connection, new) == (1, None, NOW + 15, NOW + 5)
    assert popped(connection, NOW + 15) == Record(new, "default", INVOICE, 2)


def test_job_that_ran_twice_is_deleted_once(connection: Connection) -> None:
    """After a double run the second worker finds nothing to delete, and a release makes the job come back."""
    push(connection)
    first = popped(connection)
    second = popped(connection, NOW + 90)
    laravel.delete(connection, first)
    laravel.delete(connection, second)
    assert pop(connection, NOW + 1000) is None
    laravel.release(connection, second, NOW + 95)
    assert popped(connection, NOW + 95).attempts == 3


def test_failure_is_logged(connection: Connection) -> None:
    """A failed job leaves the jobs table for failed_jobs, under its payload's uuid, at its worker's time in UTC."""
    push(connection)
    record = popped(connection)
    laravel.fail(connection, record, "RuntimeException: boom", NOW + 7)
    assert row(connection, record.id) is None
    (failed,) = connection.execute(
        "SELECT uuid, connection, queue, payload, exception, extract(epoch FROM failed_at)::int FROM failed_jobs"
    ).fetchall()
    assert failed == (
        record.fields["uuid"], "database", "default", INVOICE, "RuntimeException: boom", NOW + 7,
    )  # fmt: skip


def test_queues_are_apart(connection: Connection) -> None:
    """A pop sees the jobs of its own queue alone."""
    push(connection, queue="emails")
    assert pop(connection, queue="default") is None
    assert pop(connection, queue="emails")


def test_cache_keeps_what_php_serialised(connection: Connection) -> None:
    """The restart signal is `i:…;` for ten years and is set anew; a pause is there until it is resumed."""
    laravel.restart(connection, NOW)
    laravel.restart(connection, NOW + 60)
    laravel.pause(connection, "default", NOW)
    rows = dict(connection.execute('SELECT key, value || expiration FROM "cache"').fetchall())
    assert rows == {
        "laravel_cache_illuminate:queue:restart": f"i:{NOW + 60};{NOW + 60 + 315_360_000}",
        "laravel_cache_illuminate:queue:paused:database:default": f"b:1;{NOW + 315_360_000}",
    }
    assert laravel.cached(connection, laravel.RESTART, NOW + 61) == f"i:{NOW + 60};"
    laravel.resume(connection, "default")
    assert laravel.cached(connection, laravel.PAUSED.format(queue="default"), NOW) is None


def test_expired_cache_entry_is_gone(connection: Connection) -> None:
    """An entry past its expiration is not there."""
    laravel.restart(connection, NOW)
    assert laravel.cached(connection, laravel.RESTART, NOW + 315_360_000) is None


def test_payload_is_refused_by_json_operators(connection: Connection) -> None:
    """The payload is valid JSON with a NUL in it, so PostgreSQL's operators refuse it, as they refuse real ones."""
    push(connection)
    assert connection.execute("SELECT json_typeof(payload::json) FROM jobs").fetchone() == ("object",)
    with pytest.raises(psycopg.errors.UntranslatableCharacter, match=re.escape("\\u0000")):
        connection.execute("SELECT payload::jsonb ->> 'displayName' FROM jobs")
