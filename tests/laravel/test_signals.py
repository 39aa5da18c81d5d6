"""`queue:restart` of real Laravel, by a machine whose clock is wrong; a supervisor starts again whoever ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psycopg
import pytest

from exporter.app import App

from ..patience import until
from ..world import poll, value, watched
from .laravel import Laravel, Worker

POOLS = {vm: {"application_name": vm, "queues": ["default"]} for vm in ("vm-a", "vm-b")}
Counts = tuple[float | None, float | None]


@contextmanager
def supervised(start: Callable[[], Worker]) -> Iterator[list[Worker]]:
    """A worker that is started again whenever it ends, as Supervisor does; yields all that there have been."""
    workers, stop = [start()], Event()

    def supervise() -> None:
        while not stop.wait(0.05):
            if workers[-1].poll() is not None:
                workers.append(start())

    thread = Thread(target=supervise)
    thread.start()
    try:
        yield workers
    finally:
        stop.set()
        thread.join()


def counted(app: App, what: str = "workers_outdated") -> Counts:
    """Of both pools, asked anew."""
    poll(app, "activity", "signals")
    return value(app, what, pool="vm-a"), value(app, what, pool="vm-b")


@pytest.mark.parametrize("ahead", [0, 40])
def test_a_cache_of_ones_own_hears_no_restart(laravel: Laravel, ahead: int) -> None:
    """A worker with a cache of its own stays, outdated; the other one restarts and is not, however wrong the clock."""
    with (
        supervised(lambda: laravel.work(pool="vm-a")) as heard,
        supervised(lambda: laravel.work(pool="vm-b", cache="array")) as deaf,
        watched(laravel.dsn, pools=POOLS) as app,
    ):
        until(lambda: counted(app, "workers") == (1, 1))
        assert counted(app) == (0, 0)
        laravel.restart(clock=ahead)
        until(lambda: counted(app) == (0, 1))
        until(lambda: counted(app, "workers") == (1, 1))
        assert counted(app) == (0, 1)
        assert (len(heard), len(deaf)) == (2, 1)
        with psycopg.connect(laravel.dsn) as connection:
            ((written, now),) = connection.execute("SELECT value, extract(epoch FROM now())::int FROM cache").fetchall()
        signal = value(app, "restart_signal_timestamp_seconds")
        assert written == f"i:{signal:.0f};"
        assert ahead - 30 < (signal or 0) - now <= ahead


def test_a_cleared_cache_restarts_workers(laravel: Laravel) -> None:
    """Real workers restart when the signal vanishes as well, and are outdated until they do."""
    laravel.restart()
    with supervised(lambda: laravel.work(pool="vm-a")) as workers, watched(laravel.dsn, pools=POOLS) as app:
        until(lambda: counted(app, "workers") == (1, 0))
        assert counted(app) == (0, 0)
        laravel.dispatch(seconds=1.5)
        laravel.truth.wait_for("started")
        counted(app)
        with psycopg.connect(laravel.dsn) as connection:
            connection.execute("DELETE FROM cache")
        assert counted(app) == (1, 0)  # it finishes its job first
        until(lambda: len(workers) == 2)
        until(lambda: counted(app) == (0, 0))
        assert value(app, "restart_signal_timestamp_seconds") is None
