"""When nobody knows which jobs are held, nothing is said of them: never old numbers as new ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exporter.app import App

from ..world import HandClock, add_jobs, poll, state, states, value, watched
from .holding import Db, grow_older, hand_out_again, hold, lead, payload, repeated
from .proxies import Proxy

INTERVAL = 15
# The jobs behind a view in which each row that is looked at takes a while, or none.
VIEW = """
CREATE TABLE pace (seconds float8);
INSERT INTO pace VALUES (0);
CREATE VIEW slow AS SELECT * FROM jobs WHERE pg_sleep((SELECT seconds FROM pace)) IS NOT NULL
"""


@pytest.fixture
def hand() -> HandClock:
    """Our own clock, that only the test moves."""
    return HandClock()


@pytest.fixture
def app(dsn18: str, db18: Db, hand: HandClock) -> Iterator[App]:
    """An exporter of the view, in front of a hundred jobs that nobody holds."""
    db18.execute(VIEW)
    add_jobs(db18, *[("default", None, 5)] * 100)
    with watched(dsn18, hand.clock, table="slow", timeout="300ms") as app:
        yield app


def slow_down(db: Db, seconds: float) -> None:
    """From now on a pass takes a hundred times as long, so it fails; a look at a single job does not."""
    db.execute("UPDATE pace SET seconds = %s", [seconds])


def is_shown(app: App) -> bool:
    """Whether the collector's numbers are on the page."""
    assert (repeated(app) is None) == (value(app, "source_fresh", collector="reservations") == 0)
    return repeated(app) is not None


def look(app: App, hand: HandClock) -> None:
    """A quarter of a minute, and what is asked then."""
    hand.pass_(INTERVAL)
    poll(app, "jobs", "reservations")


def test_one_missed_pass_leaves_the_last_word_and_two_withhold(app: App, db18: Db, hand: HandClock) -> None:
    """While the jobs take too long to count, those held are still read one by one; at the second miss no more."""
    id_ = hold(db18, 80, of=payload(timeout=1))
    poll(app, "jobs", "reservations")
    assert value(app, "reserved_past_timeout_jobs") == 1
    slow_down(db18, 0.02)
    hand_out_again(db18, id_)
    look(app, hand)
    assert state(app, "jobs").reason == "timeout"
    assert state(app, "reservations").up
    assert repeated(app) == 1  # the one that was known can be told of
    look(app, hand)
    assert state(app, "jobs").streak == 2
    assert state(app, "reservations").up
    assert not is_shown(app)
    assert state(app, "reservations").notes == ("nobody knows which jobs are held, as the jobs are not known",)


def test_what_was_known_is_compared_when_the_jobs_are_known_again(app: App, db18: Db, hand: HandClock) -> None:
    """A hand-out that happened while nothing was shown is counted afterwards, and accuses no clock."""
    id_ = hold(db18, 5)
    poll(app, "jobs", "reservations")
    slow_down(db18, 0.02)
    look(app, hand)
    hand_out_again(db18, id_)
    hold(db18, 10)
    look(app, hand)
    look(app, hand)
    assert not is_shown(app)
    slow_down(db18, 0)
    look(app, hand)
    assert repeated(app) == 1
    assert lead(app) == 0
    assert state(app, "reservations").notes[0].startswith("App\\Jobs\\Slow")


def test_before_the_first_pass(app: App, db18: Db) -> None:
    """Asked before the jobs, it has nothing to say: not even zeros."""
    hold(db18, 5)
    poll(app, "reservations")
    assert not is_shown(app)
    poll(app, "jobs", "reservations")
    assert is_shown(app)


def test_case_43_the_table_is_locked(dsn18: str, db18: Db, hand: HandClock) -> None:
    """Case 43: behind a lock each fails by itself; the last word stands once, is withdrawn, and comes back."""
    with watched(dsn18, hand.clock, queues={"default": None}) as app:
        poll(app)
        with db18.transaction():
            db18.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            for streak, shown in ((1, True), (2, False)):
                poll(app, "jobs", "reservations")
                assert state(app, "reservations").reason == "lock_timeout"
                assert state(app, "reservations").streak == streak
                assert is_shown(app) == shown
        poll(app, "jobs", "reservations")
        assert is_shown(app)


def through(proxy: Proxy, db: Db) -> str:
    """The DSN that leads to the same database through the proxy."""
    return proxy.dsn(f"dbname={db.info.dbname} user={db.info.user}")


@pytest.fixture
def proxy(db18: Db) -> Iterator[Proxy]:
    """A proxy in front of the database."""
    with Proxy(("127.0.0.1", db18.info.port)) as proxy:
        yield proxy


def test_a_database_that_dies_between_the_two_questions(db18: Db, proxy: Proxy, hand: HandClock) -> None:
    """
    The jobs were answered, the held ones were not: when it is back, that pass may be believed if it is young.

    After some minutes it is about the past, also where another collector found out that the database
    was gone, so that the jobs did not miss a pass of their own.
    """
    id_ = hold(db18, 60, of=payload(timeout=1))
    with watched(through(proxy, db18), hand.clock, timeout="300ms") as app:
        poll(app, "jobs")
        proxy.swallow()
        poll(app, "reservations")
        assert {state.reason for state in states(app).values()} == {"timeout"}
        assert not is_shown(app)
        proxy.cut()
        proxy.heal()
        hand.pass_(20)
        poll(app, "reservations")
        assert value(app, "reserved_past_timeout_jobs") == 1
        proxy.swallow()
        for _ in range(2):
            hand.pass_(60)
            poll(app, "statistics")
        proxy.cut()
        proxy.heal()
        db18.execute("DELETE FROM jobs WHERE id = %s", [id_])
        hold(db18, 60, "mail", payload(timeout=1))
        hand.pass_(60)
        poll(app, "reservations")
        assert state(app, "reservations").up
        assert not is_shown(app)
        poll(app, "jobs", "reservations")
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 0
        assert value(app, "reserved_past_timeout_jobs", queue="mail") == 1


def test_passes_that_come_seldom_are_believed(dsn18: str, db18: Db, hand: HandClock) -> None:
    """Where the duty stretches the passes to minutes, the jobs of the last one are watched until the next."""
    id_ = hold(db18, 50)
    with watched(dsn18, hand.clock) as app:
        poll(app, "jobs", "reservations")
        for _ in range(20):
            hand.pass_(15)
            grow_older(db18, 15)
            poll(app, "reservations")
            assert is_shown(app)
            assert state(app, "reservations").interval == 2
        hand_out_again(db18, id_)
        poll(app, "reservations")
        assert repeated(app) == 1


def test_when_the_next_look_is_due(dsn18: str, db18: Db, hand: HandClock) -> None:
    """With the next pass, when it is due; at the usual pace if that does not come; every 2 s while a job is watched."""
    with watched(dsn18, hand.clock) as app:
        intervals = []
        for wait in (0, 4, 8, 2, 2, 2):
            hand.pass_(wait)
            poll(app, *(["jobs"] if not wait else []), "reservations")
            intervals.append(state(app, "reservations").interval)
        assert intervals == [15, 11, 3, 2, 15, 15]
        poll(app, "jobs")
        hand.pass_(1)
        poll(app, "reservations")
        assert state(app, "reservations").interval == 14
        hold(db18, 31)
        look(app, hand)
        assert state(app, "reservations").interval == 2


def test_an_interval_shorter_than_two_seconds_is_kept(dsn18: str, db18: Db, hand: HandClock) -> None:
    """Nobody is asked less often because something is watched."""
    hold(db18, 80)
    with watched(dsn18, hand.clock, interval="500ms") as app:
        poll(app, "jobs", "reservations")
        assert state(app, "reservations").interval == 0.5
