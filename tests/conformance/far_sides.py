"""
Every source with its far side in each mood. A new source is one function and one line in `FAR_SIDES`;
a new collector of a source that is here is found by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from threading import Event
from typing import Literal, NamedTuple
from urllib.parse import quote

import psycopg
import pytest
import redis as client

from exporter import app, queues
from exporter.config import parse
from exporter.demo import laravel
from exporter.demo.fargate import aws
from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis
from exporter.errors import Reason
from exporter.model import Metric
from exporter.source import Source
from exporter.sources.clock import source as clocks
from exporter.sources.clock.settings import ClockSettings
from exporter.sources.readings import Reading, Readings
from exporter.sources.sqs import source as queue_service
from exporter.sources.sqs.settings import Ecs, Queue, Sqs

from ..clock.server import NtpServer, Packet, Respond, Travel
from ..database.proxies import Deaf, Peer, Proxy
from ..sqs.cloud import World, error
from ..world import HandClock, settings
from .babbler import Babbler

Mood = Literal["well", "refusing", "deaf", "babbling", "denying"]
QUEUES = ("default", "mail")  # named in the settings; nothing is in them
NUMBERS = count()
STAGE = """
CREATE SCHEMA {schema};
SET search_path = {schema};
DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$
"""
SECRET = "s3cret&p@ss wörd"  # of the far sides that know one
SECRET_KEY = "AWS_SECRET_ACCESS_KEY"
WORKERS = Ecs(cluster="workers", service="mail")


class Opened(NamedTuple):
    """A source, how its far side falls silent or goes away, and what must never be seen."""

    source: Source
    hush: Callable[[], None]
    leave: Callable[[], None]
    secrets: tuple[str, ...] = ()


Open = Callable[[Mood, pytest.FixtureRequest, ExitStack], Opened]


@dataclass(frozen=True)
class FarSide:
    """How to put the far side of one source into a mood, and the reason that its collectors then give."""

    open: Open
    reasons: Mapping[Mood, Reason]
    asking_nobody: frozenset[str] = field(default=frozenset())  # collectors that need no far side
    allowed_meanwhile: frozenset[str] = field(default=frozenset())  # collectors that work while it is denying
    with_a_server_of_their_own: frozenset[str] = field(default=frozenset())  # collectors; the first one's goes without
    states: tuple[str, ...] = queues.STATES  # of jobs, that it knows
    ages: tuple[Metric, ...] = (queues.OLDEST_JOB_AGE, queues.OLDEST_RESERVED_AGE)  # the same


def patience(mood: Mood) -> float:
    """Seconds that a poll may take: few where a test has to wait for them."""
    return 0.3 if mood == "deaf" else 5.0


def database(mood: Mood, request: pytest.FixtureRequest, stack: ExitStack) -> Opened:
    """A PostgreSQL with Laravel's tables, empty, behind a proxy; denying, it keeps the tables from us."""
    server: Postgres = request.getfixturevalue("postgres18")
    schema = f"conformance_{next(NUMBERS)}"
    connection = stack.enter_context(psycopg.connect(server.dsn(), autocommit=True))
    connection.execute(STAGE.format(schema=schema).encode())
    connection.execute(laravel.TABLES)
    proxy = stack.enter_context(Proxy(("127.0.0.1", server.port)))
    peers: dict[Mood, Callable[[], Peer]] = {"deaf": Deaf, "babbling": Babbler}
    peer = stack.enter_context(peers[mood]()) if mood in peers else proxy
    if mood == "refusing":
        peer.close()
    user = "stranger" if mood == "denying" else "postgres"
    config = settings(
        peer.dsn(f"dbname=postgres user={user}"),
        schema=schema,
        password=SECRET,
        timeout=patience(mood),
        queues={queue: {"target_wait": "1m"} for queue in QUEUES},
        pools={"default": {"application_name": "worker-*", "queues": ["default"], "timeout": "60s"}},
    )
    source = next(iter(app.sources(config)))
    return Opened(source, proxy.swallow, peer.close, (SECRET, *config.secrets()))


def redis(mood: Mood, request: pytest.FixtureRequest, stack: ExitStack) -> Opened:
    """A Redis with no job in it, but a trace of Horizon, behind a proxy; denying, we may do nothing in it."""
    server: Redis = request.getfixturevalue("redis_server")
    prefix = f"conformance_{next(NUMBERS)}_"
    with client.Redis(port=server.port) as there:
        there.set(f"{prefix}horizon:last_snapshot_at", 1)
        for user, rights in (("watcher", "~* +@all"), ("stranger", "-@all")):
            there.execute_command("ACL", "SETUSER", user, "ON", f">{SECRET}", *rights.split())
    proxy = stack.enter_context(Proxy(("127.0.0.1", server.port)))
    peers: dict[Mood, Callable[[], Peer]] = {"deaf": Deaf, "babbling": Babbler}
    peer = stack.enter_context(peers[mood]()) if mood in peers else proxy
    if mood == "refusing":
        peer.close()
    url = f"redis://{'stranger' if mood == 'denying' else 'watcher'}:{quote(SECRET)}@{peer.host}:{peer.port}/0"
    connection = {
        "driver": "redis",
        "url": url,
        "prefix": prefix,
        "timeout": patience(mood),
        "queues": {queue: {"target_wait": "1m", "timeout": "60s"} for queue in QUEUES},
        "horizon": {"prefix": f"{prefix}horizon:"},
        "cache": {"redis": url, "prefix": prefix},
    }
    config = parse({"connections": {"redis": connection}})
    source = next(iter(app.sources(config)))
    return Opened(source, proxy.swallow, peer.close, (SECRET, *config.secrets()))


def clock(mood: Mood, request: pytest.FixtureRequest, stack: ExitStack) -> Opened:
    """Two NTP servers, and a database whose clock was read; denying, the servers send a kiss-o'-death."""
    hand, silent = HandClock(), Event()
    moods: dict[Mood, Respond] = {
        "well": lambda packet: [] if silent.is_set() else Travel(hand)(packet),
        "deaf": lambda packet: [],
        "babbling": lambda packet: [b"HTTP/1.1 400 Bad Request\r\n\r\n"],
        "denying": lambda packet: [bytes(Packet(packet, 0, 0, stratum=0, reference=b"DENY"))],
    }
    respond = moods.get(mood, moods["well"])
    servers = stack.enter_context(ExitStack())
    first = servers.enter_context(NtpServer(hand, respond))
    servers.enter_context(NtpServer(hand, respond, "127.0.0.2", first.port))
    if mood == "refusing":
        servers.close()
    readings = Readings()
    readings.put(Reading("database:database", 0, 0.1))
    named = ClockSettings(ntp=("127.0.0.1", "127.0.0.2"), timeout=patience(mood))
    return Opened(clocks.open(named, readings, port=first.port), silent.set, servers.close)


def sqs(mood: Mood, request: pytest.FixtureRequest, stack: ExitStack) -> Opened:
    """SQS, CloudWatch and ECS, empty, behind a proxy; denying, no policy allows anything."""
    world: World = request.getfixturevalue("aws_world")
    world.reset()
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    for name, text in aws.CREDENTIALS.items():
        patch.setenv(name, text)
    for queue in QUEUES:
        world.queue(queue)
    world.aws.ecs.services["workers", "mail"] = aws.EcsService(1, 1)
    if mood == "denying":
        world.cloud.mood = lambda asked: error("AccessDenied", "no policy allows it")
    proxy = stack.enter_context(Proxy(("127.0.0.1", world.aws.port)))
    peers: dict[Mood, Callable[[], Peer]] = {"deaf": Deaf, "babbling": Babbler}
    peer = stack.enter_context(peers[mood]()) if mood in peers else proxy
    if mood == "refusing":
        peer.close()
    named = {queue: Queue(target_wait=60, timeout=60, ecs=WORKERS) for queue in QUEUES}
    here = f"http://127.0.0.1:{peer.port}"
    settings = Sqs(
        driver="sqs", region=aws.REGION, prefix=f"{here}/{aws.ACCOUNT}", endpoint_url=here, queues=named, publish=True,
        timeout=patience(mood),
    )  # fmt: skip
    return Opened(queue_service.open("sqs", settings), proxy.swallow, peer.close, (aws.CREDENTIALS[SECRET_KEY],))


FAR_SIDES = {
    "database": FarSide(
        database,
        {"refusing": "refused", "deaf": "timeout", "babbling": "malformed", "denying": "permission"},
        allowed_meanwhile=frozenset({"statistics", "activity", "sizes", "locks"}),
    ),
    "redis": FarSide(
        redis, {"refusing": "refused", "deaf": "timeout", "babbling": "malformed", "denying": "permission"}
    ),
    "sqs": FarSide(
        sqs,
        {"refusing": "refused", "deaf": "timeout", "babbling": "malformed", "denying": "permission"},
        asking_nobody=frozenset({"publish"}),  # it has nothing to tell while nothing is known
        with_a_server_of_their_own=frozenset({"cloudwatch", "ecs"}),
        states=("ready", "delayed", "reserved"),
        ages=(queues.OLDEST_JOB_AGE,),
    ),
    "clock": FarSide(
        clock,
        {"refusing": "refused", "deaf": "timeout", "babbling": "malformed", "denying": "kod"},
        asking_nobody=frozenset({"databases"}),
    ),
}
