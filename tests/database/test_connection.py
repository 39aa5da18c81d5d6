"""The one connection: it heals in silence, is never two, and never keeps a transaction open."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest

from exporter.app import App
from exporter.demo import laravel
from exporter.demo.postgres import Postgres
from exporter.errors import SourceError
from exporter.sources.database.session import Session
from exporter.sources.readings import Readings
from exporter.timing import Deadline

from ..conftest import debian_postgres
from ..patience import until
from ..world import HandClock, add_jobs, database_of, poll, settings, state, states, value, watched
from .onlooker import Db, ours, terminate
from .proxies import Proxy


@pytest.fixture
def restartable() -> Iterator[Postgres]:
    """A server of the test's own, with Laravel's tables, all of them empty."""
    with Postgres(debian_postgres()) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(laravel.TABLES)
        yield server


@pytest.fixture
def proxy(dsn: str, db: Db) -> Iterator[Proxy]:
    """A proxy in front of `dsn`, with an empty jobs table behind it."""
    with Proxy(("127.0.0.1", db.info.port)) as proxy:
        yield proxy


def through(proxy: Proxy, db: Db) -> str:
    """The DSN that leads to the same database through the proxy."""
    return proxy.dsn(f"dbname={db.info.dbname} user={db.info.user}")


def within(seconds: float) -> Deadline:
    """A deadline on the real clock."""
    return Deadline(time.monotonic() + seconds)


@contextmanager
def opened(dsn: str, **changes: object) -> Iterator[Session]:
    """A session as the collectors share one."""
    session = Session("database", database_of(settings(dsn, **changes)), Readings())
    yield session
    session.close()


def test_a_restart_heals_in_silence(restartable: Postgres) -> None:
    """A server that was restarted between two polls is asked over a new connection; no failure is counted."""
    with watched(restartable.dsn(), queues={"default": None}) as watching:
        poll(watching)
        restartable.stop()
        restartable.start()
        poll(watching)
        assert all(state.errors == {} for state in states(watching).values())
        assert value(watching, "jobs", state="ready") == 0


def test_a_server_that_waits_for_its_last_client(restartable: Postgres) -> None:
    """A server that is shutting down, and lets nobody in any more, is `loading`."""
    with psycopg.connect(restartable.dsn()) as last, watched(restartable.dsn()) as watching:
        last.execute("SELECT pg_backend_pid()")
        assert restartable.process is not None
        restartable.process.send_signal(signal.SIGTERM)
        until(lambda: "stopping" in (restartable.data / "postmaster.pid").read_text())
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "loading"
        assert "shutting down" in state(watching, "jobs").error


def test_a_terminated_session_heals_in_silence(dsn: str, db: Db) -> None:
    """A session that an administrator ended while it was idle is replaced by one other; no failure is counted."""
    with watched(dsn) as watching:
        poll(watching)
        (before,) = ours(db)
        terminate(db)
        poll(watching)
        (after,) = ours(db)
        assert after.pid != before.pid
        assert state(watching, "jobs").errors == {}


@pytest.mark.parametrize("reset", [False, True])
def test_a_cut_connection_heals_in_silence(db: Db, proxy: Proxy, reset: bool) -> None:
    """A proxy or firewall that closes an idle connection, with or without a farewell, causes no failure."""
    with watched(through(proxy, db)) as watching:
        poll(watching, "jobs")
        proxy.cut(reset=reset)
        poll(watching, "jobs")
        assert state(watching, "jobs").errors == {}
        assert proxy.accepted == 2


def test_a_question_that_ends_the_session(dsn: str, db: Db) -> None:
    """A question that ends its session is a failure, and is not asked again and again in the same poll."""
    db.execute("CREATE VIEW fatal AS SELECT jobs.*, pg_terminate_backend(pg_backend_pid()) FROM jobs")
    add_jobs(db, ("default", None, 0))
    with watched(dsn, table="fatal") as watching:
        poll(watching, "jobs")
        assert state(watching, "jobs").polls == 1
        assert state(watching, "jobs").reason == "connect"
        assert "terminating connection due to administrator command" in state(watching, "jobs").error
        assert ours(db) == []


def test_a_question_that_ends_the_session_in_the_middle_of_a_poll(dsn: str, db: Db) -> None:
    """A connection lost after an answer in the same poll was not idle: that is a failure, whatever limit is set."""
    db.execute("CREATE VIEW fatal AS SELECT jobs.*, pg_terminate_backend(pg_backend_pid()) FROM jobs")
    add_jobs(db, ("default", None, 0))
    with opened(dsn, table="fatal") as session:
        for poll in (session.poll(within(5)), session.poll(within(5))):
            poll.ask("table")
        with pytest.raises(SourceError, match="administrator command"):
            poll.ask("jobs", limit=0.25)
        assert ours(db) == []


def test_a_limit_of_a_question_leaves_the_connection(dsn: str, db: Db) -> None:
    """A question with less time than the poll is given up by the server; the next goes over the same connection."""
    db.execute("CREATE VIEW slow AS SELECT * FROM jobs WHERE pg_sleep(9) IS NOT NULL")
    add_jobs(db, ("default", None, 0))
    with opened(dsn, table="slow") as session:
        poll = session.poll(within(5))
        poll.ask("table")
        (before,) = ours(db)
        began = time.monotonic()
        with pytest.raises(SourceError, match="statement timeout") as caught:
            poll.ask("jobs", limit=0.1)
        assert 0.1 <= time.monotonic() - began < 2
        assert not caught.value.unreachable
        poll.ask("statistics")
        assert [session.pid for session in ours(db)] == [before.pid]


def locked(watching: App, db: Db, proxy: Proxy) -> None:
    """Somebody locks the table."""
    with db.transaction():
        db.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        poll(watching)


def without_table(watching: App, db: Db, proxy: Proxy) -> None:
    """The table goes away."""
    db.execute("ALTER TABLE jobs RENAME TO gone")
    poll(watching)
    db.execute("ALTER TABLE gone RENAME TO jobs")


def ended(watching: App, db: Db, proxy: Proxy) -> None:
    """An administrator, a proxy, and a firewall end the session."""
    for end in (partial(terminate, db), proxy.cut, partial(proxy.cut, reset=True)):
        end()
        poll(watching)


def swallowed(watching: App, db: Db, proxy: Proxy) -> None:
    """The network is a black hole for two polls."""
    proxy.swallow()
    poll(watching, "jobs")
    poll(watching, "jobs")
    assert len(ours(db)) == 1
    proxy.heal()


def half_answered(watching: App, db: Db, proxy: Proxy) -> None:
    """A new connection falls silent in the middle of an answer."""
    proxy.cut()
    proxy.answers = 500
    poll(watching, "jobs")
    proxy.heal()


def test_one_connection_through_every_fault(db: Db, proxy: Proxy) -> None:
    """Case 1. Whatever goes wrong and comes back, the server is left with one session of ours, never a second one."""
    with watched(through(proxy, db), timeout="300ms") as watching:
        for fault in (locked, without_table, ended, swallowed, half_answered):
            fault(watching, db, proxy)
            poll(watching)
            assert state(watching, "jobs").up, state(watching, "jobs").error
            until(lambda: len(ours(db)) == 1, within=1.0)  # what was on its way through a black hole ends at once


@pytest.mark.parametrize("server", ["wheel"], indirect=True)
def test_no_transaction_is_left_open(dsn: str, db: Db) -> None:
    """After each poll, and after each kind of error, our session is idle outside of any transaction."""
    db.execute("CREATE VIEW slow AS SELECT * FROM jobs WHERE pg_sleep(9) IS NOT NULL")
    db.execute("CREATE VIEW wrong AS SELECT queue, 1 / (id - id) AS available_at, reserved_at FROM jobs")
    db.execute("CREATE VIEW other AS SELECT 'text' AS word")
    add_jobs(db, ("default", None, 0))
    expected = {"jobs": None, "slow": "timeout", "wrong": "malformed", "other": "malformed", "none": "undefined_table"}
    for table, reason in expected.items():
        with watched(dsn, table=table, timeout="300ms") as watching:
            poll(watching, "jobs")
            assert state(watching, "jobs").reason == reason
            assert [(session.state, session.in_transaction) for session in ours(db)] == [("idle", False)], table


def test_case_1_locked_table(dsn: str, db: Db) -> None:
    """Case 1. A locked table fails by `lock_timeout` alone; statistics and activity go on; it heals with the lock."""
    clock = HandClock()
    with watched(dsn, clock.clock, queues={"default": None}) as watching:
        with db.transaction():
            db.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            for _ in range(2):
                poll(watching)
                clock.pass_(15)
                assert len(ours(db)) == 1
            assert [state(watching, name).reason for name in ("jobs", "sizes")] == ["lock_timeout"] * 2
            assert state(watching, "statistics").up
            assert state(watching, "activity").up
            assert value(watching, "jobs", state="ready") is None
            assert value(watching, "table_live_tuples") == 0
        poll(watching)
        assert value(watching, "jobs", state="ready") == 0
