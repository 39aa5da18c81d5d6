"""A Redis that is gone, silent, starting, full, or not the one it was: named, healed alone, nothing old shown."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import psycopg
import pytest
import redis

from exporter import app, config
from exporter.app import App
from exporter.board import State
from exporter.demo.daemon import free_port
from exporter.demo.redis import Redis

from ..database.proxies import Absent, Deaf, Peer, Proxy
from ..patience import until
from ..world import add_jobs, value
from .world import PREFIX, behind, counts, errors, look, payload, push, state_of, watched


@pytest.fixture
def own() -> Iterator[Redis]:
    """A Redis of this test's own, with one job in it."""
    with Redis({"enable-debug-command": "local"}) as server, redis.Redis(port=server.port) as client:
        push(client, payload())
        yield server


class Dripping(Peer):
    """Sends a byte now and then, for seconds: no single wait takes long."""

    def __init__(self) -> None:
        super().__init__()
        Thread(target=self._drip, daemon=True).start()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        super().close()

    def _drip(self) -> None:
        try:
            client, _ = self.listener.accept()
            with client:
                client.sendall(b"$100000\r\n")
                for _ in range(500):
                    client.sendall(b"x")
                    time.sleep(0.01)
        except OSError:
            return


def test_case_78_a_redis_that_is_gone_takes_nothing_else_with_it(own: Redis) -> None:
    """Case 78: two failed polls withdraw what was shown; it is refused, and when it is back it is seen again."""
    with watched(own.url()) as app:
        assert counts(app) == {"ready": 1}
        own.stop(signal.SIGKILL)
        look(app, "queues")
        assert state_of(app, "queues").reason == "refused"
        assert counts(app, polled=False) == {"ready": 1}
        look(app, "queues")
        assert value(app, "jobs", queue="default", state="ready") is None
        assert value(app, "connection_info") == 1
        own.start()
        assert counts(app) == {}
        assert value(app, "jobs", queue="default", state="ready") == 0


def test_case_78_the_database_goes_on_without_redis(dsn18: str, db18: psycopg.Connection[Any]) -> None:
    """Case 78: with one connection's Redis gone, the other connection's PostgreSQL is read and shown as before."""
    add_jobs(db18, ("default", None, 5))
    url = f"redis://127.0.0.1:{free_port()}"
    connections = {
        "redis": {"driver": "redis", "url": url, "prefix": PREFIX},
        "database": {"driver": "database", "dsn": dsn18},
    }
    both = app.build(config.parse({"connections": connections}))
    both.poll_once()
    assert value(both, "jobs", connection="database", queue="default", state="ready") == 1
    assert value(both, "source_up", source="database", collector="jobs") == 1
    assert value(both, "source_up", source="redis", collector="queues") == 0
    assert value(both, "jobs", connection="redis", queue="default", state="ready") is None


def test_a_restart_between_two_polls_is_no_failure(own: Redis) -> None:
    """The connection that the last poll left was closed meanwhile: it is made anew, once."""
    with watched(own.url()) as app:
        look(app, "queues")
        own.stop()
        own.start()
        look(app, "queues")
        assert errors(app, "queues") == {}


@pytest.mark.parametrize("peer", [Deaf, Absent, Dripping])
def test_a_peer_that_keeps_us_waiting_costs_one_poll(peer: type[Peer]) -> None:
    """Whether it accepts and says nothing, does not accept, or drips: after the poll's time it is given up."""
    with peer() as far, watched(behind(far), timeout="300ms") as app:
        began = time.monotonic()
        look(app, "queues")
        assert time.monotonic() - began < 1.0
        assert state_of(app, "queues").reason == "timeout"


def test_case_14_a_black_hole_in_mid_life(server: Redis, client: redis.Redis) -> None:
    """Case 14: a connection that swallows everything is a timeout and is dropped; healed, it is seen at once."""
    push(client, payload())
    with Proxy(("127.0.0.1", server.port)) as proxy, watched(behind(proxy), timeout="300ms") as app:
        assert counts(app) == {"ready": 1}
        proxy.swallow()
        for _ in range(2):
            look(app, "queues")
            assert state_of(app, "queues").reason == "timeout"
        assert value(app, "jobs", queue="default", state="ready") is None
        client.flushall()
        proxy.heal()
        assert counts(app) == {}
        assert value(app, "jobs", queue="default", state="ready") == 0


@pytest.mark.parametrize("answers", [0, 3, 40, 200])
def test_an_answer_that_breaks_off(server: Redis, answers: int) -> None:
    """However much of an answer arrives before the connection breaks, nothing of it is shown."""
    with Proxy(("127.0.0.1", server.port)) as proxy, watched(behind(proxy), timeout="300ms") as app:
        proxy.answers = answers
        look(app, "queues")
        assert state_of(app, "queues").reason in ("timeout", "connect")
        assert value(app, "jobs", queue="default", state="ready") is None


@pytest.mark.parametrize("cut", [False, True])
def test_a_connection_that_is_closed_between_polls(server: Redis, cut: bool) -> None:
    """A firewall or a proxy that forgets us, with or without a word, is no failure."""
    with Proxy(("127.0.0.1", server.port)) as proxy, watched(behind(proxy)) as app:
        look(app, "queues")
        proxy.cut(reset=cut)
        look(app, "queues")
        assert errors(app, "queues") == {}
        assert proxy.accepted == 2


def test_too_many_connections(own: Redis) -> None:
    """A Redis that is full of clients says so; when there is room again, we are in."""
    with redis.Redis(port=own.port) as client, watched(own.url()) as app:
        client.config_set("maxclients", 1)
        look(app, "queues")
        assert state_of(app, "queues").reason == "too_many_connections"
        client.config_set("maxclients", 100)
        assert counts(app) == {"ready": 1}


def test_a_redis_that_is_still_loading(own: Redis) -> None:
    """While it reads its data back it answers, but knows nothing yet: that is `loading`, and never an empty queue."""
    with redis.Redis(port=own.port) as client:
        client.execute_command("DEBUG", "POPULATE", 20_000)
        client.save()
    own.stop()
    own.settings["key-load-delay"] = "200"  # microseconds a key
    own.settings["loading-process-events-interval-bytes"] = "1024"
    own.start()
    with watched(own.url()) as app:
        look(app, "queues")
        assert state_of(app, "queues").reason == "loading"
        assert value(app, "jobs", queue="default", state="ready") is None
        with redis.Redis(port=own.port) as client:
            client.config_set("key-load-delay", 0)
        until(lambda: looked(app).up)
        assert counts(app) == {"ready": 1}


def test_a_full_redis_can_still_be_read(own: Redis) -> None:
    """Out of memory no job can be pushed any more; what is there is shown, and that the memory is full."""
    with redis.Redis(port=own.port) as client, watched(own.url()) as app:
        client.config_set("maxmemory", 1_000_000)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            push(client, payload())
        look(app)
        assert counts(app, polled=False) == {"ready": 1}
        assert value(app, "redis_memory_max_bytes") == 1_000_000
        assert (value(app, "redis_memory_used_bytes") or 0) > 850_000


def looked(app: App) -> State:
    """What the board says of the queues, polled anew."""
    look(app, "queues")
    return state_of(app, "queues")


def replicate(replica: Redis, of: Redis) -> redis.Redis:
    """Make it a replica, and wait until it is in step."""
    client = redis.Redis(port=replica.port)
    client.execute_command("REPLICAOF", "127.0.0.1", of.port)
    until(lambda: client.info("replication")["master_link_status"] == "up")
    return client


def test_a_replica_that_lost_its_master_tells_the_past(own: Redis) -> None:
    """A replica is as good as its master while it hears of it; after that nothing is shown, and the reason is told."""
    with Redis() as second, watched(second.url()) as app, replicate(second, own):
        assert counts(app) == {"ready": 1}
        own.stop()
        until(lambda: counts(app) == {})
        assert value(app, "jobs", queue="default", state="ready") is None
        assert "no connection to its master" in state_of(app, "queues").notes[0]
        assert state_of(app, "queues").up


def test_a_replica_that_serves_no_old_data(own: Redis) -> None:
    """MASTERDOWN, as a replica answers that would rather say nothing than the past, is `loading`."""
    with Redis({"replica-serve-stale-data": "no"}) as second, watched(second.url()) as app, replicate(second, own):
        own.stop()
        until(lambda: looked(app).reason == "loading")


def test_a_failover(own: Redis) -> None:
    """When the replica becomes the master and the old one its replica, both can be asked, and both say the same."""
    with Redis() as second, watched(own.url()) as old, watched(second.url()) as new, replicate(second, own) as client:
        assert counts(old) == counts(new) == {"ready": 1}
        client.execute_command("REPLICAOF", "NO", "ONE")
        push(client, payload())
        assert counts(new) == {"ready": 2}
        with replicate(own, second):
            assert counts(old) == {"ready": 2}


def test_a_cluster_is_told_from_a_redis() -> None:
    """On a node of a cluster most keys are elsewhere: it says so, and is `not_found`."""
    with Redis({"cluster-enabled": "yes", "cluster-port": str(free_port())}) as node, watched(node.url()) as app:
        look(app, "queues")
        assert state_of(app, "queues").reason == "not_found"
        assert "Redis Cluster" in state_of(app, "queues").error
        with watched(node.url(1)) as other_database:
            look(other_database, "queues")
            assert state_of(other_database, "queues").reason == "not_found"
            assert "Redis Cluster" in state_of(other_database, "queues").error


def never_ends(client: redis.Redis) -> None:
    """Run a script until somebody kills it."""
    with suppress(redis.ResponseError):
        client.eval("while true do end", 0)


def test_a_script_that_does_not_end(own: Redis) -> None:
    """BUSY, as a Redis answers that runs an endless script, is `timeout`; when the script is stopped, all is well."""
    with redis.Redis(port=own.port) as client, redis.Redis(port=own.port) as stuck, watched(own.url()) as app:
        client.config_set("busy-reply-threshold", 10)
        running = Thread(target=never_ends, args=(stuck,))
        running.start()
        until(lambda: looked(app).reason == "timeout" and "BUSY" in looked(app).error)
        client.script_kill()
        running.join()
        until(lambda: looked(app).up)
