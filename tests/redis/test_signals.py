"""Pauses and restarts: from the cache, under any prefix, and from Horizon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from exporter.demo.redis import Redis

from ..world import value
from .world import look, state_of, watched

FULL = {"prefix": "laravel_database_laravel_cache_"}
SUPERVISOR = '{"connection":"redis","queue":"default,mail","timeout":"60"}'


@pytest.fixture
def cache(server: Redis) -> Iterator[redis.Redis]:
    """The database in which Laravel keeps its cache."""
    with redis.Redis(port=server.port, db=1) as client:
        yield client


def supervise(client: redis.Redis, name: str, status: str, options: str = SUPERVISOR) -> None:
    """Let a supervisor of Horizon be alive."""
    client.zadd("laravel_horizon:supervisors", {name: 1})
    processes = '{"redis:default,mail":3}'
    client.hset(
        f"laravel_horizon:supervisor:{name}", mapping={"status": status, "options": options, "processes": processes}
    )


@pytest.mark.parametrize(
    "prefix",
    [
        "laravel_database_laravel_cache:",
        "laravel_database_laravel_cache_:",
        "laravel_database_laravel_cache_",
        "laravel-database-laravel-cache-",
        "my_app_database_my_app_cache_",
        "my-app-database-my-app-cache-",
        "my_app_database_my-app-cache-",
    ],
    ids=["8", "10", "11", "12", "11-two-words", "12-two-words", "11-with-a-new-cache"],
)
def test_case_48_each_version_has_its_cache_prefix(server: Redis, cache: redis.Redis, prefix: str) -> None:
    """Case 48: without a prefix in the settings those of Laravel's versions are tried."""
    cache.set(f"{prefix}illuminate:queue:restart", "1796057703")
    cache.set(f"{prefix}illuminate:queue:paused:redis:default", "b:1;")
    whole = re.match(".*?database[_-]", prefix)
    assert whole
    with watched(server.url(), cache={}, prefix=whole[0]) as app:
        look(app, "signals")
        assert value(app, "restart_signal_timestamp_seconds") == 1_796_057_703
        assert value(app, "paused", queue="default") == 1


def test_pauses(server: Redis, cache: redis.Redis) -> None:
    """One queue or all of them; a second connection's queues under its own name; `b:0;` is no pause."""
    key = f"{FULL['prefix']}illuminate:queue".format
    cache.set(f"{key()}:paused:redis-long:exports", "b:1;")
    cache.set(f"{key()}:paused:redis:mail", "b:0;")
    queues = {"default": None, "mail": None, "exports": {"connection": "redis-long"}}
    with watched(server.url(), cache=FULL, queues=queues) as app:
        look(app, "signals")
        assert [value(app, "paused", queue=queue) for queue in queues] == [0, 0, 1]
        cache.set(f"{key()}s:paused", "b:1;")
        look(app, "signals")
        assert [value(app, "paused", queue=queue) for queue in queues] == [1, 1, 1]


def test_nobody_knows_without_the_prefix(server: Redis, cache: redis.Redis) -> None:
    """Where no key is found under any prefix, there may be another: not 0, but absent, with a word why."""
    with watched(server.url(), cache={}) as app:
        look(app, "signals")
        assert value(app, "paused", queue="default") is None
        assert "cache.prefix" in state_of(app, "signals").notes[0]


def test_a_cache_on_another_server(server: Redis) -> None:
    """The cache may be anywhere; when it is gone, that collector is down and the queues are not."""
    with Redis() as other, redis.Redis(port=other.port, db=4) as client:
        client.set(f"{FULL['prefix']}illuminate:queue:restart", "1796057703")
        with watched(server.url(), cache=FULL | {"redis": other.url(4)}) as app:
            look(app)
            assert value(app, "restart_signal_timestamp_seconds") == 1_796_057_703
            other.stop()
            look(app)
            assert state_of(app, "signals").reason == "refused"
            assert state_of(app, "queues").up


def test_case_48_a_wrong_prefix_of_horizon_is_no_zero(server: Redis, client: redis.Redis) -> None:
    """Case 48: where nobody knows what Horizon does, no queue is said to be at work; what the cache says is shown."""
    with watched(server.url(), cache=FULL, horizon={"prefix": "wrong:"}, queues={"default": None, "mail": None}) as app:
        look(app)
        assert [value(app, "paused", queue=queue) for queue in ("default", "mail")] == [None, None]
        with redis.Redis(port=server.port, db=1) as cache:
            cache.set(f"{FULL['prefix']}illuminate:queue:paused:redis:mail", "b:1;")
        look(app)
        assert [value(app, "paused", queue=queue) for queue in ("default", "mail")] == [None, 1]
        client.set("wrong:last_snapshot_at", 1)
        look(app)
        assert [value(app, "paused", queue=queue) for queue in ("default", "mail")] == [0, 1]


def test_a_cache_that_is_gone_hides_no_pause_of_horizon(server: Redis, client: redis.Redis) -> None:
    """It is a part that failed: what Horizon says stays, and of the other queues nobody knows."""
    supervise(client, "vm-a:s1", "paused")
    settings: dict[str, Any] = {
        "cache": FULL | {"redis": "redis://127.0.0.1:1/0"},
        "horizon": {"prefix": "laravel_horizon:"},
    }
    with watched(server.url(), queues={"mail": None, "other-one": None}, **settings) as app:
        look(app)
        assert [value(app, "paused", queue=queue) for queue in ("mail", "other-one")] == [1, None]
        assert state_of(app, "signals").up
        assert state_of(app, "signals").errors == {"refused": 1}
        assert "the cache: " in state_of(app, "signals").notes[0]


def test_a_restart_signal_that_is_no_time(server: Redis, cache: redis.Redis) -> None:
    """A value that is no time is not shown as one."""
    cache.set(f"{FULL['prefix']}illuminate:queue:restart", "soon")
    with watched(server.url(), cache=FULL) as app:
        look(app, "signals")
        assert value(app, "restart_signal_timestamp_seconds") is None
        assert "is no time" in state_of(app, "signals").notes[0]


def test_a_queue_is_paused_when_all_its_supervisors_are(server: Redis, client: redis.Redis) -> None:
    """Horizon's pause counts for a queue if nobody is left who works for it; without a cache more is not known."""
    supervise(client, "vm-a:s1", "paused")
    supervise(client, "vm-b:s1", "running")
    horizon = {"prefix": "laravel_horizon:"}
    with watched(server.url(), horizon=horizon, queues={"mail": None, "other-one": None}) as app:
        look(app)
        assert value(app, "paused", queue="mail") is None
        supervise(client, "vm-b:s1", "paused")
        look(app)
        assert value(app, "paused", queue="mail") == 1
        assert value(app, "paused", queue="other-one") is None
        assert state_of(app, "horizon").notes[0] == "paused in Horizon: vm-a:s1, vm-b:s1"


def test_processes_and_pools(server: Redis, client: redis.Redis) -> None:
    """Three processes for two queues count for each of the queues, and once for their pool, on all hosts together."""
    for host in ("vm-aX2f", "vm-b9Qz"):
        supervise(client, f"{host}:supervisor-1", "running")
    supervise(client, "vm-aX2f:endless", "running", '{"queue":"mail","timeout":0}')
    horizon = {"prefix": "laravel_horizon:"}
    with watched(server.url(), horizon=horizon, queues={"default": None, "nobodys": None}) as app:
        look(app, "horizon")
        found = [value(app, "horizon_processes", queue=queue) for queue in ("default", "mail", "nobodys")]
        assert found == [9, 9, 0]
        assert value(app, "workers", pool="supervisor-1") == 6
        assert value(app, "worker_timeout_seconds", pool="supervisor-1", queue="mail") == 60
        assert value(app, "worker_timeout_seconds", pool="endless", queue="mail") == float("inf")
        client.delete(*client.keys("laravel_horizon:supervisor:*"))
        look(app, "horizon")
        assert value(app, "workers", pool="supervisor-1") == 0
        assert value(app, "horizon_processes", queue="mail") == 0


def test_a_queue_of_several_connections(server: Redis, client: redis.Redis) -> None:
    """Horizon's numbers go by the queue's name: where two connections have one of that name, they are told as added."""
    supervise(client, "vm-a:s1", "running")
    supervise(client, "vm-a:s2", "running", '{"connection":"redis-two","queue":"mail","timeout":"60"}')
    with watched(server.url(), horizon={"prefix": "laravel_horizon:"}) as app:
        look(app, "horizon")
        note, _ = state_of(app, "horizon").notes
        assert note.startswith("Horizon works for 'mail' on several connections (redis, redis-two)")
