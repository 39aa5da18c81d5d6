"""Laravel's tables on a database of their own, and a worker with a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import psycopg
import pytest

from exporter.demo import laravel as driver
from exporter.demo.laravel import Connection
from exporter.demo.plan import Plan, Pool
from exporter.demo.postgres import Postgres
from exporter.demo.worker import Worker

from ..conftest import new_database
from ..laravel.conftest import application
from ..laravel.laravel import Laravel
from ..world import HandClock
from .rehearsal import Rehearsal, Servers, rehearsal

MakeWorker = Callable[..., Worker]
Rehearse = Callable[[Plan], AbstractContextManager[Rehearsal]]


@pytest.fixture(scope="session")
def tables(postgres18: Postgres) -> Iterator[str]:
    """The DSN of a database with Laravel's tables, which tests of the protocol use one after another."""
    for dsn in new_database(postgres18):
        with psycopg.connect(dsn, autocommit=True) as connection:
            driver.migrate(connection, autovacuum_threshold=5000)
        yield dsn


@pytest.fixture
def connection(tables: str) -> Iterator[Connection]:
    """A connection to Laravel's tables, with nothing in them."""
    with psycopg.connect(tables, autocommit=True) as connection:
        connection.execute("TRUNCATE jobs, failed_jobs, cache, cache_locks")
        yield connection


@pytest.fixture
def hand() -> HandClock:
    """The clock of this test."""
    return HandClock()


@pytest.fixture
def make_worker(connection: Connection, hand: HandClock) -> MakeWorker:
    """Makes workers of a plan whose rests move the clock and take no time."""

    def make(plan: Plan, pool: Pool) -> Worker:
        return Worker(plan, pool, connection, lambda: hand.wall, hand.pass_, Random(1))

    return make


@pytest.fixture
def real(postgres_debian: Postgres, tmp_path: Path) -> Iterator[Laravel]:
    """A real Laravel application."""
    yield from application(postgres_debian, tmp_path)


@pytest.fixture(scope="session")
def rehearse(postgres18: Postgres) -> Iterator[Rehearse]:
    """Brings a plan to life."""
    servers = Servers(postgres18.binaries)
    with servers.started:
        yield lambda plan: rehearsal(servers.for_(plan), plan)
