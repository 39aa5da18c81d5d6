"""The blocks of the runbooks about PostgreSQL, run in the incident that each page is for, until its alert resolves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from exporter.demo.incidents import HEALTHY, INCIDENTS
from exporter.demo.incidents.traps import SLOW_COMMITS
from exporter.demo.postgres import Postgres

from ..demo.rehearsal import Servers
from ..patience import until
from . import troubles
from .alerted import follow_until_resolved
from .blocks import Page, read
from .followed import follow
from .stage import Stage, on_postgres
from .supervised import Pool, supervised

COPIES = """
INSERT INTO jobs (queue, attempts, reserved_at, available_at, created_at, payload)
SELECT queue, 0, NULL, created_at, created_at, payload FROM jobs, generate_series(1, 1500)
 WHERE available_at > created_at
"""
FAST = 1.0  # seconds between two polls
ALL = 1.0  # of the database's time: what is dear may be asked again at once, so that one sees that it is cured
ROOM = {"max_connections": "16"}  # of which three are kept for a superuser

SLOW = replace(HEALTHY, server=SLOW_COMMITS | {"commit_delay": "100000"})  # microseconds

BY_HAND = {  # the page, and what is done to a healthy world
    "LaravelQueueAutovacuumNotRunning": troubles.never_vacuumed,
    "LaravelQueueAutovacuumDisabled": troubles.autovacuum_disabled,
}
DEAD, DELAYED, OTHERS, BUSY = "Dead rows", "Delayed jobs", "Jobs of another queue", "The database"
POPS = {"dead-head": DEAD, "delayed-head": DELAYED, "database-bound": OTHERS}  # incident → what the page calls it
TABLE, WORKERS = "Somebody has the table", "Workers lock without SKIP LOCKED"


@pytest.fixture(scope="module")
def servers(postgres18: Postgres) -> Iterator[Servers]:
    """A server for each kind that an incident asks for."""
    servers = Servers(postgres18.binaries)
    with servers.started:
        yield servers


@pytest.fixture(scope="module")
def small_server(postgres18: Postgres) -> Iterator[Postgres]:
    """A server with few connections."""
    with Postgres(postgres18.binaries, ROOM) as server:
        yield server


def test_transaction_that_is_open_for_long_is_ended(servers: Servers) -> None:
    """Who holds the horizon is ended, nobody else is, and vacuum comes through; the rule itself takes 15 minutes."""
    with (
        on_postgres(servers, INCIDENTS["bloat"].plan, FAST) as stage,
        troubles.session(stage, "console") as somebody_else,
    ):
        somebody_else.execute("BEGIN")
        follow(read("LaravelQueueXminHeld"), stage)
        somebody_else.execute("COMMIT")


def test_dead_rows_are_removed(servers: Servers) -> None:
    """Where a transaction keeps dead rows, ending it and a vacuum end the alert."""
    with on_postgres(servers, INCIDENTS["bloat"].plan, FAST) as stage:
        follow_until_resolved(read("LaravelQueueDeadTuplesHigh"), stage)


@pytest.mark.parametrize("name", BY_HAND)
def test_healthy_world_is_healthy_again(servers: Servers, name: str) -> None:
    """What was done to it by hand is found, and undone by what the page says."""
    with on_postgres(servers, HEALTHY, FAST) as stage, BY_HAND[name](stage):
        follow_until_resolved(read(name), stage)


def test_table_shrinks_while_workers_are_stopped(postgres18: Postgres) -> None:
    """Hundreds of megabytes for a row: a vacuum leaves them there, VACUUM FULL without workers does not."""
    with supervised(postgres18, Pool(processes=2)) as going_on, troubles.bloated(going_on.stage):
        follow_until_resolved(read("LaravelQueueTableBloated"), going_on.stage)


@contextmanager
def sale(server: Postgres) -> Iterator[Stage]:
    """Somebody has raised the workers because of a backlog."""
    pool = Pool(processes=9, options={"sleep": 1})
    with supervised(server, pool, variables={"KEEP": "4"}) as going_on:
        until(lambda: "default 9" in going_on.stage.page)
        yield going_on.stage


def test_fewer_workers_leave_connections_to_others(small_server: Postgres) -> None:
    """With the old number of workers the connections are below their limit again."""
    with sale(small_server) as stage, troubles.session(stage, "web", "laravel"):
        follow_until_resolved(read("LaravelQueueConnectionsHigh"), stage)


def test_whoever_was_refused_gets_a_connection_again(small_server: Postgres) -> None:
    """A superuser still gets in where everybody else is refused, and can see whose they are."""
    with sale(small_server) as stage, troubles.no_connection_left(stage):
        follow_until_resolved(read("LaravelQueueConnectionsExhausted"), stage)
        with troubles.session(stage, "web", "laravel") as customer:
            customer.execute("SELECT")


@contextmanager
def without_skip_locked(servers: Servers) -> Iterator[Stage]:
    """Real workers who were told a version that cannot skip what is locked, where a commit takes a while."""
    pool = Pool(processes=10, environment={"DB_VERSION": "9.4"})
    with supervised(servers.for_(SLOW), pool, variables={"KEEP": "6"}) as going_on:
        going_on.laravel.dispatch(n=1, seconds=0.01, delay=3600)
        with troubles.session(going_on.stage, "artisan") as artisan:
            artisan.execute(COPIES)
        going_on.sees("LaravelQueueLockWaits")
        yield going_on.stage


def test_nobody_waits_for_a_lock(servers: Servers) -> None:
    """A migration and workers without SKIP LOCKED are told apart by the same looks, each with its own cure."""
    page, kept = read("LaravelQueueLockWaits"), set[str]()
    with on_postgres(servers, HEALTHY, FAST) as stage:
        for trouble in (troubles.migration_left_open, troubles.migration_in_line):
            with trouble(stage):
                kept |= follow_until_resolved(page.without(WORKERS), stage)
    with without_skip_locked(servers) as stage:
        kept |= follow_until_resolved(page.without(TABLE), stage)
    assert kept == promises(page)


def test_pop_is_fast(servers: Servers) -> None:
    """What makes a pop slow is told apart by the same looks, and each has its own cure."""
    page, kept = read("LaravelQueuePopSlow"), set[str]()
    for incident, cause in POPS.items():
        with on_postgres(servers, INCIDENTS[incident].plan, FAST, ALL) as stage:
            others = {DEAD, DELAYED, OTHERS, BUSY} - {cause}
            kept |= follow_until_resolved(page.without(*others), stage)
    assert kept == promises(page.without(BUSY))


def promises(page: Page) -> set[str]:
    """All that a page says will be printed."""
    return {promised for block in page.blocks if not block.excused for promised in block.prints}
