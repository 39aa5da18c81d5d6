"""A database that a test may stop or break, and an exporter that watches it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from exporter.demo.postgres import Postgres

from ..conftest import debian_postgres
from ..world import create_jobs


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    """A PostgreSQL that no other test uses, with an empty jobs table."""
    with Postgres(debian_postgres()) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            create_jobs(connection)
        yield server
