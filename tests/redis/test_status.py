"""What the status page says of a Redis at 3 a.m."""

from __future__ import annotations

import redis

from exporter import status, terminal
from exporter.app import App
from exporter.demo.redis import Redis

from ..world import value
from .world import delay, look, now, payload, push, watched


def said(app: App) -> list[str]:
    """The lines of the report, after a poll of everything."""
    for poller in app.pollers:
        for turn in poller.turns:
            poller.poll(turn)
    return [" ".join(line.split()) for line in terminal.text(status.report(app.board)).splitlines()]


def test_queues_look_like_those_of_a_database(server: Redis, client: redis.Redis) -> None:
    """The same table, the same words, the same limits as for the other driver."""
    push(client, payload(createdAt=now(client) - 300), payload())
    with watched(server.url(), target_wait="1m") as app:
        lines = said(app)
        assert any(line.startswith("redis/default oldest job 5m") and "target 1m" in line for line in lines)
        assert any(line.startswith("redis/default 2 0 0 0 5m") for line in lines)
        assert value(app, "connection_info", driver="redis") == 1


def test_jobs_that_nobody_moves(server: Redis, client: redis.Redis) -> None:
    """It says that no worker looks, which is what to do something about."""
    delay(client, payload(), now(client) - 60)
    with watched(server.url()) as app:
        assert "redis/default 1 job due and not moved: no worker has looked at this queue" in said(app)


def test_horizon_that_does_nothing(server: Redis, client: redis.Redis) -> None:
    """Down or paused, which are two things to do, and which queues have no worker."""
    alone, paused = "redis no Horizon master is alive", "redis 1 Horizon master paused"
    inactive = f"{alone}: nobody does its jobs"
    client.set("laravel_horizon:last_snapshot_at", 1)
    with watched(server.url(), horizon={"prefix": "laravel_horizon:"}) as app:
        assert any(line.startswith(f"{alone} ") or line == alone for line in said(app)), "nobody waits yet"
        push(client, payload())
        lines = said(app)
        assert any(line.startswith(inactive) for line in lines)
        assert "redis/default Horizon runs no worker for this queue" in lines
        client.zadd("laravel_horizon:masters", {"vm-a": 1})
        client.hset("laravel_horizon:master:vm-a", "status", "paused")
        lines = said(app)
        assert not any(line.startswith(alone) for line in lines)
        assert paused in lines
        assert "redis/horizon paused in Horizon: vm-a" in lines
        client.hset("laravel_horizon:master:vm-a", "status", "running")
        assert not any(line.startswith((alone, paused)) for line in said(app))


def test_memory() -> None:
    """Near the limit it says how near; a policy that may throw jobs away is told whether or not it is near."""
    settings = {"maxmemory": "2mb", "maxmemory-policy": "allkeys-lru"}
    with Redis(settings) as own, redis.Redis(port=own.port) as there, watched(own.url()) as app:
        lines = said(app)
        policy = "redis/allkeys-lru Redis may throw jobs away when its memory is full"
        assert any(line.startswith(policy) for line in lines)
        assert value(app, "redis_maxmemory_policy_info", policy="allkeys-lru") == 1
        there.config_set("maxmemory-policy", "noeviction")
        there.config_set("maxmemory", int(there.info("memory")["used_memory"] / 0.9))
        lines = said(app)
        assert any("when it is full, no job can be pushed, or jobs are thrown away" in line for line in lines)
        assert not any("throw jobs away" in line for line in lines)
        there.config_set("maxmemory", 0)
        assert not any("memory" in line or "full" in line for line in said(app))
        assert value(app, "redis_memory_max_bytes") is None
        assert value(app, "redis_maxmemory_policy_info", policy="noeviction") == 0


def test_evictions() -> None:
    """Keys that were thrown away are counted."""
    with Redis({"maxmemory": "3mb", "maxmemory-policy": "allkeys-random"}) as own, watched(own.url()) as app:
        with redis.Redis(port=own.port) as there:
            for number in range(400):
                there.set(f"key-{number}", "x" * 10_000)
        look(app, "server")
        assert (value(app, "redis_evicted_keys_total") or 0) > 10


def test_a_timeout_that_is_not_below_retry_after(server: Redis, client: redis.Redis) -> None:
    """A supervisor whose timeout is not below retry_after runs long jobs twice: said before it happens."""
    client.zadd("laravel_horizon:supervisors", {"vm-a:s1": 1})
    options = '{"queue":"default","timeout":"120"}'
    client.hset("laravel_horizon:supervisor:vm-a:s1", mapping={"status": "running", "options": options})
    with watched(server.url(), horizon={"prefix": "laravel_horizon:"}) as app:
        wanted = "redis/s1/default the workers' timeout 2m, not below retry_after 1m 30s"
        assert wanted in said(app)


def test_a_wrong_prefix_is_not_called_well(server: Redis, client: redis.Redis) -> None:
    """Where no job was ever seen, nobody says that all is well, but asks what we look at; a job removes the doubt."""
    push(client, payload())
    with watched(server.url(), prefix="wrong_", target_wait="1m") as app:
        lines = said(app)
        assert lines[0] == "NOTHING IS OVER ITS LIMIT (but what does redis/queues look at?)"
        assert any("no queue has had a job so far" in line and "the database 0" in line for line in lines)
        push(client, payload(createdAt=now(client)), prefix="wrong_")
        assert said(app)[0] == "NOTHING IS OVER ITS LIMIT"


def test_a_horizon_that_is_not_there_is_not_called_well(server: Redis, client: redis.Redis) -> None:
    """Whoever asked for Horizon and has a wrong prefix or database is blind, and `status` says so to a script."""
    push(client, payload())
    with watched(server.url(), horizon={"prefix": "wrong:"}) as app:
        assert said(app)[0] == "BLIND: nothing may be shown of redis/horizon"
        assert not any(line.startswith("NOTHING IS OVER") for line in said(app))
        assert status.report(app.board).verdict is status.Verdict.BLIND
