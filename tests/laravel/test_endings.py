"""How jobs end: released, failed, given up; and what that does to our numbers."""

from __future__ import annotations

import psycopg
import pytest

from ..patience import until
from ..world import value, watched
from .laravel import Laravel
from .shown import counts, oldest, rows


def test_released_job_is_delayed(laravel: Laravel) -> None:
    """A job that a worker puts back for a minute is delayed, in a row of its own that keeps its attempts."""
    laravel.dispatch(seconds=0, mode="release:60")
    laravel.work(tries=5)
    released = laravel.truth.wait_for("processed")[0]
    with watched(laravel.dsn) as app:
        assert counts(app) == {"delayed": 1}
        assert oldest(app) == 0
        laravel.stop()
        until(lambda: rows(app) == (2, 1, 1))
    with psycopg.connect(laravel.dsn) as connection:
        ((id_, attempts),) = connection.execute("SELECT id, attempts FROM jobs").fetchall()
    assert released.facts["released"]
    assert (id_ > released.id, attempts) == (True, 1)


def test_each_release_is_a_new_row(laravel: Laravel) -> None:
    """A job that is released twice and then done was inserted, reserved and deleted three times."""
    laravel.dispatch(seconds=0, mode="release:0")
    laravel.work(tries=5)
    laravel.truth.wait_for("processed", 3)
    with watched(laravel.dsn, queues={"default": None}) as app:
        assert counts(app) == {}
        laravel.stop()
        until(lambda: rows(app) == (3, 3, 3))
    started = laravel.truth.events("started")
    assert len({event.id for event in started}) == 3
    assert len({event.facts["uuid"] for event in started}) == 1
    assert [event.facts["attempts"] for event in started] == [1, 2, 3]


@pytest.mark.parametrize("mode", ["fail", "give_up"])
def test_failed_job_leaves_the_table(laravel: Laravel, mode: str) -> None:
    """A failed job is nowhere in the jobs table: its row counts as deleted, and every state says zero."""
    laravel.dispatch(n=2, seconds=0, mode=mode)
    with watched(laravel.dsn) as app:
        assert counts(app) == {"ready": 2}
        laravel.work()
        laravel.truth.wait_for("failed", 2)
        assert counts(app) == {}
        assert value(app, "jobs", queue="default", state="ready") == 0
        laravel.stop()
        until(lambda: rows(app) == (2, 2, 2))
    with psycopg.connect(laravel.dsn) as connection:
        assert connection.execute("SELECT count(*) FROM failed_jobs").fetchone() == (2,)


def test_job_that_fails_with_tries_left_waits_for_its_next(laravel: Laravel) -> None:
    """A try that fails with tries left is no failed job: the job is delayed by the worker's backoff."""
    laravel.dispatch(seconds=0, mode="fail_once")
    laravel.work(tries=2, backoff=60)
    with watched(laravel.dsn) as app:
        laravel.truth.wait_for("exception")
        until(lambda: counts(app) == {"delayed": 1})
        laravel.stop()
        until(lambda: rows(app) == (2, 1, 1))
    assert not laravel.truth.events("failed")
