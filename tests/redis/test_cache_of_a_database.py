"""Jobs in PostgreSQL and the cache in Redis: pauses and restarts are found there, and its faults are its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from exporter.app import App
from exporter.demo.redis import Redis
from exporter.errors import ConfigError
from exporter.logs import Secrets

from ..database.proxies import Deaf
from ..laravel.laravel import Laravel
from ..patience import until
from ..readme.blocks import DOCS, block
from ..world import database_of, poll, settings, state, value, watched
from .world import behind

Db = psycopg.Connection[Any]
FULL = "laravel_database_laravel_cache_"


@pytest.fixture
def cache(server: Redis) -> Iterator[redis.Redis]:
    """The database in which Laravel keeps its cache."""
    with redis.Redis(port=server.port, db=1) as client:
        yield client


def paused(app: App, queue: str = "default") -> float | None:
    """Whether this queue is paused, asked anew."""
    poll(app, "signals")
    return value(app, "paused", queue=queue)


@pytest.mark.parametrize(
    "prefix",
    [
        "laravel_database_laravel_cache:",
        "laravel_database_laravel_cache_:",
        "laravel_database_laravel_cache_",
        "laravel_database_laravel-cache-",
        "laravel-database-laravel-cache-",
        "laravel_cache_",
    ],
    ids=["8", "10", "11", "12", "13", "no REDIS_PREFIX"],
)
def test_case_48_each_version_has_its_prefix(
    dsn18: str, db18: Db, server: Redis, cache: redis.Redis, prefix: str
) -> None:
    """Case 48: with the application's usual name the keys of Laravel 8 to 13 are found by themselves."""
    cache.set(f"{prefix}illuminate:queue:restart", "1796057703")
    cache.set(f"{prefix}illuminate:queue:paused:database:default", "b:1;")
    with watched(dsn18, queues={"default": None, "mail": None}, cache={"redis": server.url(1)}) as app:
        assert paused(app) == 1
        assert paused(app, "mail") == 0
        assert value(app, "restart_signal_timestamp_seconds") == 1_796_057_703


def test_nobody_knows_without_the_prefix(dsn18: str, db18: Db, server: Redis, cache: redis.Redis) -> None:
    """Where no key is found under any prefix there may be another: not 0, but absent, with a word why."""
    cache.set("shop_illuminate:queue:paused:database:default", "b:1;")
    pools = {"vm-a": {"application_name": "vm-a", "queues": ["default"]}}
    with watched(dsn18, queues={"default": None}, pools=pools, cache={"redis": server.url(1)}) as app:
        assert paused(app) is None
        assert value(app, "workers_outdated", pool="vm-a") is None
        assert state(app, "signals").notes[0].startswith("in database 1 of the cache's Redis nothing")
        assert "cache.prefix" in state(app, "signals").notes[0]
    with watched(dsn18, queues={"default": None}, cache={"redis": server.url(1), "prefix": "shop_"}) as app:
        assert paused(app) == 1


def test_a_redis_that_is_gone_takes_signals_alone_with_it(dsn18: str, db18: Db) -> None:
    """Case 78: gone, it is `refused` and says that it was the cache; the database is asked on; it heals alone."""
    with Redis() as own, watched(dsn18, queues={"default": None}, cache={"redis": own.url(), "prefix": ""}) as app:
        assert paused(app) == 0
        own.stop()
        for _ in range(2):
            poll(app)
        assert state(app, "signals").reason == "refused"
        assert state(app, "signals").error.startswith("the cache: 127.0.0.1:")
        assert paused(app) is None
        assert {name for name in ("jobs", "activity", "failed_jobs") if state(app, name).up} == {
            "jobs", "activity", "failed_jobs",
        }  # fmt: skip
        own.start()
        assert paused(app) == 0


def test_a_redis_that_is_silent_costs_half_of_a_poll(dsn18: str, db18: Db) -> None:
    """It has half of the time of a poll, so that the jobs are not kept waiting for all of it."""
    with Deaf() as far, watched(dsn18, timeout="1s", cache={"redis": behind(far)}) as app:
        began = time.monotonic()
        poll(app, "signals")
        assert time.monotonic() - began < 0.9
        assert state(app, "signals").reason == "timeout"
        poll(app, "jobs")
        assert state(app, "jobs").up


def test_a_replica_that_lost_its_master_tells_the_past(dsn18: str, db18: Db) -> None:
    """What a cache says that hears of its master no longer is not shown."""
    with Redis() as own, Redis() as second, redis.Redis(port=second.port) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", own.port)
        until(lambda: client.info("replication")["master_link_status"] == "up")
        with watched(dsn18, queues={"default": None}, cache={"redis": second.url(), "prefix": ""}) as app:
            assert paused(app) == 0
            own.stop()
            until(lambda: paused(app) is None)
            assert state(app, "signals").reason == "loading"
            assert "no connection to its master" in state(app, "signals").error


def test_the_acl_line_for_the_cache_is_enough(dsn18: str, db18: Db, server: Redis, cache: redis.Redis) -> None:
    """The user that the page on PostgreSQL makes for the cache can read these keys and nothing else."""
    cache.set(f"{FULL}illuminate:queue:paused:database:default", "b:1;")
    cache.execute_command(*block("text", "ACL SETUSER queue_signals", DOCS / "postgresql.md").split())
    url = server.url(1, login="queue_signals:change-me")
    with watched(dsn18, queues={"default": None}, cache={"redis": url}) as app:
        assert paused(app) == 1
        assert state(app, "signals").error == ""
    with redis.Redis.from_url(url) as ours:
        for command in (("MGET", "session:1"), ("SET", f"{FULL}illuminate:queue:restart", "1"), ("KEYS", "*")):
            with pytest.raises(redis.exceptions.NoPermissionError):
                ours.execute_command(*command)
    cache.execute_command("ACL", "DELUSER", "queue_signals")


def test_settings(tmp_path: Path) -> None:
    """A table and a Redis are one cache too many; the URL may be in a file, and its password is a secret."""
    with pytest.raises(ConfigError, match=r"connections\.database\.cache: expected table or redis, but both"):
        settings("host=db", cache={"table": "cache", "redis": "redis://h/1"})
    (tmp_path / "url").write_text("rediss://u:hunt%2fer2@h/1\n")
    found = database_of(settings("host=db", cache={"redis_file": str(tmp_path / "url"), "ca_file": "ca.pem"}))
    assert found.cache
    target = found.cache.target()
    assert target
    assert (target.host, target.database, target.tls, target.ca_file) == ("h", 1, True, Path("ca.pem"))
    hide = Secrets(found.secrets()).hide
    assert "hunt" not in "".join(map(hide, ("<hunt/er2>", "<hunt%2fer2>", "<hunt%2Fer2>")))


@pytest.fixture
def laravel(laravel: Laravel, server: Redis) -> Laravel:
    """A real application with its queue in PostgreSQL and its cache in Redis."""
    laravel.environment |= {"QUEUE_CONNECTION": "database", "REDIS_PORT": str(server.port)}
    return laravel


def test_a_restart_of_real_workers(laravel: Laravel, server: Redis) -> None:
    """`queue:restart` is found in Redis, and who is connected since before it is outdated until it has ended."""
    pools = {"vm-a": {"application_name": "vm-a", "queues": ["default"]}}
    with watched(laravel.dsn, pools=pools, cache={"redis": server.url(1)}) as app:
        laravel.dispatch(seconds=1.0)
        worker = laravel.work(pool="vm-a")
        laravel.truth.wait_for("started")
        before = int(time.time())
        poll(app, "signals")
        laravel.restart()
        poll(app, "signals")
        assert before <= (value(app, "restart_signal_timestamp_seconds") or 0) <= time.time()
        assert value(app, "workers_outdated", pool="vm-a") == 1
        worker.wait(10)
        until(lambda: outdated(app) == 0)


def outdated(app: App) -> float | None:
    """Workers that have not heard of the restart, asked anew."""
    poll(app, "signals")
    return value(app, "workers_outdated", pool="vm-a")
