"""What tests share: a clock that is moved by hand, a jobs table, and a wired exporter to poll."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from prometheus_client.parser import text_string_to_metric_families

from exporter import app, config
from exporter.app import App
from exporter.board import Key, State
from exporter.demo import laravel
from exporter.sources.database.settings import Database
from exporter.timing import Clock


@dataclass
class HandClock:
    """Both clocks, moved by hand."""

    mono: float = 1000.0
    wall: float = 1_800_000_000.0
    waits: list[float] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.mono)

    def pass_(self, seconds: float) -> None:
        self.mono += seconds
        self.wall += seconds


def create_jobs(connection: psycopg.Connection[Any], table: str = "jobs") -> None:
    """Laravel's own migration of the jobs table; `table` is spelled as in SQL."""
    connection.execute(laravel.JOBS.replace('"jobs_queue_index"', "").replace('"jobs"', table))


def add_jobs(connection: psycopg.Connection[Any], *rows: tuple[str, int | None, int], table: str = "jobs") -> None:
    """Rows of (queue, reserved since seconds ago or None, available since seconds ago), by the database's clock."""
    connection.cursor().executemany(
        f"INSERT INTO {table} (queue, payload, attempts, reserved_at, available_at, created_at)"
        " SELECT %s, '{}', 0, now - %s, now - %s, now"
        " FROM (SELECT floor(extract(epoch FROM now()))::int AS now) AS clock",
        rows,
    )


def settings(dsn: str, **changes: Any) -> config.Config:
    """Settings of one connection called `database`."""
    connection = {"driver": "database", "dsn": dsn} | changes
    return config.parse({"web": {"listen": "127.0.0.1:0"}, "connections": {"database": connection}})


def database_of(settings: config.Config, name: str = "database") -> Database:
    """The settings of this connection, which is a database."""
    connection = settings.connections[name]
    assert isinstance(connection, Database)
    return connection


def watch(dsn: str, clock: Clock = Clock(), **changes: Any) -> App:
    """An exporter of one database, wired but not running: poll it with `poll`."""
    return app.build(settings(dsn, **changes), clock)


def poll(watching: App, *collectors: str, source: str = "database") -> None:
    """Poll these collectors of a source once, or all of them, due or not."""
    (poller,) = [poller for poller in watching.pollers if poller.source.name == source]
    for turn in poller.turns:
        if not collectors or turn.collector.name in collectors:
            poller.poll(turn)


def close(watching: App) -> None:
    for poller in watching.pollers:
        poller.source.close()


@contextmanager
def watched(dsn: str, clock: Clock = Clock(), **changes: Any) -> Iterator[App]:
    """`watch`, with its connections closed at the end."""
    watching = watch(dsn, clock, **changes)
    try:
        yield watching
    finally:
        close(watching)


Series = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def series(page: bytes) -> Series:
    """What a scrape reads, by Prometheus's own client: (name, sorted labels) → value."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def value(watching: App, name: str, **labels: str) -> float | None:
    """The value on the page now of the one series with this name and (at least) these labels; None if absent."""
    found = [
        number
        for (metric, pairs), number in series(watching.exposition.page("text")).items()
        if metric == f"laravel_queue_{name}" and labels.items() <= dict(pairs).items()
    ]
    assert len(found) <= 1, f"{name} {labels}: {len(found)} series"
    return found[0] if found else None


def states(watching: App, source: str = "database") -> dict[str, State]:
    """What the board says of each collector of a source, by name."""
    return {key.collector: state for key, state in watching.board.read().items() if key.source == source}


def state(watching: App, collector: str, source: str = "database") -> State:
    """What the board says of a collector."""
    return watching.board.read()[Key(source, collector)]
