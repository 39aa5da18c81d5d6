"""Jobs that fail for good, in every way there is: our counter against the workers' own logs."""

from __future__ import annotations

from collections import Counter

from exporter.app import App

from ..database.failures import counted, kept
from ..patience import until
from ..world import poll, watched
from .laravel import Laravel

Counts = dict[str, float]


def failures(app: App) -> Counts:
    """What is counted as failed, by class; all of it is of the one queue there is."""
    found = counted(app)
    assert {labels[:2] for labels in found} <= {("database", "default")}
    return {job_class: number for (_, _, job_class), number in found.items()}


def logged(laravel: Laravel) -> Counts:
    """What the workers say has failed for good."""
    return dict(Counter(event.facts["class"].removeprefix("App\\Jobs\\") for event in laravel.truth.events("failed")))


def test_failures_are_those_of_the_workers_logs(laravel_everywhere: Laravel) -> None:
    """Jobs that fail, or give up, count once however often they were tried; one that succeeds in the end does not."""
    laravel = laravel_everywhere
    with watched(laravel.dsn, queues={"default": None}) as app:
        poll(app, "failed_jobs")
        laravel.dispatch(n=3, seconds=0, mode="fail")
        laravel.dispatch(n=2, seconds=0, mode="fail", class_="SendInvoice")
        laravel.dispatch(n=2, seconds=0, mode="fail_once", class_="SendInvoice")
        laravel.dispatch(n=4, seconds=0, mode="give_up", class_="SyncInventory")
        laravel.dispatch(n=1, seconds=0, mode="ok", class_="ImportCsv")
        for _ in range(2):
            laravel.work(tries=2)
        laravel.truth.wait_for("failed", 9)
        laravel.truth.wait_for("processed", 3)
        laravel.stop()
        poll(app, "failed_jobs")
        assert failures(app) == logged(laravel) == {"SleepJob": 3, "SendInvoice": 2, "SyncInventory": 4}
    assert len(laravel.truth.events("exception")) > 5 + 2  # so some did fail twice


def test_a_job_that_its_worker_was_killed_for_has_failed(laravel: Laravel) -> None:
    """A worker whose job takes longer than --timeout fails the job and kills itself: that counts like any failure."""
    laravel.dispatch(seconds=30, class_="SendInvoice")
    with watched(laravel.dsn) as app:
        poll(app, "failed_jobs")
        worker = laravel.work(timeout=1)
        until(lambda: worker.poll() is not None)
        poll(app, "failed_jobs")
        assert failures(app) == logged(laravel) == {"SendInvoice": 1}


def test_a_failed_job_that_is_retried_and_fails_again_counts_twice(laravel: Laravel) -> None:
    """`queue:retry` takes the row away and the counter keeps its failure; the next one comes on top."""
    laravel.dispatch(seconds=0, mode="fail")
    with watched(laravel.dsn, queues={"default": None}) as app:
        poll(app, "failed_jobs")
        laravel.work()
        until(lambda: failures(app) == {"SleepJob": 1})
        laravel._run("artisan", "queue:retry", "all")  # as its own commands are run
        laravel.truth.wait_for("failed", 2)
        laravel.stop()
        assert failures(app) == logged(laravel) == {"SleepJob": 2}
    with watched(laravel.dsn, queues={"default": None}) as app:
        assert failures(app) == {}
        assert kept(app) == {("database", "default"): 1}
