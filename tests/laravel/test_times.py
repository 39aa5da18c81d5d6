"""When jobs become ready, and how their ages grow, by the rows that Laravel writes."""

from __future__ import annotations

import time

import psycopg
import pytest

from exporter.app import App

from ..world import value, watched
from .laravel import Laravel
from .shown import counts, longest_held, oldest
from .truth import Bounds


def available_at(laravel: Laravel) -> int:
    """When the first job may run, as Laravel wrote it: Unix time."""
    with psycopg.connect(laravel.dsn) as connection:
        row = connection.execute("SELECT available_at FROM jobs ORDER BY id").fetchone()
    assert row
    return int(row[0])


def look(app: App, since: int) -> tuple[dict[str, float], Bounds]:
    """Poll; the states with jobs in them, and the whole seconds that had passed since then, at some moment of it."""
    before = int(time.time())
    found = counts(app)
    return found, Bounds(before - since, int(time.time()) - since)


def test_delayed_job_becomes_ready_when_it_is_due(laravel: Laravel) -> None:
    """A delayed job is delayed, of no age, until it is due; then it is ready, and its age starts at zero."""
    laravel.dispatch(delay=2)
    due = available_at(laravel)
    with watched(laravel.dsn) as app:
        found, passed = look(app, due)
        while found == {"delayed": 1}:
            assert passed.least < 0
            assert oldest(app) == 0
            time.sleep(0.05)
            found, passed = look(app, due)
        assert found == {"ready": 1}
        assert passed.most >= 0
        assert oldest(app) in passed


def test_without_a_worker_the_age_grows_second_by_second(laravel: Laravel) -> None:
    """Jobs that nobody takes stay ready; the age of the oldest is the seconds since Laravel made it available."""
    laravel.dispatch()
    since = available_at(laravel)
    laravel.dispatch(n=2)
    with watched(laravel.dsn) as app:
        ages = set[float | None]()
        while len(ages) < 3:
            found, passed = look(app, since)
            assert found == {"ready": 3}
            assert oldest(app) in passed
            ages.add(oldest(app))
            time.sleep(0.05)


@pytest.mark.parametrize("ahead", [40.0, -40.0])
def test_case_40_worker_with_a_wrong_clock_makes_no_age_negative(laravel: Laravel, ahead: float) -> None:
    """Case 40: reservations by a worker 40 s ahead are of the future, and have age 0; 40 s behind, 40 s."""
    laravel.dispatch(clock=min(0.0, ahead), seconds=30)
    laravel.work(clock=ahead)
    laravel.truth.wait_for("started")
    with watched(laravel.dsn) as app:
        assert counts(app) == {"reserved": 1}
        assert longest_held(app) == 0 if ahead > 0 else longest_held(app) in Bounds(40, 60)
        assert oldest(app) == 0
        assert value(app, "implausible_jobs", queue="default") == 0


def test_case_40_job_of_a_host_that_is_ahead_is_not_due_yet(laravel: Laravel) -> None:
    """Case 40: a job pushed by a host 40 s ahead is delayed by the database's clock, and has no negative age."""
    laravel.dispatch(clock=40.0)
    with watched(laravel.dsn) as app:
        assert counts(app) == {"delayed": 1}
        assert oldest(app) == 0
        assert value(app, "implausible_jobs", queue="default") == 0
