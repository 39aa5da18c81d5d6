"""The ways in which the database behind the exporter can be in trouble."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg

from exporter.demo.postgres import Postgres

ROLE = "watcher"
Trouble = Callable[[Postgres], AbstractContextManager[None]]


def create_role(connection: psycopg.Connection[Any]) -> None:
    """Create the role that the exporter logs in as."""
    connection.execute(f"CREATE ROLE {ROLE} LOGIN IN ROLE pg_monitor; GRANT SELECT ON jobs TO {ROLE}")


@contextmanager
def healthy(server: Postgres) -> Iterator[None]:
    """No trouble at all, to compare with."""
    yield


@contextmanager
def hangs(server: Postgres) -> Iterator[None]:
    """Connections stay open and new ones are accepted, but nobody answers: its processes are stopped."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity WHERE usename = %s", (ROLE,)).fetchall()
    assert server.process
    pids = [server.process.pid, *(pid for (pid,) in found)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def refuses(server: Postgres) -> Iterator[None]:
    """The session is ended and the login refused."""
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER ROLE {ROLE} NOLOGIN")
        connection.execute(end, (ROLE,))
        try:
            yield
        finally:
            connection.execute(f"ALTER ROLE {ROLE} LOGIN")


@contextmanager
def locked(server: Postgres) -> Iterator[None]:
    """Somebody holds the strongest lock on the jobs table."""
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def gone(server: Postgres) -> Iterator[None]:
    """The server is stopped: nobody listens."""
    server.stop()
    try:
        yield
    finally:
        server.start()


TROUBLES: tuple[Trouble, ...] = (hangs, refuses, locked, gone)
