"""Real Laravel 8 workers on Redis: what is said of their queue against their own logs."""

from __future__ import annotations

import time

import redis

from exporter.app import App
from exporter.demo.redis import Redis

from ..laravel.laravel import Laravel
from ..laravel.truth import bounds, timed
from ..patience import until
from ..world import value
from .world import counts, look, state_of, watched

JOBS, RATE, SECONDS, WORKERS = 30, 30, 0.3, 3  # more than the workers can take, so that some wait


def shown(app: App, name: str) -> float:
    """The value of a series of the queue `default` that must be there."""
    number = value(app, name, queue="default")
    assert number is not None
    return number


def repeated(app: App) -> float:
    """Jobs handed out again, looked at anew."""
    look(app, "reservations")
    return shown(app, "reservations_repeated_total")


def test_steady_load(laravel: Laravel, server: Redis) -> None:
    """At every poll as many jobs are ready and reserved as the logs say, and at the end none is left."""
    samples = []
    with watched(server.url()) as app:
        for _ in range(WORKERS):
            laravel.work()
        laravel.start_dispatching(n=JOBS, rate=RATE, seconds=SECONDS)
        while len(laravel.truth.events("processed")) < JOBS:
            samples.append(timed(lambda: counts(app)))
            time.sleep(0.05)
        laravel.stop()
        assert counts(app) == {}
    dispatched, started, processed = (laravel.truth.events(name) for name in ("dispatched", "started", "processed"))
    waiting = [bounds(dispatched, started, looked) for _, looked in samples]
    running = [bounds(started, processed, looked) for _, looked in samples]
    for (found, _), may_wait, may_run in zip(samples, waiting, running, strict=True):
        assert found.get("ready", 0.0) in may_wait
        assert found.get("reserved", 0.0) in may_run
        assert {*found} <= {"ready", "reserved"}
    assert max(at.least for at in waiting) > min(at.most for at in waiting)
    assert max(at.least for at in running) > min(at.most for at in running)


def test_case_35_retry_after_too_short(laravel: Laravel, server: Redis) -> None:
    """Case 35: a job that takes longer than retry_after is run again while it runs: each further start is counted."""
    for _ in range(2):
        laravel.work(retry_after=2, sleep=1, tries=3)
    with watched(server.url(), retry_after="2s", interval="100ms") as app:
        look(app)
        laravel.dispatch(seconds=4.2)
        laravel.truth.wait_for("started")
        until(lambda: repeated(app) == len(laravel.truth.events("started")) - 1 > 0)
        look(app, "reservations")
        assert "was handed out again after" in state_of(app, "reservations").notes[0]
        assert "SleepJob" in state_of(app, "reservations").notes[0]


def test_killed_worker(laravel: Laravel, server: Redis) -> None:
    """SIGKILL in mid-job: the job stays reserved, expires after retry_after, and is taken over by the next worker."""
    laravel.dispatch(seconds=0.5)
    with watched(server.url(), retry_after="2s") as app:
        worker = laravel.work(retry_after=2)
        laravel.truth.wait_for("started")
        laravel.kill(worker)
        assert counts(app) == {"reserved": 1}
        while (found := counts(app)) == {"reserved": 1}:
            assert shown(app, "oldest_reserved_job_age_seconds") < 2
            assert shown(app, "oldest_job_age_seconds") == 0
            repeated(app)
            time.sleep(0.05)
        assert found == {"expired": 1}
        assert shown(app, "oldest_job_age_seconds") == shown(app, "oldest_reserved_job_age_seconds") - 2 >= 0
        repeated(app)
        laravel.work(retry_after=2, tries=2)
        laravel.truth.wait_for("started", 2)
        assert repeated(app) == 1
        laravel.truth.wait_for("processed")
        assert counts(app) == {}
        look(app, "reservations")
        assert value(app, "reservation_seconds_count", queue="default") == 2


def test_without_a_worker(laravel: Laravel, server: Redis) -> None:
    """Nobody takes the jobs and nobody moves those that are due: all are ready, and the age of the oldest grows."""
    laravel.dispatch(n=3)
    laravel.dispatch(delay=1)
    with watched(server.url()) as app:
        assert counts(app) == {"ready": 3, "delayed": 1}
        assert value(app, "oldest_job_age_seconds", queue="default") is None  # Laravel 8 writes no time
        until(lambda: counts(app) == {"ready": 4})
        ages = set[float]()
        while len(ages) < 3:
            counts(app)
            ages.add(shown(app, "oldest_job_age_seconds"))
            time.sleep(0.05)
        assert ages == {*range(int(min(ages)), int(min(ages)) + 3)}


def test_released_jobs_are_not_handed_out_again(laravel: Laravel, server: Redis) -> None:
    """A release keeps the job's id, and its attempts grow: it has three reservations, and none is repeated."""
    laravel.work(tries=5)
    with watched(server.url()) as app:
        look(app)
        laravel.dispatch(seconds=0.3, mode="release:0")
        while len(laravel.truth.events("processed")) < 3:
            assert repeated(app) == 0
            time.sleep(0.02)
        look(app, "reservations")
        assert shown(app, "reservation_seconds_count") == 3


def test_restart_signal(laravel: Laravel, server: Redis, client: redis.Redis) -> None:
    """`queue:restart` is found in the cache's database, with the prefix from the settings or the usual ones."""
    explicit = {"prefix": "laravel_database_laravel_cache:"}
    with watched(server.url(), cache={}) as usual, watched(server.url(), cache=explicit) as own:
        look(usual)
        assert value(usual, "restart_signal_timestamp_seconds") is None
        assert value(usual, "paused", queue="default") is None  # nobody knows: it could be another prefix
        before = int(time.time())
        laravel.restart()
        for app in (usual, own):
            look(app)
            assert before <= (value(app, "restart_signal_timestamp_seconds") or 0) <= time.time()
            assert value(app, "paused", queue="default") == 0
