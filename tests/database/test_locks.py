"""The `locks` collector: who waits for the jobs table, for one of its rows, and who does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from threading import Thread
from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.demo.laravel import POP
from exporter.demo.postgres import Postgres
from exporter.findings import find
from exporter.sources.database.locks import LONGEST_WAIT, WAITERS
from exporter.status import report

from ..patience import until
from ..world import add_jobs, create_jobs, poll, state, value, watched

Db = psycopg.Connection[Any]
Begin = Callable[..., Db]

FOR_UPDATE = "SELECT * FROM jobs ORDER BY id LIMIT 1 FOR UPDATE"
EXCLUSIVE = "LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE"
PARTITIONED = """
CREATE TABLE parts (LIKE jobs) PARTITION BY LIST (queue);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM jobs;
"""


@pytest.fixture
def begin(server: Postgres, dsn: str) -> Iterator[Begin]:
    """
    Runs a statement in a transaction, in a session of its own, and returns when that has been run or is blocked.

    All is rolled back at the end.
    """
    with psycopg.connect(server.dsn(), autocommit=True) as onlooker, ExitStack() as stack:

        def begin(statement: str, *values: object, dsn: str = dsn, autocommit: bool = False) -> Db:
            session = psycopg.connect(dsn, autocommit=autocommit)
            running = Thread(target=run, args=(session, statement, values))
            running.start()
            stack.callback(end, onlooker, session, running)
            blocked = "SELECT WHERE pg_blocking_pids(%s) <> '{}'"
            until(lambda: not running.is_alive() or onlooker.execute(blocked, [session.info.backend_pid]).rowcount)
            return session

        yield begin


def run(session: Db, statement: str, values: tuple[object, ...]) -> None:
    with suppress(psycopg.errors.AdminShutdown):
        session.execute(statement.encode(), values or None)


def end(onlooker: Db, session: Db, running: Thread) -> None:
    onlooker.execute("SELECT pg_terminate_backend(%s, 5000)", [session.info.backend_pid])
    running.join()
    session.close()


def waiters(app: App, table: str = "jobs") -> float | None:
    """How many wait, after one more poll that must succeed."""
    poll(app, "locks")
    assert state(app, "locks").error == ""
    return value(app, "table_lock_waiters", table=table)


def longest(app: App) -> float:
    """Seconds that the one who waits longest has waited, as of the last poll."""
    seconds = value(app, "table_longest_lock_wait_seconds", table="jobs")
    assert seconds is not None
    return seconds


def test_without_skip_locked_the_second_worker_waits(dsn: str, db: Db, begin: Begin) -> None:
    """
    Workers that lock without SKIP LOCKED queue up behind the first, and each who waits is counted.

    The second one waits for the first one's transaction, the others for the row: `status` says so at once.
    """
    add_jobs(db, *[("default", None, 5)] * 9)
    now = int(time.time())
    with watched(dsn) as app:
        assert waiters(app) == 0
        assert longest(app) == 0
        begin(f"{POP} for update", "default", now, now - 90)
        assert waiters(app) == 0
        began = time.time()
        begin(f"{POP} for update", "default", now, now - 90)
        waits = time.time()
        for others in range(3):
            assert waiters(app) == 1 + others
            begin(f"{POP} for update", "default", now, now - 90)
        looked = time.time()
        assert waiters(app) == 4
        assert looked - waits < longest(app) < time.time() - began
        (finding,) = report(app.board).findings
        assert (finding.where, finding.says) == ("database/jobs", "4 sessions waiting for a lock on the table")


def test_with_skip_locked_nobody_waits(dsn: str, db: Db, begin: Begin) -> None:
    """Workers that lock as Laravel does pass each other by, while each still has its row, and so does a push."""
    add_jobs(db, *[("default", None, 5)] * 9)
    now = int(time.time())
    with watched(dsn) as app:
        for _ in range(4):
            begin(f"{POP} FOR UPDATE SKIP LOCKED", "default", now, now - 90)
        begin("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default', '', 0, 0, 0)")
        assert waiters(app) == 0
        assert longest(app) == 0
        assert report(app.board).findings == ()


def test_a_wait_is_over(dsn: str, db: Db, begin: Begin) -> None:
    """As soon as the first commits the next one has the row, and fewer wait."""
    add_jobs(db, ("default", None, 5))
    with watched(dsn) as app:
        first, _, _ = [begin(FOR_UPDATE) for _ in range(3)]
        assert waiters(app) == 2
        first.rollback()
        until(lambda: waiters(app) == 1)


def test_who_waits_for_the_table(dsn: str, db: Db, begin: Begin) -> None:
    """
    Behind an ALTER TABLE everybody waits, readers too, and we do not: no lock of ours is on the table.

    An ALTER TABLE that itself waits for a reader is one of those who wait.
    """
    with watched(dsn) as app:
        reader = begin("SELECT * FROM jobs")
        begin("ALTER TABLE jobs ADD COLUMN more int")
        assert waiters(app) == 1
        begin("SELECT * FROM jobs")
        begin(FOR_UPDATE)
        assert waiters(app) == 3
        reader.rollback()
        until(lambda: waiters(app) == 2)
        begin("SELECT * FROM jobs")
        assert waiters(app) == 3


def test_partitions_belong_to_the_table(dsn: str, db: Db, begin: Begin) -> None:
    """Who waits for a row, or for the whole, of a partition waits for the table; also while all of it is locked."""
    add_jobs(db, ("a", None, 5), ("b", None, 5))
    db.execute(PARTITIONED)
    with watched(dsn, table="parts") as app:
        one_row = "UPDATE parts SET attempts = 1 WHERE queue = 'a'"
        begin(one_row)
        begin(one_row)
        assert waiters(app, "parts") == 1
        begin("LOCK TABLE parts_rest IN ACCESS EXCLUSIVE MODE")
        begin("SELECT * FROM parts_rest")
        assert waiters(app, "parts") == 2
        begin("LOCK TABLE ONLY parts IN ACCESS EXCLUSIVE MODE")
        assert waiters(app, "parts") == 3


def test_waits_elsewhere_are_none_of_ours(dsn: str, db: Db, begin: Begin) -> None:
    """
    Who waits for another table is not counted, even if the same transaction has pushed or looked at a job.

    So a checkout that dispatches a job and then waits for the stock of a product is no trouble of the queue's, nor is
    the creation of an index that lets older transactions end first.
    """
    add_jobs(db, ("default", None, 5))
    create_jobs(db, "stock")
    add_jobs(db, ("product", None, 5), table="stock")
    take = "SELECT * FROM stock FOR UPDATE"
    dispatch = "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('a', '', 0, 0, 0)"
    with watched(dsn) as app:
        begin(take)
        for before in ("SELECT 1", dispatch, FOR_UPDATE):
            begin(f"{before}; {take}")
        begin("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        begin("SELECT pg_advisory_lock(1)")
        begin("SELECT count(*) FROM jobs; SELECT pg_advisory_lock(1)")
        begin("CREATE INDEX CONCURRENTLY ON jobs (queue, available_at)", autocommit=True)
        assert db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (5,)
        assert waiters(app) == 0
        assert longest(app) == 0


def test_waits_in_another_database_are_none_of_ours(server: Postgres, begin: Begin) -> None:
    """A database that was copied from ours has a table of the same number; who waits for that is not counted."""
    ours, copy = "test_locks", "test_locks_copy"
    with psycopg.connect(server.dsn(), autocommit=True) as main:
        main.execute(f"CREATE DATABASE {ours}")
        with psycopg.connect(server.dsn(ours), autocommit=True) as db:
            create_jobs(db)
            add_jobs(db, ("default", None, 5))
        main.execute(f"CREATE DATABASE {copy} TEMPLATE {ours}")
        try:
            with watched(server.dsn(ours)) as app, watched(server.dsn(copy)) as there:
                for statement in (FOR_UPDATE, FOR_UPDATE, EXCLUSIVE):
                    begin(statement, dsn=server.dsn(copy))
                assert waiters(there) == 2
                assert waiters(app) == 0
        finally:
            for name in (ours, copy):
                main.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_any_role_sees_all_of_it(dsn: str, db: Db, begin: Begin) -> None:
    """A role that may do nothing but log in counts the waiting sessions of all others."""
    add_jobs(db, ("default", None, 5))
    name = f"anybody_in_{db.info.dbname}"
    db.execute(f"CREATE ROLE {name} LOGIN".encode())
    try:
        with watched(dsn.replace("postgres@", f"{name}@")) as app:
            begin(FOR_UPDATE)
            begin(FOR_UPDATE)
            assert waiters(app) == 1
    finally:
        db.execute(f"DROP ROLE {name}".encode())


def test_a_view_and_no_table_have_no_locks(dsn: str, db: Db, begin: Begin) -> None:
    """Of a view, or of a table that is not there, nobody can say that nobody waits; that is no failure."""
    db.execute("CREATE VIEW every_job AS SELECT * FROM jobs")
    for table in ("every_job", "not_there"):
        with watched(dsn, table=table) as app:
            assert waiters(app, table) is None


def test_one_who_waits_is_over_the_limit() -> None:
    """One session that waits is worth a word, and so is a wait of more than five seconds."""
    at = ("database", "jobs")
    assert list(find([WAITERS(0, *at), LONGEST_WAIT(5, *at)], {}, (), 0)) == []
    found = find([WAITERS(1, *at), LONGEST_WAIT(65, *at)], {}, ["LaravelQueueLockWaits"], 0)
    assert [(finding.says, finding.alert) for finding in found] == [
        ("1 session waiting for a lock on the table", "LaravelQueueLockWaits"),
        ("a session waiting for a lock for 1m 5s, limit 5s", "LaravelQueueLockWaits"),
    ]
