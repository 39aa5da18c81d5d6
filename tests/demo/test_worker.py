"""A worker's turns, with a clock that is moved by hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

import psycopg
import pytest

from exporter.demo import laravel
from exporter.demo.laravel import Connection
from exporter.demo.payload import payload
from exporter.demo.plan import Arrivals, Job, Plan, Pool
from exporter.demo.worker import KilledError, Worker

from ..world import HandClock
from .conftest import MakeWorker

INVOICE = Job("App\\Jobs\\SendInvoice", (0, 0))
POOL = Pool("default", ("default",), workers=1, sleep=3, tries=3, backoff=5)


def a_plan(*jobs: Job) -> Plan:
    """A plan that knows these classes of jobs."""
    return Plan({}, arrivals=tuple(Arrivals("default", job, per_second=0) for job in jobs))


def push(connection: Connection, hand: HandClock, job: Job = INVOICE, queue: str = "default") -> int:
    """Dispatch a job now. Returns its id."""
    text = payload(job, queue, Random(1), int(hand.wall))
    return laravel.push(connection, queue, text, int(hand.wall))


def rows(connection: Connection, hand: HandClock) -> list[tuple[object, ...]]:
    """Attempts, seconds since it was reserved, seconds until it is due: of every row in order."""
    return connection.execute(
        "SELECT attempts, %(now)s - reserved_at, available_at - %(now)s FROM jobs ORDER BY id", {"now": int(hand.wall)}
    ).fetchall()


def failures(connection: Connection) -> list[str]:
    """The exceptions in failed_jobs, in order."""
    return [text for (text,) in connection.execute("SELECT exception FROM failed_jobs ORDER BY id").fetchall()]


def test_first_queue_comes_first(connection: Connection, hand: HandClock, make_worker: MakeWorker) -> None:
    """With --queue=high,default nothing of `default` is taken while `high` has a job."""
    worker = make_worker(a_plan(INVOICE), Pool("both", ("high", "default"), workers=1))
    push(connection, hand, queue="default")
    push(connection, hand, queue="high")
    push(connection, hand, queue="high")
    left = []
    while worker.turn():
        left.append([queue for (queue,) in connection.execute("SELECT queue FROM jobs ORDER BY id").fetchall()])
    assert left == [["default", "high"], ["default"], []]


def test_idle_worker_sleeps(hand: HandClock, make_worker: MakeWorker) -> None:
    """A worker without a job rests for --sleep."""
    began = hand.wall
    assert make_worker(a_plan(), POOL).turn() is False
    assert hand.wall - began == POOL.sleep


def test_failing_job_backs_off_until_it_fails(connection: Connection, hand: HandClock, make_worker: MakeWorker) -> None:
    """A job that throws comes back after each of its own backoffs, and fails at its last try."""
    job = Job("App\\Jobs\\CallPartner", (0, 0), tries=3, backoff=(10, 30), fails=1.0)
    worker = make_worker(a_plan(job), POOL)
    push(connection, hand, job)
    worker.turn()
    assert rows(connection, hand) == [(1, None, 10)]
    hand.pass_(10)
    worker.turn()
    assert rows(connection, hand) == [(2, None, 30)]
    hand.pass_(30)
    worker.turn()
    assert rows(connection, hand) == []
    (exception,) = failures(connection)
    assert exception.startswith("RuntimeException: App\\Jobs\\CallPartner")


def test_pool_backs_off_for_jobs_that_do_not_say(
    connection: Connection, hand: HandClock, make_worker: MakeWorker
) -> None:
    """A job without a backoff and a number of tries of its own gets those of the command line."""
    job = Job("App\\Jobs\\CallPartner", (0, 0), fails=1.0)
    worker = make_worker(a_plan(job), Pool("default", ("default",), workers=1, tries=2, backoff=7))
    push(connection, hand, job)
    worker.turn()
    assert rows(connection, hand) == [(1, None, 7)]
    hand.pass_(7)
    worker.turn()
    assert len(failures(connection)) == 1


def test_release_counts_as_an_attempt(connection: Connection, hand: HandClock, make_worker: MakeWorker) -> None:
    """A job that puts itself back too often has failed without having thrown."""
    job = Job("App\\Jobs\\CallPartner", (0, 0), tries=1, backoff=(2,), releases=1.0)
    worker = make_worker(a_plan(job), POOL)
    push(connection, hand, job)
    worker.turn()
    assert rows(connection, hand) == [(1, None, 2)]
    hand.pass_(2)
    worker.turn()
    (exception,) = failures(connection)
    assert "MaxAttemptsExceededException" in exception


def test_killed_worker_leaves_its_job_reserved(
    connection: Connection, hand: HandClock, make_worker: MakeWorker
) -> None:
    """A worker killed in the middle of a job leaves it reserved; after retry_after another one takes it over."""
    job = Job("App\\Jobs\\ResizeImages", (20, 20), kills=1.0)
    push(connection, hand, job)
    with pytest.raises(KilledError):
        make_worker(a_plan(job), POOL).turn()
    assert rows(connection, hand) == [(1, 10, -10)]
    healthy = make_worker(a_plan(), POOL)
    hand.pass_(79)
    assert healthy.turn() is False
    assert healthy.turn() is True
    assert rows(connection, hand) == []


def test_job_that_outlasts_its_timeout_kills_its_worker(
    connection: Connection, hand: HandClock, make_worker: MakeWorker
) -> None:
    """A worker kills itself at its job's own timeout, not at --timeout; the job stays reserved while tries are left."""
    job = Job("App\\Jobs\\ImportCsv", (100, 100), timeout=40, tries=2)
    push(connection, hand, job)
    with pytest.raises(KilledError):
        make_worker(a_plan(job), POOL).turn()
    assert rows(connection, hand) == [(1, 40, -40)]
    hand.pass_(50)
    with pytest.raises(KilledError):
        make_worker(a_plan(job), POOL).turn()
    assert rows(connection, hand) == []
    (exception,) = failures(connection)
    assert "TimeoutExceededException" in exception


def test_job_without_timeout_runs_on(connection: Connection, hand: HandClock, make_worker: MakeWorker) -> None:
    """A timeout of 0 is none: the job outlasts --timeout and is done in the end."""
    job = Job("App\\Jobs\\Export", (500, 500), timeout=0)
    push(connection, hand, job)
    assert make_worker(a_plan(job), POOL).turn() is True
    assert rows(connection, hand) == []


@pytest.mark.parametrize("text", ["broken json", '{"not":"laravel"}', "[1]"])
def test_what_is_no_job_vanishes(connection: Connection, hand: HandClock, make_worker: MakeWorker, text: str) -> None:
    """A row that Laravel cannot read is gone after its turn: neither in jobs nor in failed_jobs."""
    laravel.push(connection, "default", text, int(hand.wall))
    assert make_worker(a_plan(), POOL).turn() is True
    assert (rows(connection, hand), failures(connection)) == ([], [])


def test_fast_clock_takes_what_is_not_its_own(connection: Connection, hand: HandClock, make_worker: MakeWorker) -> None:
    """A machine that is 40 s ahead takes delayed jobs early and held ones too soon, and writes its own time."""
    ahead = make_worker(a_plan(INVOICE), Pool("vm-b", ("default",), workers=1, ahead=40.0))
    text = payload(INVOICE, "default", Random(1), int(hand.wall))
    laravel.push(connection, "default", text, int(hand.wall), delay=40)
    assert ahead.pop("default")
    assert rows(connection, hand) == [(1, -40, 40)]
    hand.pass_(89)
    assert ahead.pop("default") is None
    hand.pass_(1)
    assert ahead.pop("default")
    push(connection, hand)
    assert make_worker(a_plan(INVOICE), POOL).pop("default")
    hand.pass_(50)
    assert [taken.attempts for taken in (ahead.pop("default"),) if taken] == [2]


def test_pool_may_lock_without_skipping(
    tables: str, connection: Connection, hand: HandClock, make_worker: MakeWorker
) -> None:
    """A worker that cannot see the server's version waits for the worker that is taking a job; others step over it."""
    push(connection, hand)
    with psycopg.connect(tables) as other:
        other.execute('SELECT * FROM "jobs" FOR UPDATE')
        connection.execute("SET lock_timeout = '100ms'")
        assert make_worker(a_plan(INVOICE), POOL).turn() is False
        with pytest.raises(psycopg.errors.LockNotAvailable):
            make_worker(a_plan(INVOICE), replace(POOL, skip_locked=False)).turn()


@pytest.mark.parametrize(("own_cache", "turns"), [(False, 2), (True, 5)])
def test_restart_ends_a_worker(connection: Connection, hand: HandClock, own_cache: bool, turns: int) -> None:
    """`queue:restart` ends a worker after the turn it is in; one with a cache of its own goes on."""
    rests = 0

    def rest(seconds: float) -> None:
        nonlocal rests
        rests += 1
        if rests == 2:
            laravel.restart(connection, int(hand.wall))
        if rests == 5:
            raise KilledError

    pool = Pool("vm-b", (), workers=1, own_cache=own_cache)
    with suppress(KilledError):
        Worker(a_plan(), pool, connection, lambda: hand.wall, rest, Random(1)).run()
    assert rests == turns


def test_paused_queue_is_left_alone(connection: Connection, hand: HandClock, make_worker: MakeWorker) -> None:
    """Workers leave a paused queue alone and go on with the next, except those with a cache of their own."""
    push(connection, hand, queue="default")
    push(connection, hand, queue="emails")
    laravel.pause(connection, "default", int(hand.wall))
    worker = make_worker(a_plan(INVOICE), Pool("both", ("default", "emails"), workers=1))
    assert [worker.turn(), worker.turn()] == [True, False]
    assert connection.execute("SELECT queue FROM jobs").fetchall() == [("default",)]
    deaf = make_worker(a_plan(INVOICE), Pool("vm-b", ("default",), workers=1, own_cache=True))
    assert deaf.turn() is True
