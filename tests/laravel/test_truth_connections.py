"""A server without a free connection: what becomes of workers, and of us."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from exporter.demo.postgres import Postgres

from ..conftest import debian_postgres
from ..patience import until
from ..world import poll, state, value, watched
from .conftest import application
from .laravel import Laravel
from .shown import workers

MOST, RESERVED = 12, 3  # connections, and those of them that only superusers get
DIED = 255  # PHP's exit code after an error that nobody caught
POOLS = {"vm-a": {"application_name": "vm-a", "queues": ["default"]}}
WATCHER = """
CREATE ROLE watcher LOGIN;
GRANT pg_monitor TO watcher;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO watcher;
"""


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[Laravel]:
    """An application on a server with room for few, which an exporter that is no superuser may watch."""
    with Postgres(debian_postgres(), {"max_connections": str(MOST)}) as server:
        for laravel in application(server, tmp_path):
            with psycopg.connect(laravel.dsn, autocommit=True) as connection:
                connection.execute(WATCHER)
            laravel.dsn = laravel.dsn.replace("postgres@", "watcher@")
            yield laravel


def test_exhausted_connections_are_told_by_who_has_one_and_by_who_gets_none(cramped: Laravel) -> None:
    """
    Workers die where no connection is left; an exporter with one says 100 %, one without says why, and both heal.

    How many workers of the pool are connected is how many processes live.
    """
    with watched(cramped.dsn, pools=POOLS) as early, watched(cramped.dsn, pools=POOLS) as late:
        poll(early)
        seats = MOST - RESERVED - 1
        started = [cramped.work() for _ in range(seats + 3)]
        until(lambda: [worker.poll() for worker in started].count(DIED) == 3)
        living = [worker for worker in started if worker.poll() is None]
        assert len(living) == seats
        until(lambda: workers(early, "vm-a") == seats)
        assert value(early, "database_connection_usage_ratio") == 1
        poll(late)
        assert state(late, "jobs").reason == state(late, "activity").reason == "too_many_connections"
        assert value(late, "source_up", collector="jobs") == 0
        assert value(late, "database_connection_usage_ratio") is None

        for worker in living[:4]:
            cramped.kill(worker)
        until(lambda: workers(late, "vm-a") == seats - 4)
        poll(late, "jobs")
        assert value(late, "source_up", collector="jobs") == 1
        assert value(late, "database_connection_usage_ratio") == (seats - 4 + 2) / (MOST - RESERVED)
