"""A replica is as good as its master while it hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import redis

from exporter.demo.redis import Redis
from exporter.sources.resp.replies import of_the_past

from ..patience import until
from ..world import value
from .test_horizon_workers import supervise
from .test_throughput import HORIZON
from .world import look, now, payload, reserve, state_of, watched


class Pair(NamedTuple):
    """A master and its replica."""

    master: Redis
    replica: Redis
    client: redis.Redis  # of the master


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Both in step."""
    with Redis() as master, Redis() as replica, redis.Redis(port=replica.port) as there:
        there.execute_command("REPLICAOF", "127.0.0.1", master.port)
        until(lambda: there.info("replication")["master_link_status"] == "up")
        with redis.Redis(port=master.port) as client:
            yield Pair(master, replica, client)


@pytest.mark.parametrize("collector", ["horizon", "reservations"])
def test_without_its_master_it_tells_the_past(pair: Pair, collector: str) -> None:
    """Nothing of Horizon is shown then, and nothing of what workers hold; why is told."""
    supervise(pair.client, processes='{"redis:default":1}')
    reserve(pair.client, payload(attempts=1), now(pair.client) + 60)
    pair.client.wait(1, 1000)
    shown = {"horizon": "horizon_processes", "reservations": "reserved_past_timeout_jobs"}[collector]
    with watched(pair.replica.url(), horizon={"prefix": HORIZON}) as app:
        look(app, collector)
        assert value(app, shown, queue="default") is not None
        pair.master.stop()

        def is_withheld() -> bool:
            look(app, collector)
            return value(app, shown, queue="default") is None

        until(is_withheld)
        assert "no connection to its master" in state_of(app, collector).notes[0]


def test_what_the_past_says_of_horizon_pauses_nothing(pair: Pair) -> None:
    """Nor is what was told of Horizon before."""
    supervise(pair.client)
    pair.client.hset(f"{HORIZON}supervisor:vm-a:s1", "status", "paused")
    pair.client.wait(1, 1000)
    with watched(pair.replica.url(), horizon={"prefix": HORIZON}) as app:
        look(app)
        assert value(app, "paused", queue="default") == 1
        pair.master.stop()

        def is_unknown() -> bool:
            look(app)
            return value(app, "paused", queue="default") is None

        until(is_unknown)


def test_a_cache_on_a_replica_tells_the_past(pair: Pair) -> None:
    """The cache has a connection of its own, and is asked the same; the queues are on another server, and are shown."""
    with Redis() as queues, watched(queues.url(), cache={"redis": pair.replica.url(), "prefix": ""}) as app:
        look(app)
        assert value(app, "paused", queue="default") == 0
        pair.master.stop()

        def is_unknown() -> bool:
            look(app)
            return value(app, "paused", queue="default") is None

        until(is_unknown)
        assert "no connection to its master" in state_of(app, "signals").error
        assert state_of(app, "queues").up


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("role:master", ""),
        ("role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:10", ""),
        ("role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:-1", ""),
        ("role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:16", "nothing of its master for 16 s"),
        ("role:slave\r\nmaster_link_status:down\r\nmaster_link_down_since_seconds:3", "to its master for 3 s"),
        ("role:slave\r\nmaster_link_status:down", "to its master for ? s"),
    ],
)
def test_a_master_that_is_silent(says: str, why: str) -> None:
    """A link counts as up for a minute after the master hung; it pings every ten seconds, so after fifteen it has."""
    assert of_the_past(f"# Replication\r\n{says}\r\n".encode()).endswith(why)
    assert bool(of_the_past(f"# Replication\r\n{says}\r\n".encode())) == bool(why)
