"""`queue:restart`, which workers hear through their cache: who has not heard it, by the log and by what we show."""

from __future__ import annotations

import time

from exporter.app import App

from ..patience import until
from ..world import poll, value, watched
from .laravel import Laravel, Worker
from .truth import timed

POOLS = {vm: {"application_name": vm, "queues": ["default"]} for vm in ("vm-a", "vm-b")}


def outdated(app: App) -> dict[str, float | None]:
    """Workers of each pool that have been there since before the restart signal."""
    poll(app, "activity", "signals")
    return {vm: value(app, "workers_outdated", pool=vm) for vm in POOLS}


def begun_before(laravel: Laravel, moment: float, living: list[Worker]) -> dict[str, float | None]:
    """Workers of each pool that started before this moment and are still there, by their log."""
    pids = {worker.pid for worker in living if worker.poll() is None}
    old = [event for event in laravel.truth.events("worker") if event.pid in pids and event.span.ended < moment]
    return {vm: sum(event.facts["pool"] == vm for event in old) for vm in POOLS}


def test_restart_that_one_vm_does_not_see_leaves_its_workers_outdated(laravel: Laravel) -> None:
    """
    After queue:restart the workers of a VM with a cache of its own are outdated: as many as the logs say.

    One exporter sees the signal change; another one starts afterwards and has only its value, in whole seconds.
    """
    workers = [laravel.work(pool="vm-a") for _ in range(2)]
    workers += [laravel.work(pool="vm-b", cache="file") for _ in range(3)]
    with watched(laravel.dsn, pools=POOLS) as witness, watched(laravel.dsn, pools=POOLS) as newcomer:
        until(lambda: outdated(witness) == {"vm-a": 0, "vm-b": 0} and value(witness, "workers", pool="vm-b") == 3)
        time.sleep(1.1)  # the signal is in whole seconds: who began in the same one may have heard it
        outdated(witness)
        assert value(witness, "restart_signal_timestamp_seconds") is None
        _, restarted = timed(laravel.restart)
        assert [worker.wait(10) for worker in workers[:2]] == [0, 0]
        workers += [laravel.work(pool="vm-a"), laravel.work(pool="vm-b", cache="file")]
        truth = begun_before(laravel, restarted.began, workers)
        assert truth == {"vm-a": 0, "vm-b": 3}
        until(lambda: outdated(witness) == truth)
        assert outdated(newcomer) == truth

        laravel.stop()
        until(lambda: outdated(witness) == {"vm-a": 0, "vm-b": 0})
