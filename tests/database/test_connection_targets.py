"""Several databases watched by one exporter."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from exporter import app, config
from exporter.app import App
from exporter.demo.postgres import Postgres

from ..world import close, poll, value
from .onlooker import Db
from .proxies import Deaf


@contextmanager
def watched_all(dsns: Mapping[str, str], timeout: str = "2s") -> Iterator[App]:
    """An exporter of several databases, by the connection's name."""
    connections = {name: {"driver": "database", "dsn": dsn, "timeout": timeout} for name, dsn in dsns.items()}
    watching = app.build(config.parse({"connections": connections}))
    try:
        yield watching
    finally:
        close(watching)


@pytest.mark.parametrize("server", ["debian"], indirect=True)
def test_case_3_one_session_per_target(server: Postgres, db: Db) -> None:
    """Case 3. Three databases watched are three sessions, however often they are polled."""
    names = [f"{db.info.dbname}_{number}" for number in range(3)]
    for name in names:
        db.execute(f"CREATE DATABASE {name}".encode())
    with watched_all({name: server.dsn(name) for name in names}) as watching:
        for name in names * 3:
            poll(watching, source=name)
        counted = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'queue-exporter' AND datname = ANY(%s)"
        )
        assert db.execute(counted, [names]).fetchall() == [(3,)]
    for name in names:
        db.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.parametrize("server", ["wheel"], indirect=True)
def test_case_7_one_target_down(server: Postgres, db: Db) -> None:
    """Case 7. Of two targets one is deaf: the other is up and complete, and not a moment slower."""
    with Deaf() as deaf:
        dsns = {"good": server.dsn(db.info.dbname), "bad": deaf.dsn("dbname=app user=app")}
        with watched_all(dsns, timeout="300ms") as watching:
            poll(watching, "jobs", source="bad")  # one answer for all its collectors
            began = time.monotonic()
            poll(watching, source="good")
            assert time.monotonic() - began < 0.3
            assert value(watching, "source_up", source="bad", collector="jobs") == 0
            assert value(watching, "source_errors_total", source="bad", collector="sizes", reason="timeout") == 1
            assert value(watching, "source_up", source="good", collector="jobs") == 1
            assert value(watching, "queues", connection="good") == 0
