"""Real Laravel applications, each on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from ..conftest import new_database
from .laravel import Laravel

ROLE = """
DO $$ BEGIN
    CREATE ROLE laravel LOGIN PASSWORD 'laravel';
EXCEPTION WHEN duplicate_object THEN NULL;
END $$
"""


def application(server: Postgres, folder: Path, redis: Redis | None = None) -> Iterator[Laravel]:
    """A migrated application on a new database of this server, owned by the role that Laravel logs in as."""
    for dsn in new_database(server):
        database = str(conninfo_to_dict(dsn)["dbname"])
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(ROLE)
            connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO laravel").format(sql.Identifier(database)))
        with Laravel(server, database, folder, redis) as laravel:
            yield laravel


@pytest.fixture
def laravel(postgres_debian: Postgres, tmp_path: Path) -> Iterator[Laravel]:
    """An application on Debian's PostgreSQL."""
    yield from application(postgres_debian, tmp_path)


@pytest.fixture
def laravel_everywhere(server: Postgres, tmp_path: Path) -> Iterator[Laravel]:
    """An application on each PostgreSQL in turn."""
    yield from application(server, tmp_path)
