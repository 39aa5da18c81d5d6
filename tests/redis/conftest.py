"""A Redis for all tests of a session, emptied before each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import redis

from exporter.demo.redis import Redis


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """Debian's Redis, 7.0 on Debian 12."""
    if not shutil.which("redis-server"):
        pytest.fail("Debian's redis-server is missing: `make services` installs it")
    with Redis() as server:
        yield server


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
