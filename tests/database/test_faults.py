"""Peers that are deaf, gone, slow or in our way: one reason, within the time allowed, and nothing old or half shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from threading import Event, Thread, Timer
from typing import Any

import pytest

from exporter.app import App
from exporter.demo.daemon import free_port
from exporter.errors import SourceError
from exporter.sources.database.connection import connect
from exporter.sources.resolve import resolve
from exporter.timing import Deadline

from ..world import HandClock, add_jobs, poll, state, states, value, watched
from .onlooker import Db
from .proxies import Absent, Deaf, Proxy, Stranger

SLACK = 0.25  # seconds that a busy machine may add


@pytest.fixture
def proxy(db18: Db) -> Iterator[Proxy]:
    """A proxy in front of `db18`."""
    with Proxy(("127.0.0.1", db18.info.port)) as proxy:
        yield proxy


def through(proxy: Proxy, db: Db, more: str = "") -> str:
    """The DSN that leads to the same database through the proxy."""
    return proxy.dsn(f"dbname={db.info.dbname} user={db.info.user} {more}")


def timed_poll(watching: App, collector: str = "jobs") -> float:
    """Seconds that one poll took."""
    began = time.monotonic()
    poll(watching, collector)
    return time.monotonic() - began


@pytest.mark.parametrize("sslmode", ["disable", "prefer", "require"])
def test_deaf_from_the_first_byte(sslmode: str) -> None:
    """A peer that accepts and says nothing is a `timeout`, for all collectors at once, within the time allowed."""
    with Deaf() as deaf, watched(deaf.dsn(f"user=app sslmode={sslmode}"), timeout="300ms") as watching:
        assert timed_poll(watching) < 0.3 + SLACK
        assert {state.reason for state in states(watching).values()} == {"timeout"}
        assert state(watching, "jobs").error == "127.0.0.1 did not let us in in time"


def test_a_host_that_is_not_there() -> None:
    """A host that does not even refuse is a `timeout` within the time allowed."""
    with Absent() as absent, watched(absent.dsn("user=app"), timeout="300ms") as watching:
        assert timed_poll(watching) < 0.3 + SLACK
        assert state(watching, "jobs").reason == "timeout"


@pytest.mark.parametrize("passed", [1, 2, 30, 300, 450, 500, 600, 700])
def test_silent_in_the_middle(db18: Db, proxy: Proxy, passed: int) -> None:
    """A peer that falls silent in its login or in its answer is a `timeout` within the time allowed."""
    proxy.answers = passed
    with watched(through(proxy, db18), timeout="300ms") as watching:
        assert timed_poll(watching) < 0.3 + SLACK
        assert state(watching, "jobs").reason == "timeout"
        assert value(watching, "jobs", state="ready") is None
        proxy.heal()
        poll(watching, "jobs")
        assert state(watching, "jobs").up


@pytest.mark.parametrize("sslmode", ["disable", "require"])
def test_a_peer_that_is_not_postgresql(sslmode: str) -> None:
    """A web server at the DSN's address is `malformed`, told in one line."""
    answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\noh?\n"
    with Stranger(answer) as stranger, watched(stranger.dsn(f"user=app sslmode={sslmode}")) as watching:
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "malformed"
        assert state(watching, "jobs").error.isprintable()


def test_first_host_absent(db18: Db) -> None:
    """Of several hosts one may be absent: the next gets its share of the time, and answers."""
    with Absent() as absent:
        dsn = f"host=127.0.0.1,127.0.0.1 port={absent.port},{db18.info.port} dbname={db18.info.dbname} user=postgres"
        with watched(dsn, timeout="600ms") as watching:
            assert 0.3 <= timed_poll(watching) < 0.6
            assert state(watching, "jobs").up


def test_all_hosts_absent() -> None:
    """Several hosts that are all absent do not take longer than one."""
    with Absent() as absent:
        dsn = f"host=127.0.0.1,127.0.0.1,127.0.0.1 port={absent.port} user=app"
        with watched(dsn, timeout="300ms") as watching:
            assert timed_poll(watching) < 0.3 + SLACK
            assert state(watching, "jobs").reason == "timeout"


def test_several_hosts_several_words() -> None:
    """Hosts that fail each in its own way are all named in the message."""
    with Deaf() as deaf:
        dsn = f"host=127.0.0.1,localhost port={deaf.port},{free_port()} user=app"
        with watched(dsn, timeout="600ms") as watching:
            poll(watching, "jobs")
            assert state(watching, "jobs").reason == "refused"
            assert "did not let us in in time; connection failed" in state(watching, "jobs").error


def test_a_name_server_that_hangs(db18: Db) -> None:
    """A look-up that hangs is `dns` within the time allowed, and keeps no other host of the DSN from being asked."""
    never = Event()

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        if host == "slow.internal":
            never.wait(10)
        return [(0, 0, 0, "", ("127.0.0.1", 0))]

    names = partial(resolve, getaddrinfo=getaddrinfo)
    params = {"host": "slow.internal", "port": str(db18.info.port), "user": "postgres", "dbname": db18.info.dbname}
    began = time.monotonic()
    with pytest.raises(SourceError) as failure:
        connect(params, Deadline(began + 0.3), names)
    assert time.monotonic() - began < 0.3 + SLACK
    assert (failure.value.reason, failure.value.unreachable) == ("dns", True)
    both = params | {"host": "slow.internal,db.internal"}
    connect(both, Deadline(time.monotonic() + 0.6), names).close()
    never.set()


def test_case_14_black_hole(db18: Db, proxy: Proxy) -> None:
    """Case 14. In a black hole `up` turns 0 at once, and values go with the second failure; both heal with it."""
    clock = HandClock()
    with watched(through(proxy, db18), clock.clock, queues={"default": None}, timeout="300ms") as watching:
        poll(watching, "jobs")
        last = value(watching, "source_last_success_timestamp_seconds", collector="jobs")
        proxy.swallow()
        for failures, shown in ((1, 0), (2, None), (3, None), (4, None)):
            clock.pass_(45)
            assert timed_poll(watching) < 0.3 + SLACK
            assert value(watching, "source_up", collector="jobs") == 0
            assert value(watching, "source_errors_total", collector="jobs", reason="timeout") == failures
            assert value(watching, "jobs", queue="default", state="ready") == shown
            assert value(watching, "source_last_success_timestamp_seconds", collector="jobs") == last
        proxy.heal()
        poll(watching, "jobs")
        assert value(watching, "source_up", collector="jobs") == 1
        assert value(watching, "jobs", queue="default", state="ready") == 0


def test_case_43_an_error_is_not_zero(db18: Db, proxy: Proxy) -> None:
    """Case 43. A connection that breaks in the middle of an answer gives no zero, and `up` 0."""
    add_jobs(db18, *[(f"queue {number}", None, 0) for number in range(500)])
    proxy.answers = 4000
    with watched(through(proxy, db18), queues={"default": None}, timeout="5s") as watching:
        breaking = Timer(0.3, proxy.cut)
        breaking.start()
        poll(watching, "jobs")
        breaking.join()
        assert state(watching, "jobs").reason == "connect"
        assert value(watching, "jobs", queue="default", state="ready") is None
        assert value(watching, "source_up", collector="jobs") == 0
        assert proxy.accepted == 1


def test_case_11_a_slow_answer_holds_up_no_scrape(db18: Db, proxy: Proxy) -> None:
    """Case 11. While an answer takes long, pages go on with the last values; those go when they are too old."""
    clock = HandClock()
    with watched(through(proxy, db18), clock.clock, queues={"default": None}, timeout="5s") as watching:
        poll(watching, "jobs")
        proxy.delay = 0.5
        polling = Thread(target=poll, args=(watching, "jobs"))
        polling.start()
        scrapes = 0
        while polling.is_alive():
            began = time.monotonic()
            assert value(watching, "jobs", queue="default", state="ready") == 0
            assert time.monotonic() - began < SLACK
            scrapes += 1
        polling.join()
        assert scrapes > 10
        assert state(watching, "jobs").up
        clock.pass_(3.5 * 15 + 1)
        assert value(watching, "jobs", queue="default", state="ready") is None


def test_a_transaction_timeout_of_the_role(dsn18: str, db18: Db) -> None:
    """A role's transaction_timeout, which ends the session, is a `timeout` and nothing that is tried again at once."""
    add_jobs(db18, ("default", None, 0))
    db18.execute("CREATE VIEW slow AS SELECT * FROM jobs WHERE pg_sleep(9) IS NOT NULL")
    db18.execute(f"ALTER DATABASE {db18.info.dbname} SET transaction_timeout = '100ms'".encode())
    with watched(dsn18, table="slow", timeout="5s") as watching:
        assert timed_poll(watching) < 0.1 + SLACK
        assert state(watching, "jobs").reason == "timeout"
        assert "transaction timeout" in state(watching, "jobs").error
        poll(watching, "statistics")
        assert state(watching, "statistics").up


def test_backoff() -> None:
    """A database that is down is asked after 30 s, then after 60 s, and after 60 s again."""
    with watched(f"host=127.0.0.1 port={free_port()} user=app", HandClock().clock) as watching:
        watching.pollers[0].roll = lambda: 0.0
        pauses = []
        for _ in range(4):
            poll(watching, "jobs")
            pauses.append(state(watching, "jobs").interval)
        assert pauses == [30, 60, 60, 60]
        assert state(watching, "jobs").reason == "refused"
