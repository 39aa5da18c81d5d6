"""The workers' clocks, as their reservations tell: ahead, behind, right, or nothing to tell by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import psycopg
import pytest

from exporter.app import App
from exporter.queues import EARLIEST
from exporter.sources.database.session import Session
from exporter.status import report

from ..clock.stepped import Stepped, stepped_postgres
from ..conftest import new_database
from ..world import HandClock, create_jobs, poll, state, value, watched
from .holding import Db, grow_older, hand_out_again, hold, lead, repeated

INTERVAL = 15
BUSY = 5  # seconds that a busy machine may take from one statement to the next, which no clock of ours shows


@pytest.fixture
def hand() -> HandClock:
    """Our own clock, that only the test moves."""
    return HandClock()


@pytest.fixture
def later(hand: HandClock, db: Db) -> Callable[[float], None]:
    """Lets time pass: for us, and for every row that is there."""

    def later(seconds: float) -> None:
        hand.pass_(seconds)
        grow_older(db, seconds)

    return later


Later = Callable[[float], None]


def about(seconds: int) -> range:
    """This lead, by rounding one more, or what is left of it on a busy machine."""
    return range(seconds - BUSY, seconds + 2)


def test_a_clock_that_is_ahead(dsn: str, db: Db) -> None:
    """A worker 40 s fast is seen from the first look on, and named as long as it holds a job that says so."""
    hold(db, -38)
    with watched(dsn) as app:
        poll(app)
        assert lead(app) in about(38)
        told = {finding.where: finding.says for finding in report(app.board).findings}
        assert told["database/default"].startswith("by the database's clock, reserved_at is 3")
        db.execute("DELETE FROM jobs")
        poll(app)
        assert lead(app) is None


def test_a_clock_that_is_behind(dsn: str, db: Db, hand: HandClock, later: Later) -> None:
    """A worker 40 s slow is seen when it takes a job that nobody held at the pass before."""
    with watched(dsn, hand.clock) as app:
        poll(app)
        later(INTERVAL)
        hold(db, 5 + 40)
        poll(app)
        assert lead(app) in about(-30)
        told = {finding.where: finding.says for finding in report(app.board, clock=hand.clock).findings}
        assert told["database/default"].endswith(" behind")
        later(INTERVAL)
        poll(app)
        assert lead(app) == 0  # that job was held before


def test_several_workers(dsn: str, db: Db, hand: HandClock, later: Later) -> None:
    """One right, one 10 s fast, one 40 s slow: the worst of them is told."""
    with watched(dsn, hand.clock) as app:
        poll(app)
        later(INTERVAL)
        for age in (3, 3 - 10, 3 + 40):
            hold(db, age)
        poll(app)
        assert lead(app) in about(-28)


def test_a_perfect_clock_is_right(dsn18: str, db18: Db, hand: HandClock) -> None:
    """Whenever jobs are taken, nobody is off by more than the second that whole seconds hide."""
    chance = Random(1)
    with watched(dsn18, hand.clock) as app:
        poll(app, "jobs", "reservations")
        for _ in range(60):
            pause = chance.uniform(6, 20)
            hand.pass_(pause)
            db18.execute("DELETE FROM jobs")
            for _ in range(5):
                hold(db18, chance.uniform(0, pause - BUSY))
            poll(app, "jobs", "reservations")
            assert lead(app) in (-1, 0, 1)


def test_a_second_worker_that_is_fast(dsn: str, db: Db) -> None:
    """Its clock is 40 s ahead, so it takes over after 50 s: both are told, by a look between two passes as well."""
    id_ = hold(db, 50)
    with watched(dsn) as app:
        poll(app)
        assert lead(app) == 0
        hand_out_again(db, id_, ahead=40)
        poll(app, "reservations")
        assert repeated(app) == 1
        assert lead(app) in about(40)


def test_times_that_cannot_be_accuse_nobody(dsn: str, db: Db, hand: HandClock, later: Later) -> None:
    """A reservation of 1970, or of 2038 from here, is a broken row and no clock."""
    with watched(dsn, hand.clock) as app:
        poll(app)
        later(INTERVAL)
        for reserved_at in (0, EARLIEST - 1, 2**31 - 1):
            db.execute("UPDATE jobs SET reserved_at = %s WHERE id = %s", (reserved_at, hold(db)))
        poll(app)
        assert lead(app) is None
        assert value(app, "implausible_jobs", queue="default") == 3
        assert value(app, "last_reservation_timestamp_seconds", queue="default") is None
        later(INTERVAL)
        hold(db, 1)
        poll(app)
        assert lead(app) == 0


def test_the_first_look_is_no_evidence(dsn: str, db: Db) -> None:
    """A job that was held before the exporter started may have been held for hours."""
    hold(db, 4000)
    with watched(dsn) as app:
        poll(app)
        assert lead(app) == 0


def test_after_a_pass_that_did_not_see_all(dsn: str, db: Db, hand: HandClock, later: Later) -> None:
    """Of more held jobs than are looked at, one that is new to us may be an old one: no evidence, and a note."""
    for _ in range(5):
        hold(db, 1000)
    with watched(dsn, hand.clock) as app:
        session(app).names["most_held"] = 3
        for _ in range(2):
            poll(app)
            later(INTERVAL)
        assert "not all jobs that are held" in state(app, "reservations").notes[0]
        session(app).names["most_held"] = 2000
        poll(app)  # sees all five, two of them for the first time
        assert lead(app) == 0
        later(INTERVAL)
        hold(db, 45)
        poll(app)
        assert lead(app) in about(-30)


def session(app: App) -> Session:
    """What the collectors of the database share."""
    found: Session = app.pollers[0].source.collectors[0].session  # type: ignore[attr-defined]
    return found


def test_polls_that_failed_claim_no_more(dsn: str, db: Db, hand: HandClock, later: Later) -> None:
    """With looks missing in between, a reservation is compared with the last one that succeeded."""
    db.execute(f"CREATE ROLE {(role := f'blind_{db.info.dbname}')} LOGIN; GRANT SELECT ON jobs TO {role}".encode())
    with watched(dsn.replace("postgres@", f"{role}@"), hand.clock) as app:
        poll(app, "jobs", "reservations")
        db.execute(f"REVOKE SELECT ON jobs FROM {role}; GRANT SELECT (id, queue, attempts, reserved_at, available_at)"
                   f" ON jobs TO {role}".encode())  # fmt: skip
        later(INTERVAL)
        hold(db, 0)
        poll(app, "jobs", "reservations")
        assert state(app, "jobs").up
        assert state(app, "reservations").reason == "permission"
        later(INTERVAL)
        db.execute(f"GRANT SELECT ON jobs TO {role}".encode())
        hold(db, 20 + 40)
        poll(app, "jobs", "reservations")
        assert lead(app) in about(-30)
    db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


@pytest.fixture(scope="module")
def stepped() -> Iterator[Stepped]:
    """Debian's PostgreSQL behind libfaketime."""
    with stepped_postgres() as server:
        yield server


@pytest.mark.parametrize("step", [-100, -10, 10, 100])
def test_a_databases_clock_that_is_set(stepped: Stepped, hand: HandClock, step: int) -> None:
    """Set back or forward between two looks, by NTP say, it accuses no worker whose clock is set with it."""
    stepped.set_clock(0)
    for dsn in new_database(stepped.server):
        with psycopg.connect(dsn, autocommit=True) as db, watched(dsn, hand.clock) as app:
            create_jobs(db)
            first = hold(db, 200)
            poll(app, "jobs", "reservations")
            stepped.set_clock(step)
            hand.pass_(INTERVAL)
            hold(db, 5)
            poll(app, "jobs", "reservations")
            assert lead(app) == 0
            assert repeated(app) == 0
            db.execute("DELETE FROM jobs WHERE id = %s", [first])
            poll(app, "jobs", "reservations")
            assert 199 + step <= (value(app, "reservation_seconds_sum", queue="default") or 0) <= 205 + step
