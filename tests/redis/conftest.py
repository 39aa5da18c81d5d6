"""The Redis of the session, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from exporter.demo.redis import Redis


@pytest.fixture
def server(redis_server: Redis) -> Redis:
    """A Redis with nothing in it."""
    with redis.Redis(port=redis_server.port) as client:
        client.flushall()
    return redis_server


@pytest.fixture
def client(server: Redis) -> Iterator[redis.Redis]:
    """A connection to `server`."""
    with redis.Redis(port=server.port) as client:
        yield client
