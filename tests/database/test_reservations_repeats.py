"""What is no second hand-out, however often it happens: releases, retries, and hands in the table."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.demo import laravel
from exporter.demo.laravel import Record

from ..world import create_jobs, poll, watched
from .holding import NOW, Db, hand_out_again, hold, payload, repeated

RELEASES, AT_ONCE = 100_000, 1000
# Laravel's `deleteAndRelease`, of all that is held.
RELEASE = f"""
WITH gone AS (DELETE FROM jobs WHERE reserved_at IS NOT NULL RETURNING queue, payload, attempts)
INSERT INTO jobs (queue, attempts, reserved_at, available_at, created_at, payload)
SELECT queue, attempts, NULL, {NOW}, {NOW}, payload FROM gone
"""
# Its `markJobAsReserved`, of all that waits.
RESERVE = f"UPDATE jobs SET reserved_at = {NOW}, attempts = attempts + 1 WHERE reserved_at IS NULL"


def look(app: App) -> None:
    """A pass, and the look at single jobs that follows it."""
    poll(app, "jobs", "reservations")


def test_a_hundred_thousand_releases(dsn18: str, db18: Db) -> None:
    """Jobs that come back under new ids, each seen while it was held before and after: none was handed out again."""
    db18.execute(
        "INSERT INTO jobs (queue, payload, attempts, available_at, created_at)"
        " SELECT 'default', %s, 0, 0, 0 FROM generate_series(1, %s)",
        (payload(), AT_ONCE),
    )
    with watched(dsn18) as app:
        for _ in range(RELEASES // AT_ONCE):
            assert db18.execute(RESERVE.encode()).rowcount == AT_ONCE
            look(app)
            assert db18.execute(RELEASE.encode()).rowcount == AT_ONCE
        look(app)
        assert repeated(app) == 0
        assert app.pollers[0].source.collectors[1].ledger.held == {}  # type: ignore[attr-defined]
        db18.execute(RESERVE.encode())
        look(app)
        db18.execute(f"UPDATE jobs SET reserved_at = {NOW} + 1, attempts = attempts + 1".encode())
        look(app)
        assert repeated(app) == AT_ONCE  # each of which would have been seen


def work(dsn: str, stop: Event, released: list[int]) -> None:
    """A worker whose jobs all put themselves back."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not stop.is_set():
            if record := pop(connection):
                released.append(laravel.release(connection, record, now(connection)))


def now(connection: psycopg.Connection[Any]) -> int:
    """A clock that agrees with the database's."""
    return int((connection.execute(f"SELECT {NOW}".encode()).fetchone() or (0,))[0])


def pop(connection: psycopg.Connection[Any], retry_after: int = 90) -> Record | None:
    """The next job, as a worker takes it."""
    return laravel.pop(connection, "default", now(connection), retry_after)


def test_releases_while_we_look(dsn18: str, db18: Db) -> None:
    """The same with workers that go on while we look, in whatever moment of a release that is."""
    for _ in range(20):
        laravel.push(db18, "default", payload(), 0)
    stop, released = Event(), list[int]()
    workers = [Thread(target=work, args=(dsn18, stop, released)) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        with watched(dsn18) as app:
            while len(released) < 1000:
                look(app)
                assert repeated(app) == 0
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def test_a_job_that_fails_and_is_retried(dsn18: str, db18: Db) -> None:
    """`queue:retry` pushes the old payload as a new row, without attempts: not the job that somebody held."""
    text = payload().replace("{", '{"uuid":"8c1f6f0e-6ff1-4a44-8f43-1d2c0a9d2f4b",', 1)
    laravel.push(db18, "default", text, 0)
    with watched(dsn18) as app:
        for _ in range(3):
            record = pop(db18)
            assert record is not None
            look(app)
            laravel.fail(db18, record, "RuntimeException: no", now(db18))
            look(app)
            db18.execute("DELETE FROM failed_jobs")
            laravel.push(db18, "default", record.payload, now(db18))
        assert repeated(app) == 0


@pytest.mark.parametrize(
    "change",
    [
        "reserved_at = reserved_at - 1000",
        "reserved_at = reserved_at - 1000, attempts = attempts + 1",
        "reserved_at = reserved_at + 30",
        "attempts = attempts + 1",
        "attempts = 0, reserved_at = NULL",
        "queue = 'elsewhere'",
        "payload = '{}'",
    ],
)
def test_hands_in_the_table(dsn18: str, db18: Db, change: str) -> None:
    """Whatever an operator changes in a row, to have it taken sooner or not at all, no worker has taken it yet."""
    hold(db18, 50)
    with watched(dsn18) as app:
        look(app)
        db18.execute(f"UPDATE jobs SET {change}".encode())
        look(app)
        look(app)
        assert repeated(app) == 0
        assert repeated(app, "elsewhere") in (0, None)


def test_a_real_second_worker(dsn: str, db: Db) -> None:
    """With Laravel's own statements: the second worker's pop is one, the first one's late end and the next job none."""
    laravel.push(db, "default", payload(), 0)
    first = pop(db)
    assert first is not None
    with watched(dsn) as app:
        look(app)
        db.execute("UPDATE jobs SET reserved_at = reserved_at - 91")
        look(app)
        second = pop(db)
        assert second is not None
        assert (second.id, second.attempts) == (first.id, 2)
        look(app)
        assert repeated(app) == 1
        laravel.delete(db, first)
        look(app)
        laravel.release(db, second, now(db))  # writes a row though the old one is gone
        assert pop(db) is not None
        look(app)
        assert repeated(app) == 1


def test_several_hand_outs_between_two_looks(dsn18: str, db18: Db) -> None:
    """Each attempt more was a pop, if there was time for so many: three are three, in whichever queue each job is."""
    ids = [hold(db18, 88), hold(db18, 24, "mail")]
    with watched(dsn18, retry_after=25) as app:
        look(app)
        for _ in range(3):
            hand_out_again(db18, ids[0])
        hand_out_again(db18, ids[1])
        db18.execute("UPDATE jobs SET attempts = 30000 WHERE id = %s", [ids[1]])  # somebody did it by hand
        look(app)
        assert (repeated(app), repeated(app, "mail")) == (3, 1)


def test_ids_that_come_back(dsn18: str, db18: Db) -> None:
    """An id that is another job's, after a TRUNCATE or in a view of two tables, is not handed out again."""
    create_jobs(db18, "more_jobs")
    db18.execute("CREATE VIEW every_job AS SELECT * FROM jobs UNION ALL SELECT * FROM more_jobs")
    hold(db18, 60)
    with watched(dsn18, table="every_job") as app:
        look(app)
        db18.execute("TRUNCATE jobs RESTART IDENTITY")
        hold(db18, 1, attempts=3)
        db18.execute("UPDATE jobs SET available_at = 1")
        look(app)
        db18.execute(f"INSERT INTO more_jobs VALUES (1, 'default', '', 9, {NOW}, 2, 0)".encode())
        look(app)
        look(app)
        assert repeated(app) == 0
        hand_out_again(db18, 1, ahead=1)
        look(app)
        assert repeated(app) == 1
