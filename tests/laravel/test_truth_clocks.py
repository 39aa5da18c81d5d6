"""Workers whose clock is wrong: how wrong it is by their own logs, and by what we show."""

from __future__ import annotations

from exporter.app import App

from ..world import poll, value, watched
from .laravel import Laravel
from .truth import Event, timed

WHOLE = 1.0  # second: Laravel's times and ours are whole ones


def looked(app: App) -> None:
    """A pass over the table, and a look at each job that it found."""
    poll(app, "jobs", "reservations")


def lead(app: App) -> float:
    """By how much a worker's clock is ahead, as the page says now."""
    found = value(app, "reserved_at_lead_seconds", queue="default")
    assert found is not None
    return found


def ahead(event: Event, true: Event) -> float:
    """By how much the clock of one worker was ahead of another's: both log the machine's monotonic clock as well."""
    return float((event.facts["clock"] - event.span.ended) - (true.facts["clock"] - true.span.ended))


def test_worker_40_s_ahead_shows_its_lead_and_takes_a_job_that_another_has(laravel: Laravel) -> None:
    """
    A worker 40 s ahead takes a job that another VM's worker is busy with: repeated by 1, and a lead of 36 to 41 s.

    The lead falls by a second each second until the job is looked at, so it is a lower bound.
    """
    with watched(laravel.dsn, retry_after=42) as app:
        laravel.work(pool="vm-a", retry_after=42)
        laravel.dispatch(seconds=30)
        (first,) = laravel.truth.wait_for("started")
        looked(app)
        assert abs(lead(app)) <= WHOLE

        laravel.work(pool="vm-b", retry_after=42, clock=40, tries=2)
        second = laravel.truth.wait_for("started", 2)[-1]
        _, span = timed(lambda: looked(app))
        assert value(app, "reservations_repeated_total", queue="default") == 1
        assert ahead(second, first) - (span.ended - second.span.began) - WHOLE <= lead(app) <= 40 + WHOLE
    assert (second.id, second.facts["pool"], second.facts["attempts"]) == (first.id, "vm-b", 2)
    assert second.span.began - first.span.ended < 40  # 42 s would have been the time
    assert round(ahead(second, first)) == 40


def test_worker_40_s_behind_shows_a_negative_lead(laravel: Laravel) -> None:
    """
    A job first seen as held for longer than since the last pass tells that its worker is behind: by 40 s, or less.

    Less by the time between that pass and the reservation.
    """
    laravel.work(clock=-40)
    with watched(laravel.dsn) as app:
        _, before = timed(lambda: looked(app))
        laravel.dispatch(clock=-40, seconds=30)
        (started,) = laravel.truth.wait_for("started")
        looked(app)
        assert -40 - WHOLE <= lead(app) <= -40 + (started.span.ended - before.began) + WHOLE
