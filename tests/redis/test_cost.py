"""What a poll asks of Redis: a few commands for each queue, whatever is in it and around it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from exporter.app import App
from exporter.demo.redis import Redis

from ..database.proxies import Proxy
from ..readme.blocks import DOCS, README
from ..world import value
from .world import behind, delay, look, now, payload, push, reserve, watched

OTHERS = 1_000_000
END = "the end of this test"


@pytest.fixture(scope="module")
def crowded() -> Iterator[Redis]:
    """A Redis with a million keys that are none of the queue's."""
    with Redis({"enable-debug-command": "local"}) as server, redis.Redis(port=server.port) as client:
        client.execute_command("DEBUG", "POPULATE", OTHERS, "another:application:key")
        yield server


@contextmanager
def monitored(server: Redis) -> Iterator[list[list[str]]]:
    """What all clients ask meanwhile, as lists of words; complete when it is left."""
    commands: list[list[str]] = []
    with redis.Redis(port=server.port) as client, client.monitor() as monitor:
        yield commands
        client.echo(END)
        while (command := monitor.next_command()["command"]) != f"ECHO {END}":
            if not command.startswith(("CLIENT ", "HELLO ")):  # by which a new connection begins
                commands.append(command.split(" "))


def asked(server: Redis, app: App, *collectors: str) -> list[list[str]]:
    """The commands of one poll, on a connection that is there."""
    look(app, *collectors)
    with monitored(server) as commands:
        look(app, *collectors)
    return commands


def test_case_54_commands_grow_with_queues_and_nothing_else(crowded: Redis) -> None:
    """Case 54: among a million other keys no KEYS and no SCAN; each queue costs the same, and jobs cost nothing."""
    queues = {f"queue-{n}": None for n in range(20)}
    with redis.Redis(port=crowded.port) as client, watched(crowded.url(), queues=queues) as app:
        empty = asked(crowded, app, "queues")
        for queue in queues:
            push(client, *(payload() for _ in range(50)), queue=queue)
            delay(client, payload(), now(client) + 60, queue)
            reserve(client, payload(attempts=1), now(client) + 60, queue)
        full = asked(crowded, app, "queues")
    with watched(crowded.url(), queues={"queue-1": None}) as app:
        one = asked(crowded, app, "queues")
    of_all = 2  # TIME and INFO
    assert len(empty) == len(full) == of_all + 20 * (len(one) - of_all)
    assert not {"KEYS", "SCAN", "SORT", "SMEMBERS", "HGETALL"} & {command[0].upper() for command in full}


def test_case_54_every_collector_costs_the_same_with_many_jobs(crowded: Redis) -> None:
    """Case 54: also those of Horizon, of the cache and of held jobs ask no more where there are more jobs and keys."""
    settings: dict[str, Any] = {"cache": {}, "horizon": {"prefix": "laravel_horizon:"}}
    with redis.Redis(port=crowded.port) as client, watched(crowded.url(), **settings) as app:
        client.set("laravel_horizon:last_snapshot_at", 1)
        few = asked(crowded, app)
        for number in range(300):
            push(client, payload())
            reserve(client, payload(attempts=1), now(client) + 60)
            client.zadd("laravel_horizon:recent_jobs", {f"id-{number}": number})
            client.hset(f"laravel_horizon:id-{number}", "queue", "default")
        many = asked(crowded, app)
    assert [command[0] for command in few] == [command[0] for command in many]


def test_a_poll_is_one_pipeline(crowded: Redis) -> None:
    """All commands of a poll are on their way before the first answer is waited for: one round trip is all it takes."""
    queues = {f"queue-{n}": None for n in range(9)}
    with Proxy(("127.0.0.1", crowded.port)) as proxy, watched(behind(proxy), queues=queues) as app:
        look(app, "queues")
        proxy.delay = 0.2  # seconds, for each piece of an answer
        began = time.monotonic()
        look(app, "queues")
        assert 0.2 < time.monotonic() - began < 1.5  # with 128 round trips it would be 26
        assert value(app, "queues") == 9


def test_a_long_pipeline_is_sent_once(crowded: Redis) -> None:
    """However long the last reply takes, the clock is that of the first one: nobody has to ask for all of it again."""
    queues = {f"queue-{n}": None for n in range(2500)}
    with Proxy(("127.0.0.1", crowded.port)) as proxy, watched(behind(proxy), queues=queues, timeout="20s") as app:
        look(app, "queues")
        proxy.delay = 0.6  # seconds, for each piece of an answer of 64 KB or less
        began = time.monotonic()
        look(app, "queues")
        assert time.monotonic() - began > 1.7  # so the last reply came a second after the first
        proxy.delay = 0.0
        with monitored(crowded) as commands:
            look(app, "queues")
        assert [command[0] for command in commands].count("TIME") == 1


def test_looking_for_queues_reads_a_bounded_number_of_keys(crowded: Redis) -> None:
    """With `discover` a poll looks at some thousand keys and goes on from there with the next one; never at all."""
    with watched(crowded.url(), discover=True) as app:
        commands = asked(crowded, app, "queues")
    scans = [command for command in commands if command[0].upper() == "SCAN"]
    assert len(scans) == 4
    assert {scan[-1] for scan in scans} == {"1000"}
    assert len({scan[1] for scan in scans}) == 4


def test_only_commands_that_read(crowded: Redis) -> None:
    """No collector asks for anything that writes, blocks, or takes the longer the more keys there are."""
    settings: dict[str, Any] = {"cache": {}, "horizon": {"prefix": "laravel_horizon:"}}
    with redis.Redis(port=crowded.port) as client, watched(crowded.url(), **settings) as app:
        client.sadd("laravel_horizon:measured_queues", "laravel_horizon:queue:default")
        client.zadd("laravel_horizon:masters", {"vm-1": 1})
        look(app)
        commands = Counter(command[0].lower() for command in asked(crowded, app))
        known = client.command()
    assert len(commands) > 10
    for name in commands:
        assert not {"write", "blocking", "pubsub", "noscript"} & {*known[name]["flags"]}, name


def test_the_page_on_redis_says_how_many_commands_a_poll_takes(server: Redis, client: redis.Redis) -> None:
    """For each queue, for what there is once, for Horizon and each thing that it has, and for the cache."""
    text, readme = (" ".join(page.read_text("utf-8").split()) for page in (DOCS / "redis.md", README))
    said = re.search(
        r"costs Redis (\d+) commands for each queue every `interval`, and (\d+) more; with Horizon (\d+) more, "
        r"(\d+) for each queue that it has ever measured, and (\d+) for each master, supervisor and job that has just "
        r"failed; (\d+) for the cache",
        text,
    )
    assert said
    each, once, of_horizon, measured, alive, of_cache = map(int, said.groups())
    assert f"costs** Redis: {each} commands for each queue every `interval`" in readme
    horizon: dict[str, Any] = {"horizon": {"prefix": "laravel_horizon:"}}
    client.sadd("laravel_horizon:measured_queues", "queue:a", "queue:b", "queue:c")
    for names, count in (("masters", 4), ("supervisors", 5)):
        client.zadd(f"laravel_horizon:{names}", {f"{names}-{n}": n for n in range(count)})
    client.zadd("laravel_horizon:failed_jobs", {f"id-{n}": -n for n in range(7)})
    for settings, number in (
        ({}, 0),
        (horizon, of_horizon + 3 * measured + (4 + 5) * alive),
        ({"cache": {}}, of_cache),
        (horizon | {"cache": {}}, of_horizon + 3 * measured + (4 + 5) * alive + of_cache),
    ):
        with watched(server.url(), queues={"default": None, "mail": None}, **settings) as app:
            assert len(asked(server, app)) == 2 * each + once + number
    with watched(server.url(), **horizon) as app:
        look(app, "queues")
        with monitored(server) as commands:
            look(app, "horizon")
        assert len(commands) == of_horizon + 3 * measured + (4 + 5 + 7) * alive
