"""What the exporter shows of each incident, and of a world in which nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest

from exporter import app, config
from exporter.app import App
from exporter.demo import run
from exporter.demo.incidents import HEALTHY, INCIDENTS
from exporter.demo.plan import Plan
from exporter.demo.postgres import Postgres
from exporter.demo.world import World
from exporter.status import report, text

from ..patience import until
from ..world import close, poll, value

WITHIN = 20.0  # seconds; only a slow machine needs them
Rehearse = Callable[[Plan], AbstractContextManager[tuple[World, App]]]


@pytest.fixture(scope="module")
def small_server() -> Iterator[Postgres]:
    """A server with as few connections as the incident of connections has; enough for all others."""
    settings = run.SERVER | dict(INCIDENTS["flash-sale"].plan.server)
    assert all(set(incident.plan.server) <= set(settings) for incident in INCIDENTS.values())
    with Postgres(settings=settings) as server:
        yield server


@pytest.fixture
def rehearse(small_server: Postgres) -> Rehearse:
    """Brings a plan to life, with an exporter beside it that logs in as the demo's does."""

    @contextmanager
    def rehearse(plan: Plan) -> Iterator[tuple[World, App]]:
        world = World(plan, small_server.dsn(run.APPLICATION, run.APPLICATION))
        dsn = small_server.dsn(run.APPLICATION, run.EXPORTER)
        watching = app.build(config.parse(run.exporter_settings(plan, dsn)))
        try:
            with world:
                run.create(small_server, world)
                run.populate(world, lambda _: None)
                yield world, watching
        finally:
            close(watching)
            with psycopg.connect(small_server.dsn(), autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {run.APPLICATION} WITH (FORCE)")
                connection.execute(f"DROP ROLE {run.APPLICATION}, {run.EXPORTER}")

    return rehearse


def over(watching: App) -> dict[str, str]:
    """What is over its limit: where → what the status page says. Everything is polled anew."""
    for poller in watching.pollers:
        poll(watching, source=poller.source.name)
    return {finding.where: finding.says for finding in report(watching.board).findings}


def shown(watching: App, name: str, **labels: str) -> float:
    """The value of a series that must be there."""
    number = value(watching, name, connection="database", **labels)
    assert number is not None
    return number


def jobs(watching: App, queue: str, state: str) -> float:
    """How many jobs of the queue are in this state."""
    return shown(watching, "jobs", queue=queue, state=state)


def test_healthy_world_is_quiet(rehearse: Rehearse) -> None:
    """In a healthy world jobs come and go, and nothing is over, or near, any limit."""
    with rehearse(HEALTHY) as (_, watching):
        assert over(watching) == {}
        until(lambda: over(watching) == {} and shown(watching, "table_rows_deleted_total", table="jobs") > 10, WITHIN)
        states = {key.collector: state for key, state in watching.board.read().items() if key.source == "database"}
        assert [name for name, state in states.items() if not state.up or state.notes] == []  # its few rights will do
        pools = {pool.name: shown(watching, "workers", pool=pool.name) for pool in HEALTHY.pools}
        assert pools == {pool.name: pool.workers for pool in HEALTHY.pools}
        assert shown(watching, "database_connections", pool="web", state="idle") == HEALTHY.web_sessions
        assert text(report(watching.board)).startswith("NOTHING IS OVER ITS LIMIT")


def test_bloat(rehearse: Rehearse) -> None:
    """A transaction left open: dead rows above the trigger in a big table of few rows, and no vacuum helps."""
    with rehearse(INCIDENTS["bloat"].plan) as (world, watching):
        found = over(watching)
        assert list(found) == ["database/jobs"]
        assert "20,0" in found["database/jobs"]
        assert found["database/jobs"].endswith("dead tuples, vacuum at 5,000")
        assert shown(watching, "table_size_bytes", table="jobs", part="heap") > 10_000_000
        with world.connect("dba") as connection:
            connection.execute("VACUUM jobs")
        assert list(over(watching)) == ["database/jobs"]
        held = shown(watching, "database_oldest_transaction_age_seconds", holder="idle_in_transaction")
        until(
            lambda: (
                over(watching)
                and shown(watching, "database_oldest_transaction_age_seconds", holder="idle_in_transaction") > held + 1
            )
        )
        assert sum(jobs(watching, "default", state) for state in ("ready", "reserved")) < 100


def test_flash_sale(rehearse: Rehearse) -> None:
    """A backlog and raised workers: connections near the limit, by pool, and the oldest job over its target."""
    plan = INCIDENTS["flash-sale"].plan
    with rehearse(plan) as (_, watching):
        found = over(watching)
        assert list(found) == ["database/default", "database"]
        assert found["database/default"].startswith(("oldest job 25m", "oldest job 24m"))
        assert found["database"].startswith("89 % of the connections in use")
        assert jobs(watching, "default", "ready") > 19_000
        until(lambda: over(watching) and jobs(watching, "default", "reserved") == 14, WITHIN)
        assert shown(watching, "workers", pool="default") == 14
        assert shown(watching, "database_connections", pool="web", state="idle") == 13


def test_starvation(rehearse: Rehearse) -> None:
    """With --queue=high,default and a `high` that never empties, jobs are done while `default` gets older and older."""
    with rehearse(INCIDENTS["starvation"].plan) as (_, watching):
        assert list(over(watching)) == ["database/default"]
        age, ready = shown(watching, "oldest_job_age_seconds", queue="default"), jobs(watching, "default", "ready")
        done = shown(watching, "table_rows_deleted_total", table="jobs")
        until(lambda: over(watching) and shown(watching, "table_rows_deleted_total", table="jobs") > done + 10, WITHIN)
        assert shown(watching, "oldest_job_age_seconds", queue="default") > age > 900 - 1
        assert jobs(watching, "default", "ready") >= ready
        assert jobs(watching, "default", "reserved") == 0
        assert jobs(watching, "high", "reserved") >= 1


def test_dead_consumer(rehearse: Rehearse) -> None:
    """A misspelt queue is found: its jobs wait longer than any may, none is ever held, and more arrive."""
    with rehearse(INCIDENTS["dead-consumer"].plan) as (_, watching):
        found = over(watching)
        assert list(found) == ["database/emials"]
        assert found["database/emials"].startswith("oldest job 15m")
        until(lambda: over(watching) and jobs(watching, "emials", "ready") > 1800, WITHIN)
        assert jobs(watching, "emials", "reserved") == 0
        assert shown(watching, "target_wait_seconds", queue="emials") == 60


@pytest.mark.parametrize("name", INCIDENTS)
def test_incident_says_where_to_look(name: str) -> None:
    """Each incident has a sentence on what happens and at least one line on where one sees it."""
    incident = INCIDENTS[name]
    assert incident.description.endswith(".")
    assert incident.look_at
    assert all(line.isprintable() for line in incident.look_at)
