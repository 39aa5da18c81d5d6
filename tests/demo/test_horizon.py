"""The Redis world of the demonstration: each incident looks as it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from exporter import status, terminal
from exporter.app import App
from exporter.demo.horizon import HORIZON, PREFIX, HorizonWorld
from exporter.demo.incidents import HEALTHY, INCIDENTS, horizon
from exporter.demo.plan import Horizon
from exporter.demo.redis import Redis

from ..patience import until
from ..redis.world import counts, look, state_of, watched
from ..world import value
from .rehearsal import quoted


@contextmanager
def rehearsed(plan: Horizon, now: Callable[[Horizon], Horizon] = lambda plan: plan) -> Iterator[App]:
    """The world of this plan, and an exporter that watches it."""
    queues = dict.fromkeys((*plan.per_second, *plan.due))
    with (
        Redis(plan.server) as server,
        HorizonWorld(plan, server.port, now=now),
        watched(server.url(), horizon={"prefix": HORIZON}, queues=queues, target_wait="1m", prefix=PREFIX) as app,
    ):
        yield app


def after(app: App, name: str, **labels: str) -> float:
    """The value of a series after another poll; 0 if it is not there."""
    look(app)
    return value(app, name, **labels) or 0.0


def report(app: App) -> str:
    """The status page, polled anew, with single spaces."""
    look(app)
    return "\n".join(" ".join(line.split()) for line in terminal.text(status.report(app.board)).splitlines())


def test_a_healthy_horizon() -> None:
    """Jobs come and go, Horizon counts them, and nothing is over its limit."""
    with rehearsed(HEALTHY.horizon) as app:
        until(lambda: after(app, "horizon_masters", state="running"))
        until(lambda: after(app, "horizon_jobs_processed_total", queue="default") > 2)
        assert report(app).startswith("NOTHING IS OVER ITS LIMIT")
        assert value(app, "horizon_processes", queue="default") == 3
        assert value(app, "reservations_repeated_total", queue="default") == 0


def test_horizon_down() -> None:
    """The sorted set still has the master, and it is dead; what is held expires, and the oldest job is late."""
    with rehearsed(INCIDENTS["horizon-down"].plan.horizon) as app:
        said = report(app)
        assert "no Horizon master is alive" in said
        assert "redis/default Horizon runs no worker for this queue" in said
        assert "redis/default oldest job 10m" in said
        assert counts(app, polled=False)["expired"] >= 1


def test_horizon_paused() -> None:
    """A master is alive and paused; so are its queues, and the log names it."""
    with rehearsed(INCIDENTS["horizon-paused"].plan.horizon) as app:
        until(lambda: after(app, "horizon_masters", state="paused"))
        said = report(app)
        assert "redis/default paused, oldest job 10m" in said
        assert "redis 1 Horizon master paused" in said
        assert "target" not in said.partition("QUEUES")[0]
        assert "paused in Horizon: web-1-Qx7t" in state_of(app, "horizon").notes[0]


def test_overdue() -> None:
    """Only the queue that nobody listens to is overdue and without a process."""
    with rehearsed(INCIDENTS["overdue"].plan.horizon) as app:
        until(lambda: after(app, "horizon_masters", state="running"))
        said = report(app)
        assert "redis/exports 40 jobs due and not moved: no worker has looked at this queue" in said
        assert "redis/exports Horizon runs no worker for this queue" in said
        assert "redis/default Horizon" not in said


def test_no_processes() -> None:
    """Jobs pile up in the queue that no supervisor lists, and in no other; once one lists it, they are done."""
    listed = ["default", "mails"]
    plan = INCIDENTS["no-processes"].plan.horizon
    with rehearsed(plan, lambda plan: replace(plan, workers=dict.fromkeys(listed, 2))) as app:
        until(lambda: after(app, "jobs", queue="exports", state="ready") >= 2)
        assert "redis/exports Horizon runs no worker for this queue" in report(app)
        assert "redis/default Horizon" not in report(app)
        listed.append("exports")
        until(lambda: after(app, "horizon_processes", queue="exports") == 2)
        until(lambda: after(app, "jobs", queue="exports", state="reserved"))
        assert report(app).startswith("NOTHING IS OVER ITS LIMIT")


def test_redis_memory() -> None:
    """The memory fills, keys are thrown away, and the policy is named."""
    with rehearsed(INCIDENTS["redis-memory"].plan.horizon) as app:
        until(lambda: after(app, "redis_evicted_keys_total"))
        said = report(app)
        assert "redis/allkeys-random Redis may throw jobs away" in said
        assert "when it is full, no job can be pushed" in said


@pytest.mark.parametrize("name", horizon.INCIDENTS)
def test_the_status_page_says_what_the_incident_quotes(name: str) -> None:
    """What stands in quotes where one is told to look is on the page within seconds."""
    with rehearsed(INCIDENTS[name].plan.horizon) as app:
        until(lambda: all(text in report(app) for text in quoted(name)))
