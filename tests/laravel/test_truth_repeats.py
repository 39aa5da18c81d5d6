"""Jobs that are handed out again: what the workers' logs say of it, and what we show."""

from __future__ import annotations

import signal
import time

from exporter.app import App

from ..patience import until
from ..world import value, watched
from .laravel import Laravel
from .shown import polling, shown
from .truth import Event


def states(app: App) -> tuple[float, float]:
    """How many jobs are reserved and expired, as the page says now."""
    found = (value(app, "jobs", queue="default", state=state) for state in ("reserved", "expired"))
    reserved, expired = (number or 0.0 for number in found)
    return reserved, expired


def repeated(app: App) -> float:
    """How many jobs have been handed out again, as the page says now."""
    return value(app, "reservations_repeated_total", queue="default") or 0.0


def past_timeout(app: App) -> float | None:
    """How many jobs are held longer than their timeout allows, as the page says now."""
    return value(app, "reserved_past_timeout_jobs", queue="default")


def double_runs(laravel: Laravel) -> list[Event]:
    """The starts of jobs that another worker was still busy with."""
    ended = {event.id: event.span.ended for event in reversed(laravel.truth.events("processed"))}
    again = [event for event in laravel.truth.events("started") if event.facts["attempts"] > 1]
    return [event for event in again if event.span.began < ended[event.id]]


def test_retry_after_too_short_every_second_run_is_counted(laravel: Laravel) -> None:
    """
    Jobs of 11 s with a retry_after of 3 s are expired, then run twice at once, and each second run is counted.

    The bound is nine in ten, looking every 2 s, and none that the logs do not know. That the
    job's own timeout of 120 s is not below retry_after is seen while the first one runs.
    """
    jobs = 10
    for _ in range(jobs):
        laravel.work(pool="vm-a", retry_after=3, sleep=0.5, max_jobs=1)
    idle = [laravel.work(pool="vm-b", retry_after=3, sleep=0.5, max_jobs=1) for _ in range(jobs)]
    for worker in idle:
        worker.send_signal(signal.SIGSTOP)
    with watched(laravel.dsn, interval=2, retry_after=3) as app, polling(app):
        laravel.dispatch(n=jobs, seconds=11, class_="ImportCsv")
        until(lambda: states(app) == (0, jobs))
        assert repeated(app) == 0
        until(lambda: value(app, "job_timeout_seconds", queue="default", job_class="App\\Jobs\\ImportCsv") == 120)
        assert shown(app, "retry_after_seconds") == 3
        for worker in idle:
            worker.send_signal(signal.SIGCONT)
        laravel.truth.wait_for("processed", jobs)
        until(lambda: states(app) == (0, 0))
        counted = repeated(app)
    truth = double_runs(laravel)
    assert [event.facts["pool"] for event in truth] == ["vm-b"] * jobs
    assert 0.9 * len(truth) <= counted <= len(truth)


def test_sigkill_in_mid_job_looks_like_a_double_run(laravel: Laravel) -> None:
    """
    A job whose worker was killed is held past its timeout, then expired, then handed out again: repeated by 1.

    Its worker's connection is gone at once. Apart from that nothing differs from a double run:
    the row is the same.
    """
    timeout, retry_after = 1, 15
    killed = laravel.work(retry_after=retry_after, timeout=timeout, tries=3)
    laravel.work("mail")
    pools = {"vm-a": {"application_name": "vm-a", "queues": ["default"], "timeout": timeout}}
    with watched(laravel.dsn, interval=0.5, retry_after=retry_after, pools=pools) as app, polling(app):
        until(lambda: value(app, "workers", pool="vm-a") == 2)
        laravel.dispatch(seconds=30)
        (first,) = laravel.truth.wait_for("started")
        laravel.kill(killed)
        until(lambda: value(app, "workers", pool="vm-a") == 1, within=3)
        until(lambda: past_timeout(app) == 1, within=20)
        since = time.monotonic() - first.span.began
        until(lambda: states(app) == (0, 1))
        until(lambda: past_timeout(app) == 0)
        assert repeated(app) == 0
        other = laravel.work(retry_after=retry_after, timeout=timeout, tries=3)
        second = laravel.truth.wait_for("started", 2)[-1]
        until(lambda: (*states(app), repeated(app)) == (1, 0, 1))
    assert timeout + 10 <= since <= retry_after
    assert (second.id, second.pid, second.facts["attempts"]) == (first.id, other.pid, 2)
    assert not laravel.truth.events("processed", "failed")
