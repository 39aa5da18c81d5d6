"""What is done to a healthy world by hand, where the demo has no incident of it. All of it is over at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from typing import Any

import psycopg

from ..patience import until
from .stage import Stage

Trouble = Callable[[Stage], AbstractContextManager[None]]

ROWS = """
INSERT INTO jobs (queue, attempts, reserved_at, available_at, created_at, payload)
SELECT 'imports', 0, NULL, extract(epoch FROM now())::int + 86400, extract(epoch FROM now())::int, repeat('x', 900)
  FROM generate_series(1, {rows})
"""
LARGE = 34_000  # rows, each on a page of its own: 279 MB


def session(stage: Stage, program: str, role: str = "postgres") -> closing[psycopg.Connection[Any]]:
    """A connection of some program; it may be gone before it is closed."""
    where = stage.variables
    return closing(
        psycopg.connect(
            host=where["PGHOST"],
            port=where["PGPORT"],
            dbname=where["PGDATABASE"],
            user=role,
            application_name=program,
            autocommit=True,
        )
    )


@contextmanager
def never_vacuumed(stage: Stage) -> Iterator[None]:
    """A migration keeps a lock that no worker minds and autovacuum does; meanwhile jobs come and go."""
    with session(stage, "migration") as migration, session(stage, "import") as jobs:
        migration.execute("BEGIN")
        migration.execute("LOCK TABLE jobs IN SHARE UPDATE EXCLUSIVE MODE")
        jobs.execute(ROWS.format(rows=12_000))
        jobs.execute("DELETE FROM jobs WHERE queue = 'imports'")
        yield


@contextmanager
def autovacuum_disabled(stage: Stage) -> Iterator[None]:
    """Somebody has switched autovacuum off, for this table alone."""
    with session(stage, "import") as jobs:
        jobs.execute("ALTER TABLE jobs SET (autovacuum_enabled = off)")
        yield


@contextmanager
def bloated(stage: Stage) -> Iterator[None]:
    """A table of many pages, of which only the last has a row that lives: no vacuum makes it any smaller."""
    with session(stage, "import") as jobs:
        jobs.execute("ALTER TABLE jobs SET (fillfactor = 10)")
        jobs.execute(ROWS.format(rows=LARGE))
        jobs.execute("ALTER TABLE jobs RESET (fillfactor)")
        jobs.execute("DELETE FROM jobs WHERE queue = 'imports' AND id <> (SELECT max(id) FROM jobs)")
        yield


@contextmanager
def migration_left_open(stage: Stage) -> Iterator[None]:
    """A migration has the whole table, and nobody commits it."""
    with session(stage, "migrate") as migration:
        migration.execute("BEGIN")
        migration.execute("ALTER TABLE jobs ADD COLUMN tenant bigint")
        yield


@contextmanager
def migration_in_line(stage: Stage) -> Iterator[None]:
    """A migration waits for a report to end, and everybody else waits behind it."""
    with session(stage, "report") as report, session(stage, "migrate") as migration:
        report.execute("BEGIN")
        report.execute("SELECT count(*) FROM jobs")
        waiting = threading.Thread(
            target=_until_cancelled, args=(migration, "ALTER TABLE jobs ADD COLUMN tenant bigint")
        )
        waiting.start()
        try:
            yield
        finally:
            report.close()
            waiting.join()


def _until_cancelled(connection: psycopg.Connection[Any], statement: str) -> None:
    with suppress(psycopg.Error):
        connection.execute(statement)


@contextmanager
def table_locked(stage: Stage) -> Iterator[None]:
    """Somebody has the whole table for as long as it takes."""
    with session(stage, "migrate") as migration:
        migration.execute("BEGIN")
        migration.execute("LOCK TABLE jobs")
        yield


def revoked(table: str) -> Trouble:
    """The table was made anew, without what the exporter was granted."""

    @contextmanager
    def trouble(stage: Stage) -> Iterator[None]:
        with session(stage, "migrate") as migration:
            migration.execute(f"REVOKE SELECT ON {table} FROM queue_exporter")
            yield

    return trouble


@contextmanager
def no_connection_left(stage: Stage) -> Iterator[None]:
    """The web application takes every connection that is left to it."""
    with ExitStack() as taken:

        def refused() -> bool:
            try:
                taken.enter_context(session(stage, "web", "laravel"))
            except psycopg.OperationalError as error:
                return "reserved" in str(error) or "too many clients" in str(error)
            return False

        until(refused)
        yield
