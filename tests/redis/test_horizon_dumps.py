"""What is said of a real Horizon, on Laravel 12 and 13, running, paused and killed."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from exporter.demo.redis import Redis

from ..world import value
from .dumps import put_back
from .world import counts, look, state_of, watched

PREFIXES = {12: "laravel_database_", 13: "laravel-database-"}
HORIZON = {"prefix": "laravel_horizon:"}
QUEUES = {"default": None, "high": None, "reports": {"retry_after": 100}}
VERSIONS = pytest.mark.parametrize("version", [12, 13])


def named(version: int) -> dict[str, Any]:
    """The settings that fit to what this version of Laravel writes."""
    return {"prefix": PREFIXES[version], "horizon": HORIZON, "queues": QUEUES}


@VERSIONS
def test_a_running_horizon(server: Redis, client: redis.Redis, version: int) -> None:
    """A master and two supervisors are alive, and each queue has its workers; each pool counts them once."""
    settings = named(version)
    put_back(version, "A", client)
    with watched(server.url(), **settings) as app:
        look(app)
        assert value(app, "horizon_masters", state="running") == 1
        assert value(app, "horizon_masters", state="paused") == 0
        assert value(app, "horizon_supervisors", state="running") == 2
        assert [value(app, "horizon_processes", queue=queue) for queue in QUEUES] == [1, 1, 1]
        assert [value(app, "workers", pool=f"supervisor-{n}") for n in (1, 2)] == [2, 1]
        assert value(app, "worker_timeout_seconds", pool="supervisor-1", queue="high") == 60
        assert value(app, "worker_timeout_seconds", pool="supervisor-2", queue="reports") == 30
        assert value(app, "horizon_snapshot_age_seconds") in (0, 1, 2, 3)
        assert value(app, "horizon_job_runtime_seconds", queue="default") == pytest.approx(0.22, abs=0.02)
        assert sum(value(app, "failed_jobs", queue=queue) or 0 for queue in (*QUEUES, "other")) == 6


@VERSIONS
def test_queues_of_horizon(server: Redis, client: redis.Redis, version: int) -> None:
    """The jobs that Horizon queued are in their states, with ages by the times that it wrote into them."""
    settings = named(version)
    put_back(version, "A", client)
    with watched(server.url(), **settings) as app:
        look(app)
        assert counts(app, "default", polled=False) == {"delayed": 1}
        assert counts(app, "reports", polled=False) == {"ready": 5, "reserved": 1}
        assert 2 <= (value(app, "oldest_job_age_seconds", queue="reports") or 0) <= 8
        assert 3 <= (value(app, "oldest_reserved_job_age_seconds", queue="reports") or 0) <= 20
        assert value(app, "job_timeout_seconds", queue="reports", job_class="App\\Jobs\\ImportCsv") == 120


@VERSIONS
def test_a_paused_horizon(server: Redis, client: redis.Redis, version: int) -> None:
    """A pause shows in masters, supervisors and each of their queues, and the log names who is paused."""
    settings = named(version)
    put_back(version, "B", client)
    with watched(server.url(), **settings) as app:
        look(app)
        assert value(app, "horizon_masters", state="paused") == 1
        assert value(app, "horizon_masters", state="running") == 0
        assert value(app, "horizon_supervisors", state="paused") == 2
        assert [value(app, "paused", queue=queue) for queue in QUEUES] == [1, 1, 1]
        (note,) = state_of(app, "horizon").notes
        assert note.startswith("paused in Horizon: vm-")
        assert note.count("supervisor-") == 2


@VERSIONS
def test_case_50_a_killed_horizon_is_dead(server: Redis, client: redis.Redis, version: int) -> None:
    """Case 50: the sorted set keeps the dead, and times in it are of other clocks: only the hash says who lives."""
    settings = named(version)
    put_back(version, "A", client)
    with watched(server.url(), **settings) as app:
        look(app)
        for key in client.keys("laravel_horizon:master:*") + client.keys("laravel_horizon:supervisor:*"):
            client.delete(key)
        client.zadd("laravel_horizon:masters", {"vm-E13t": 4_000_000_000})
        look(app)
        assert [value(app, "horizon_masters", state=state) for state in ("running", "paused")] == [0, 0]
        assert [value(app, "horizon_processes", queue=queue) for queue in QUEUES] == [0, 0, 0]
        assert value(app, "workers", pool="supervisor-1") == 0
        assert state_of(app, "queues").up


@VERSIONS
def test_case_48_a_wrong_horizon_prefix_is_no_horizon(server: Redis, client: redis.Redis, version: int) -> None:
    """Case 48: under a prefix without keys the collector fails and says so; nothing says zero."""
    settings = named(version) | {"horizon": {"prefix": "h1:"}}
    put_back(version, "A", client)
    with watched(server.url(), **settings) as app:
        look(app)
        assert state_of(app, "horizon").reason == "not_found"
        assert state_of(app, "horizon").error == "no Horizon keys found under the prefix 'h1:' in database 0"
        assert value(app, "horizon_masters", state="running") is None
        assert state_of(app, "queues").up
