"""Real pages: what alerts are made of is on the page of an exporter that watches a real PostgreSQL, Redis and SQS."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
import redis as client

from exporter.demo.fargate.aws import CREDENTIALS, EcsService
from exporter.demo.redis import Redis

from ..database import cached, holding
from ..redis import world as on_redis
from ..redis.dumps import put_back
from ..sqs.cloud import World
from ..sqs.watching import watch
from ..world import poll, series, watched
from .rules import ALERTS
from .worlds import healthy

QUEUES = {"default": {"target_wait": "1m"}}
Labels = dict[str, frozenset[str]]  # of each metric, their names


def labels(page: bytes) -> Labels:
    """The labels of each metric on a page."""
    return {name: frozenset(dict(pairs)) for name, pairs in series(page)}


def database(request: pytest.FixtureRequest) -> Labels:
    """One job is held and one waits, a worker is connected, and queue:restart was called."""
    db: psycopg.Connection[Any] = request.getfixturevalue("db18")
    dsn: str = request.getfixturevalue("dsn18")
    cached.create_cache(db)
    cached.restart(db)
    holding.hold(db, 1)
    db.execute("VACUUM jobs")
    pools = {"default": {"application_name": "worker-*", "queues": ["default"], "timeout": "60s"}}
    with watched(dsn, queues=QUEUES, pools=pools) as watching:
        poll(watching)
        poll(watching)  # a class is 0 at first
        return labels(watching.exposition.page("text"))


def redis(request: pytest.FixtureRequest) -> Labels:
    """A Horizon that runs, with a job in its hands, in a Redis with a limit to its memory."""
    server: Redis = request.getfixturevalue("redis_server")
    with client.Redis(port=server.port) as there:
        there.flushall()
        put_back(12, "A", there)
        there.config_set("maxmemory", "1gb")
        try:
            on_redis.reserve(there, on_redis.payload(timeout=30), on_redis.now(there) + 60)
            horizon = {"prefix": "laravel_horizon:"}
            url = f"redis://127.0.0.1:{server.port}/0"
            cache = {"redis": url, "prefix": "laravel_cache_"}
            with on_redis.watched(url, queues=QUEUES, horizon=horizon, cache=cache) as watching:
                on_redis.look(watching)
                on_redis.look(watching)
                return labels(watching.exposition.page("text"))
        finally:
            there.config_set("maxmemory", "0")
            there.flushall()


def sqs(request: pytest.FixtureRequest) -> Labels:
    """A FIFO queue with a dead-letter queue, a service that works on it, and CloudWatch."""
    world: World = request.getfixturevalue("aws_world")
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    for name, text in CREDENTIALS.items():
        patch.setenv(name, text)
    world.reset()
    world.queue("dead.fifo")
    arn = world.client("sqs").get_queue_attributes(QueueUrl=world.queue("dead.fifo"), AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": "3"}
    world.queue("mail.fifo", 3, RedrivePolicy=policy)
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    service = {"cluster": "workers", "service": "mail"}
    said = {"target_wait": "1m", "timeout": "60s", "seconds_per_job": 0.5, "ecs": service}
    with watch(world, queues={"mail.fifo": said}, cloudwatch={}) as watching:
        for _ in range(3):
            poll(watching, source="sqs")
        return labels(watching.exposition.page("text"))


PAGES = {"database": database, "redis": redis, "sqs": sqs}
NOT_THERE: dict[str, set[str]] = {
    "database": set(),
    "redis": set(),
    "sqs": {"laravel_queue_oldest_job_age_seconds"},  # messages wait, and CloudWatch knows nothing yet
}


@pytest.mark.parametrize("driver", PAGES)
def test_a_real_page_has_what_the_alerts_are_made_of(driver: str, request: pytest.FixtureRequest) -> None:
    """Case 82: each series of the simulated world is there under the same name and with the same labels."""
    page = PAGES[driver](request)
    simulated = {each.name: frozenset(dict(each.labels)) for each in healthy(driver) if each.name != "up"}
    assert simulated.keys() - page.keys() == NOT_THERE[driver]
    assert {name: page[name] for name in simulated.keys() & page.keys()} == {
        name: those for name, those in simulated.items() if name in page
    }


def test_simulated_worlds_hold_what_the_alerts_name() -> None:
    """So the test above leaves none of them out."""
    simulated = {each.name for driver in (*PAGES, "any") for each in healthy(driver)}
    named = {name for alert in ALERTS.values() for name in alert.metrics}
    assert named <= simulated
