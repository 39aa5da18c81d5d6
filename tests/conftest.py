"""Servers that the tests run for real, each once a session: PostgreSQL (two of them), Redis, AWS by moto."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from exporter.demo import laravel
from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

if TYPE_CHECKING:
    from .sqs.cloud import World

NUMBERS = count()

for variable in [name for name in os.environ if name.startswith(("PG", "QUEUE_EXPORTER", "AWS"))]:
    del os.environ[variable]  # the product reads these
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and so it would be in all that we start


def debian_postgres() -> Path:
    """The binaries of Debian's PostgreSQL; the newest if there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if not found:
        pytest.fail("Debian's postgresql is missing: `make services` installs it")
    return found[-1].parent


@pytest.fixture(scope="session")
def postgres18() -> Iterator[Postgres]:
    """The wheel's PostgreSQL."""
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_debian() -> Iterator[Postgres]:
    """Debian's PostgreSQL (15 on Debian 12)."""
    with Postgres(debian_postgres()) as server:
        yield server


@pytest.fixture(scope="session", params=["debian", "wheel"])
def server(request: pytest.FixtureRequest) -> Postgres:
    """Each PostgreSQL in turn."""
    fixture = {"debian": "postgres_debian", "wheel": "postgres18"}[request.param]
    found: Postgres = request.getfixturevalue(fixture)
    return found


def new_database(server: Postgres) -> Iterator[str]:
    """The DSN of an empty database, dropped at the end."""
    name = f"test_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield server.dsn(name)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def dsn(server: Postgres) -> Iterator[str]:
    """An empty database, on each PostgreSQL."""
    yield from new_database(server)


@pytest.fixture
def dsn18(postgres18: Postgres) -> Iterator[str]:
    """An empty database on PostgreSQL 18 alone, where the version cannot matter."""
    yield from new_database(postgres18)


@pytest.fixture
def db(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to `dsn` with Laravel's tables in it, all of them empty."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(laravel.TABLES)
        yield connection


@pytest.fixture
def db18(dsn18: str) -> Iterator[psycopg.Connection[Any]]:
    """The same for `dsn18`."""
    with psycopg.connect(dsn18, autocommit=True) as connection:
        connection.execute(laravel.TABLES)
        yield connection


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """Debian's Redis, 7.0 on Debian 12."""
    if not shutil.which("redis-server"):
        pytest.fail("Debian's redis-server is missing: `make services` installs it")
    with Redis({"enable-debug-command": "local"}) as server:
        yield server


@pytest.fixture(scope="session")
def aws_world() -> Iterator[World]:
    """SQS, CloudWatch and ECS."""
    from .sqs import cloud  # what it brings takes seconds to import

    with cloud.started() as world:
        yield world
