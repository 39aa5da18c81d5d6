"""A steady load, and a queue that starves: the workers' logs beside all that we show."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from exporter.app import App

from ..patience import until
from ..world import poll, value, watched
from .laravel import Laravel
from .shown import polling, shown
from .truth import Bounds

SHORT, LONG = "App\\Jobs\\SendInvoice", "App\\Jobs\\SyncInventory"
WHOLE = 1.0  # second: Laravel's times and ours are whole ones
SETTINGS: dict[str, Any] = {
    "queues": {"default": {}},
    "pools": {"vm-a": {"application_name": "vm-a", "queues": ["default"], "timeout": 60}},
}
RETRY_AFTER = 7  # seconds; a job that takes longer than half of it takes long


def held(laravel: Laravel) -> list[float]:
    """Seconds for which each job was reserved at most, by the log."""
    began = {event.id: event.span.began for event in laravel.truth.events("started")}
    return [event.span.ended - began[event.id] for event in laravel.truth.events("processed")]


def available_since(laravel: Laravel, queue: str) -> int:
    """When the queue's first job could have been taken, as Laravel wrote it: Unix time."""
    with psycopg.connect(laravel.dsn) as connection:
        row = connection.execute("SELECT min(available_at) FROM jobs WHERE queue = %s", (queue,)).fetchone()
    assert row
    return int(row[0])


def long(app: App, job_class: str) -> float | None:
    """How many reservations of this class took longer than half of retry_after."""
    return value(app, "long_reservations_total", queue="default", job_class=job_class)


def longer_than(app: App, seconds: float) -> float:
    """How many reservations are known to have lasted longer than one of the buckets allows."""
    shorter = value(app, "reservation_seconds_bucket", queue="default", le=str(seconds))
    assert shorter is not None
    return shown(app, "reservation_seconds_count") - shorter


def ids(laravel: Laravel, name: str) -> list[int]:
    """Of the jobs with such an event; each as often as there was one."""
    return sorted(event.id for event in laravel.truth.events(name))


def test_steady_load_is_what_the_logs_say(laravel: Laravel) -> None:
    """
    As many jobs are done as dispatched; each long one is counted under its class, and nothing that did not happen.

    Of reservations shorter than the interval only some are seen, and each until it was last
    seen: their number and their lengths are lower bounds, within the second that Laravel counts in.
    """
    with watched(laravel.dsn, interval=0.2, retry_after=RETRY_AFTER, **SETTINGS) as app, polling(app):
        for _ in range(5):
            laravel.work(retry_after=RETRY_AFTER)
        laravel.dispatch(n=3, seconds=5.2, class_="SyncInventory")
        laravel.start_dispatching(n=60, rate=20, seconds=0.1, class_="SendInvoice")
        leads = set[float | None]()  # None while no job was held
        while len(laravel.truth.events("processed")) < 63:
            leads.add(value(app, "reserved_at_lead_seconds", queue="default"))
            time.sleep(0.05)
        until(lambda: longer_than(app, 1.0) >= 3)
        laravel.stop()
        until(lambda: value(app, "table_rows_deleted_total", table="jobs") == 63)
        assert ids(laravel, "dispatched") == ids(laravel, "started") == ids(laravel, "processed")
        assert [long(app, SHORT), long(app, LONG)] == [0, 3]
        assert 3 <= shown(app, "reservation_seconds_count") <= 63
        assert longer_than(app, 1.0) <= sum(seconds > 1 for seconds in held(laravel))
        assert shown(app, "reservation_seconds_sum") <= sum(held(laravel)) + WHOLE * 63
        assert leads != {None}
        assert leads <= {None, -WHOLE, 0, WHOLE}
        assert value(app, "job_timeout_seconds", queue="default", job_class=SHORT) == 60
        assert value(app, "failed_jobs_total", queue="default", job_class="other") == 0
        nothing = ("reservations_repeated_total", "reserved_past_timeout_jobs", "failed_jobs", "retried_jobs")
        assert [shown(app, name) for name in nothing] == [0] * len(nothing)


def test_starving_queue_grows_old_while_the_first_one_is_served(laravel: Laravel) -> None:
    """
    With --queue=high,default nobody starts a job of default while high has any: its age grows by the second.

    Its ready jobs stay, and no reservation of it is ever seen, while those of high go through.
    """
    laravel.dispatch("high", n=45, seconds=0.1)
    laravel.dispatch("default", n=3, seconds=0)
    since = available_since(laravel, "default")
    ages = set[float]()
    with watched(laravel.dsn) as app:
        laravel.work("high,default")
        while len(laravel.truth.events("processed")) < 35:
            before = int(time.time())
            poll(app, "jobs", "reservations")
            ages.add(shown(app, "oldest_job_age_seconds"))
            assert shown(app, "oldest_job_age_seconds") in Bounds(before - since, int(time.time()) - since)
            assert value(app, "jobs", queue="default", state="ready") == 3
            assert value(app, "last_reservation_timestamp_seconds", queue="default") is None
            assert not [event for event in laravel.truth.events("started") if event.facts["queue"] == "default"]
            time.sleep(0.1)
        assert value(app, "last_reservation_timestamp_seconds", queue="high") is not None
        laravel.truth.wait_for("processed", 48)
        poll(app, "jobs")
        assert shown(app, "oldest_job_age_seconds") == 0
    assert len(ages) >= 3
    assert [event.facts["queue"] for event in laravel.truth.events("started")] == ["high"] * 45 + ["default"] * 3
