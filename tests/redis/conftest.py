"""The Redis of the session, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from ..laravel.conftest import application
from ..laravel.laravel import Laravel


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


@pytest.fixture
def laravel(postgres_debian: Postgres, server: Redis, tmp_path: Path) -> Iterator[Laravel]:
    """A real application whose queue and cache are in `server`."""
    yield from application(postgres_debian, tmp_path, server)
