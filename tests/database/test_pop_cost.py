"""The `pop` collector and cost: the figures of the incidents come back, and the measuring is in nobody's way."""

from __future__ import annotations

import json
import time
from threading import Thread
from typing import Any

import psycopg
import pytest
from psycopg import sql

from exporter import app as exporter
from exporter.app import App
from exporter.demo.laravel import POP
from exporter.sources.database.session import Session
from exporter.sources.readings import Readings
from exporter.status import report
from exporter.timing import Deadline

from ..patience import until
from ..world import add_jobs, close, database_of, poll, settings, state, value, watched
from .onlooker import ours
from .test_cost import LOGGED

Db = psycopg.Connection[Any]
Node = dict[str, Any]  # of a plan

ROWS = 100_000
FILL = (
    "INSERT INTO jobs (queue, payload, attempts, available_at, created_at)"
    " SELECT %s, repeat('x', 500), 0, extract(epoch FROM now())::int - %s, 0 FROM generate_series(1, %s)"
)
SHAPE = ("Node Type", "Relation Name", "Index Name", "Index Cond", "Recheck Cond", "Filter", "Sort Key")


def fill(db: Db, count: int, since: int, queue: str = "default") -> None:
    """Jobs that became due so many seconds ago."""
    db.execute(FILL, [queue, since, count])


def slow(db: Db, seconds: float) -> None:
    """A view in which each job takes so long to look at."""
    db.execute(f"CREATE OR REPLACE VIEW slow AS SELECT * FROM jobs WHERE pg_sleep({seconds}) IS NOT NULL".encode())


@pytest.fixture
def asleep(db: Db) -> Db:
    """A table that no autovacuum tidies up behind our back."""
    db.execute("ALTER TABLE jobs SET (autovacuum_enabled = off)")
    return db


def shown(app: App, queue: str = "default") -> tuple[float | None, ...]:
    """Seconds, pages and skipped rows of a pop on the page."""
    return tuple(value(app, f"pop_{what}", queue=queue) for what in ("duration_seconds", "buffers", "skipped_rows"))


def cost(app: App) -> tuple[float, float, float]:
    """The same after one more poll, that must succeed."""
    poll(app, "pop")
    assert state(app, "pop").error == ""
    seconds, pages, rows = shown(app)
    assert seconds is not None
    assert pages is not None
    assert rows is not None
    return seconds, pages, rows


def told(app: App) -> set[str]:
    """What is over its limit."""
    return {finding.says for finding in report(app.board).findings}


def test_a_healthy_head(dsn: str, asleep: Db) -> None:
    """At the head of 100,000 ready jobs a pop touches a handful of pages and looks at no row in vain."""
    fill(asleep, ROWS, since=5)
    asleep.execute("VACUUM ANALYZE jobs")
    with watched(dsn, queues={"default": {}}) as app:
        seconds, pages, rows = cost(app)
        assert 0 < seconds < 0.05
        assert pages < 10
        assert rows == 0
        assert told(app) == set()


def test_dead_head(dsn: str, asleep: Db) -> None:
    """
    Over 100,000 dead rows at the head a pop touches thousands of pages; after a vacuum a handful.

    While a transaction keeps the dead rows no vacuum helps, and each pop pays again.
    """
    fill(asleep, ROWS, since=5)
    asleep.execute("ANALYZE jobs")
    with watched(dsn, queues={"default": {}}) as app, psycopg.connect(dsn) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        asleep.execute("DELETE FROM jobs")
        fill(asleep, 100, since=5)
        for _ in range(2):
            _, pages, rows = cost(app)
            assert 7_000 < pages < 9_000
            assert rows == 0
            assert f"a pop touches {pages:,.0f} pages, limit 1,000" in told(app)
            asleep.execute("VACUUM jobs")
        holder.rollback()
        asleep.execute("VACUUM jobs")
        assert cost(app)[1] < 10
        assert told(app) == set()


def test_delayed_head(dsn: str, asleep: Db) -> None:
    """With 100,000 delayed jobs at the head a pop steps over each of them, and a vacuum does not help."""
    fill(asleep, ROWS, since=-3600)
    fill(asleep, 100, since=5)
    asleep.execute("ANALYZE jobs")
    with watched(dsn, queues={"default": {}}) as app:
        for _ in range(2):
            _, pages, rows = cost(app)
            assert rows == ROWS
            assert 7_000 < pages < 9_000
            assert "a pop steps over 100,000 rows, limit 1,000" in told(app)
            asleep.execute("VACUUM ANALYZE jobs")
        asleep.execute("UPDATE jobs SET available_at = 1")
        assert cost(app)[2] == 0


def shape(node: Node) -> list[Any]:
    """What makes a plan, but for the lock on the row."""
    below = [shape(child) for child in node.get("Plans", ())]
    return below[0] if node["Node Type"] == "LockRows" else [{key: node.get(key) for key in SHAPE}, *below]


def explained(worker: Db, statement: str, *values: str | int) -> Node:
    """The plan of a prepared statement with these values."""
    text = sql.SQL("EXPLAIN (FORMAT JSON) EXECUTE {} ({})")
    (plan,) = worker.execute(text.format(sql.Identifier(statement), sql.SQL(", ").join(values))).fetchall()[0]
    return dict(plan[0]["Plan"])


def test_the_plan_is_a_workers(dsn: str, asleep: Db) -> None:
    """
    What is explained is run as the worker's own statement, which locks the row and brings its values apart from its
    text; by one process alone, where any other reader would take two.
    """
    fill(asleep, 20_000, since=5)
    fill(asleep, 300, since=-3600, queue="rare")
    asleep.execute("VACUUM ANALYZE jobs")
    for name, setting in LOGGED.items():
        asleep.execute(f"ALTER DATABASE {asleep.info.dbname} SET {name} = '{setting}'".encode())
    session = Session("database", database_of(settings(dsn)), Readings())
    found, others = [], ""
    with psycopg.connect(dsn, autocommit=True) as worker:
        select = POP % ("$1", "$2", "$3")
        worker.execute(f"PREPARE pop AS {select} FOR UPDATE SKIP LOCKED; PREPARE look AS {select}".encode())
        for queue in ("default", "rare", "nobody's"):
            now = int(time.time())
            (row,) = session.poll(Deadline(time.monotonic() + 5)).ask("pop", queue=queue, at=now, expired_at=now - 90)
            plan = shape(json.loads(row["QUERY PLAN"])[0]["Plan"])
            assert plan == shape(explained(worker, "pop", queue, now, now - 90))
            found.append(plan)
            others += str(explained(worker, "look", queue, now, now - 90))
    session.close()
    assert found[0] != found[1] != found[2]
    assert "Gather" in others
    assert "Gather" not in str(found)


def test_a_pop_that_takes_too_long(dsn: str, db: Db) -> None:
    """
    After 250 ms a question is given up, and that is an answer: it takes at least that. Pages and rows are not known.

    It costs neither the connection nor the next answer.
    """
    add_jobs(db, ("default", None, 5))
    slow(db, 9)
    with watched(dsn, table="slow", queues={"default": {}}) as app:
        began = time.monotonic()
        poll(app, "pop")
        assert 0.25 <= time.monotonic() - began < 1
        assert state(app, "pop").error == ""
        assert shown(app) == (0.25, None, None)
        assert told(app) == {"a pop takes 250ms, limit 100ms"}
        (session,) = ours(db)
        slow(db, 0.11)
        assert 0.11 < cost(app)[0] < 0.25
        slow(db, 0)
        assert cost(app)[0] < 0.1
        assert [each.pid for each in ours(db)] == [session.pid]


def test_a_tighter_limit(dsn: str, db: Db) -> None:
    """Where the role's own time limit, or a quarter of a poll's time, is below 250 ms, a pop takes at least that."""
    add_jobs(db, ("default", None, 5))
    slow(db, 9)
    with watched(dsn, table="slow", queues={"default": {}}, timeout="600ms") as app:
        poll(app, "pop")
        assert shown(app) == (0.15, None, None)
    db.execute(f"ALTER DATABASE {db.info.dbname} SET statement_timeout = '120ms'".encode())
    with watched(dsn, table="slow", queues={"default": {}}) as app:
        poll(app, "pop")
        assert shown(app) == (0.12, None, None)


def test_a_cancel_request_is_no_answer(dsn: str, db: Db) -> None:
    """A question that somebody cancelled is a failure, and says nothing about how long a pop takes."""
    add_jobs(db, ("default", None, 5))
    slow(db, 9)

    def cancelled() -> bool:
        with watched(dsn, table="slow", queues={"default": {}}) as app:
            polling = Thread(target=poll, args=(app, "pop"))
            polling.start()
            until(lambda: "PgSleep" in {session.waits_for for session in ours(db)} or not polling.is_alive())
            for session in ours(db):
                db.execute("SELECT pg_cancel_backend(%s)", [session.pid])
            polling.join()
            if state(app, "pop").up:  # a busy machine was too late
                return False
            assert state(app, "pop").reason == "timeout"
            assert state(app, "pop").error == "canceling statement due to user request"
            return shown(app) == (None, None, None)

    until(cancelled)


def test_only_a_readers_lock(dsn: str, db: Db) -> None:
    """While a pop is explained, no row is locked and no lock on a table is more than a reader's."""
    add_jobs(db, ("default", None, 5))
    slow(db, 9)
    with watched(dsn, table="slow", queues={"default": {}}) as app:
        polling = Thread(target=poll, args=(app, "pop"))
        polling.start()
        (session,) = until(lambda: [session for session in ours(db) if session.waits_for == "PgSleep"])
        locks = db.execute(
            "SELECT locktype, mode, relation::regclass::text FROM pg_locks WHERE pid = %s", [session.pid]
        ).fetchall()
        assert ("relation", "AccessShareLock", "jobs") in locks
        assert {(kind, mode) for kind, mode, _ in locks} == {
            ("relation", "AccessShareLock"),
            ("virtualxid", "ExclusiveLock"),  # each transaction's own, on itself
        }
        db.execute("SELECT * FROM jobs FOR UPDATE NOWAIT")
        polling.join()


def test_it_is_paid_for(dsn: str, db: Db) -> None:
    """What a slow pop costs is counted, and it is asked for so seldom that all is within 1 % of the time."""
    add_jobs(db, ("default", None, 5))
    slow(db, 9)
    with watched(dsn, table="slow", queues={"default": {}}) as app:
        poll(app, "pop")
        busy = value(app, "source_busy_seconds_total", collector="pop") or 0
        interval = value(app, "source_poll_interval_seconds", collector="pop") or 0
        assert busy >= 0.25
        assert busy / interval <= 0.01
        assert value(app, "source_configured_interval_seconds", collector="pop") == 15


def test_once_asks_as_long_as_time_lasts(dsn: str, db: Db) -> None:
    """Where nobody will ask again, as many queues are asked of as the time of a poll allows, the named ones first."""
    names = [f"queue-{number}" for number in range(9, 0, -1)]
    add_jobs(db, *[(name, None, 5) for name in names])
    slow(db, 9)
    app = exporter.build(settings(dsn, table="slow", queues={name: {} for name in names}), once=True)
    poll(app, "pop")
    close(app)
    assert state(app, "pop").error == ""
    assert state(app, "pop").duration < 2
    asked = [shown(app, name)[0] for name in names]
    count = sum(seconds == 0.25 for seconds in asked)
    assert 3 <= count <= 6
    assert asked == [0.25] * count + [None] * (len(names) - count)
