"""What the tests of Redis share: jobs as Laravel keeps them, and an exporter that watches them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import redis

from exporter import app, config
from exporter.app import App
from exporter.board import State
from exporter.queues import STATES
from exporter.timing import Clock

from ..database.proxies import Peer
from ..world import close, poll, state, value

PREFIX = "laravel_database_"
NUMBERS = count(1)


def settings(url: str, **changes: Any) -> config.Config:
    """Settings of one connection called `redis`."""
    connection = {"driver": "redis", "url": url, "prefix": PREFIX} | changes
    return config.parse({"web": {"listen": "127.0.0.1:0"}, "connections": {"redis": connection}})


@contextmanager
def watched(url: str, clock: Clock = Clock(), *, once: bool = False, **changes: Any) -> Iterator[App]:
    """An exporter of one Redis, wired but not running; its connections are closed at the end."""
    watching = app.build(settings(url, **changes), clock, once=once)
    try:
        yield watching
    finally:
        close(watching)


def behind(peer: Peer, rest: str = "/0") -> str:
    """A URL that leads to this peer."""
    return f"redis://{peer.host}:{peer.port}{rest}"


def look(watching: App, *collectors: str) -> None:
    """Poll these collectors, or all."""
    poll(watching, *collectors, source="redis")


def counts(watching: App, queue: str = "default", *, polled: bool = True) -> dict[str, float]:
    """The states of a queue that have jobs in them; after a poll, unless it was polled already."""
    if polled:
        look(watching, "queues")
    found = {state: value(watching, "jobs", queue=queue, state=state) for state in STATES}
    return {state: number for state, number in found.items() if number}


def now(client: redis.Redis) -> int:
    """Redis's clock in whole seconds."""
    seconds: int = client.time()[0]
    return seconds


def payload(**changes: Any) -> str:
    """A job's payload as Laravel 12 writes it; with `pushedAt` as Horizon does."""
    number = next(NUMBERS)
    job: dict[str, Any] = {
        "uuid": f"uuid-{number}",
        "displayName": "App\\Jobs\\SendInvoice",
        "job": "Illuminate\\Queue\\CallQueuedHandler@call",
        "maxTries": None,
        "timeout": None,
        "data": {"commandName": "App\\Jobs\\SendInvoice", "command": 'O:20:"App\\Jobs\\SendInvoice":0:{}'},
        "id": f"id-{number}",
        "attempts": 0,
    }
    return json.dumps(job | changes)


def push(client: redis.Redis, *payloads: str, queue: str = "default", prefix: str = PREFIX) -> None:
    """Put jobs at the end of the line."""
    client.rpush(f"{prefix}queues:{queue}", *payloads)


def delay(client: redis.Redis, job: str, due: float, queue: str = "default") -> None:
    """Let a job be due at this time."""
    client.zadd(f"{PREFIX}queues:{queue}:delayed", {job: due})


def reserve(client: redis.Redis, job: str, expires: float, queue: str = "default") -> None:
    """Let a worker hold a job, which expires at this time."""
    client.zadd(f"{PREFIX}queues:{queue}:reserved", {job: expires})


def errors(watching: App, collector: str) -> Mapping[str, int]:
    """How often a collector failed, by reason."""
    return {str(reason): times for reason, times in state_of(watching, collector).errors.items()}


def state_of(watching: App, collector: str) -> State:
    """What the board says of a collector."""
    return state(watching, collector, "redis")
