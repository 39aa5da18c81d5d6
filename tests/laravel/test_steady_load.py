"""Many jobs and several workers: our counts against the workers' own logs."""

from __future__ import annotations

import time
from typing import NamedTuple

from exporter.app import App

from ..patience import until
from ..world import watched
from .laravel import Laravel
from .shown import counts, rows
from .truth import Span, bounds, timed

JOBS, RATE, SECONDS, WORKERS = 60, 20, 0.25, 3  # more than the workers can take, so that some wait


class Sample(NamedTuple):
    """What one poll said."""

    looked: Span
    ready: float
    reserved: float


def sample(app: App) -> Sample:
    """Poll now; nothing ever expires in these tests."""
    found, looked = timed(lambda: counts(app))
    assert "expired" not in found
    return Sample(looked, found.get("ready", 0.0), found.get("reserved", 0.0))


def test_counts_agree_with_the_workers_logs_at_every_moment(laravel_everywhere: Laravel) -> None:
    """At every poll as many jobs are ready and reserved as the logs say; at the end no job is lost or counted twice."""
    laravel, samples = laravel_everywhere, []
    with watched(laravel.dsn) as app:
        for _ in range(WORKERS):
            laravel.work()
        laravel.start_dispatching(n=JOBS, rate=RATE, seconds=SECONDS)
        while len(laravel.truth.events("processed")) < JOBS:
            samples.append(sample(app))
            time.sleep(0.05)
        laravel.stop()
        until(lambda: rows(app) == (JOBS, JOBS, JOBS))

    dispatched, started, processed = (laravel.truth.events(name) for name in ("dispatched", "started", "processed"))
    assert len(started) == len(processed) == JOBS
    assert {e.id for e in dispatched} == {e.id for e in started} == {e.id for e in processed}
    waiting = [bounds(dispatched, started, looked) for looked, _, _ in samples]
    running = [bounds(started, processed, looked) for looked, _, _ in samples]
    for (_, ready, reserved), may_wait, may_run in zip(samples, waiting, running, strict=True):
        assert ready in may_wait
        assert reserved in may_run
    # the logs do pin the numbers down: no constant would have passed
    assert max(at.least for at in waiting) > min(at.most for at in waiting)
    assert max(at.least for at in running) > min(at.most for at in running)
