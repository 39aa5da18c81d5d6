"""What the exporter shows of the queue `default`, polled by hand or by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread

from exporter.app import App
from exporter.queues import STATES

from ..world import poll, value


def counts(app: App) -> dict[str, float]:
    """The states that have jobs in them."""
    poll(app, "jobs")
    found = {state: value(app, "jobs", queue="default", state=state) for state in STATES}
    return {state: number for state, number in found.items() if number}


def oldest(app: App) -> float:
    """The age of the oldest job that could be taken, as of the last poll."""
    return shown(app, "oldest_job_age_seconds")


def longest_held(app: App) -> float:
    """The age of the oldest reservation, as of the last poll."""
    return shown(app, "oldest_reserved_job_age_seconds")


def shown(app: App, name: str) -> float:
    """The value of a series that must be there."""
    number = value(app, name, queue="default")
    assert number is not None
    return number


def workers(app: App, pool: str) -> float | None:
    """The workers of the pool."""
    poll(app, "activity")
    return value(app, "workers", pool=pool)


def rows(app: App) -> tuple[float | None, ...]:
    """Rows inserted, updated and deleted so far."""
    poll(app, "statistics")
    return tuple(value(app, f"table_rows_{verb}_total", table="jobs") for verb in ("inserted", "updated", "deleted"))


@contextmanager
def polling(app: App) -> Iterator[None]:
    """
    The exporter polls by itself, as `serve` has it do.

    With no regard to its duty: here seconds stand for minutes, so the same questions take a larger share of them.
    """
    stop, threads = Event(), []
    for poller in app.pollers:
        poller.source = replace(poller.source, duty=1.0)
        threads.append(Thread(target=poller.run, args=(stop,)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
