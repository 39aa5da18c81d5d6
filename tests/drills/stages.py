"""Where incidents are brought about: among real workers where one can be had, else in the demo's world."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from tempfile import gettempdir

import psycopg

from exporter.demo import run
from exporter.demo.incidents import HEALTHY, INCIDENTS
from exporter.demo.incidents.traps import SLOW_COMMITS
from exporter.demo.postgres import Postgres

from ..demo.rehearsal import Servers
from ..laravel.laravel import bent
from ..patience import until
from ..runbooks.on_aws import NEVER, on_aws
from ..runbooks.on_redis import on_redis
from ..runbooks.stage import Stage, on_postgres
from ..runbooks.supervised import Pool, Supervised, supervised
from ..runbooks.waits import Incident
from .shortened import INTERVAL

AStage = Callable[[Postgres], AbstractContextManager[Stage]]

AHEAD = 40  # seconds
PATIENCE = 60.0  # seconds that a busy machine may take until something is seen
MAIL = Pool("mail", ("mail",), stopwaitsecs=1, options={"timeout": 30})
DEAF = Pool("vm-b", environment={"CACHE_DRIVER": "file", "CACHE_PATH": gettempdir()})  # its cache is its own
SLOW = replace(HEALTHY, server=SLOW_COMMITS | {"commit_delay": "100000"})  # microseconds
COPIES = """
INSERT INTO jobs (queue, attempts, reserved_at, available_at, created_at, payload)
SELECT queue, 0, NULL, created_at, created_at, payload FROM jobs, generate_series(1, 3000)
 WHERE available_at > created_at
"""


def among_workers(incident: Incident, **variables: str) -> AStage:
    """An incident of real workers, with more variables for the page that ends it."""

    @contextmanager
    def stage(postgres: Postgres) -> Iterator[Stage]:
        with incident(postgres) as now:
            yield replace(now.stage, variables={**now.stage.variables, **variables})

    return stage


def world(name: str, duty: float = run.DUTY, **variables: str) -> AStage:
    """An incident of the demo on PostgreSQL; the exporter may take `duty` of its time."""

    @contextmanager
    def stage(postgres: Postgres) -> Iterator[Stage]:
        servers = Servers(postgres.binaries)
        with servers.started, on_postgres(servers, INCIDENTS[name].plan, INTERVAL, duty) as now:
            yield replace(now, variables={**now.variables, **variables})

    return stage


def horizon(name: str, queue: str = "default") -> AStage:
    """An incident of the demo with Redis and Horizon."""
    return lambda _: on_redis(name, queue)


def fargate(name: str, tasks: int = 1, step: float = NEVER) -> AStage:
    """An incident of the demo on SQS and Fargate, where so many tasks help."""
    return lambda _: on_aws(name, tasks, step)


def typed(now: Supervised, statement: str) -> None:
    """Do this in the application's database."""
    with psycopg.connect(now.laravel.dsn) as connection:
        connection.execute(statement.encode())


@contextmanager
def double_run(postgres: Postgres) -> Iterator[Supervised]:
    """A mail takes 5 s, and `retry_after` is 3 s."""
    pool = Pool("mail", ("mail",), processes=5, retry_after=3)
    with supervised(postgres, pool, interval=INTERVAL) as now:
        now.laravel.start_dispatching("mail", n=1000, rate=0.5, seconds=5)
        yield now


@contextmanager
def stale_code(postgres: Postgres) -> Iterator[Supervised]:
    """A deploy calls `queue:restart`, and one VM does not hear of it."""
    with supervised(postgres, DEAF, replace(MAIL, name="vm-a"), interval=INTERVAL) as now:
        until(lambda: all(f"/{pool} " in now.stage.page for pool in ("vm-a", "vm-b")), PATIENCE)
        now.laravel.restart()
        yield now


@contextmanager
def short_retry_after(postgres: Postgres) -> Iterator[Supervised]:
    """A class and a pool have timeouts over `retry_after`; nothing has run twice yet."""
    with supervised(postgres, replace(MAIL, options={"timeout": 100}), interval=INTERVAL) as now:
        now.laravel.dispatch("mail", n=40, class_="ImportCsv", seconds=20)
        yield now


@contextmanager
def sigkill(postgres: Postgres) -> Iterator[Supervised]:
    """A worker is killed in the middle of a job, and the timeout of that is over; `retry_after` is far away."""
    with supervised(postgres, replace(MAIL, retry_after=600), interval=INTERVAL) as now:
        now.laravel.dispatch("mail", seconds=5)
        (started,) = now.laravel.truth.wait_for("started")
        os.kill(started.pid, signal.SIGKILL)
        typed(now, "UPDATE jobs SET reserved_at = reserved_at - 75")
        yield now


@contextmanager
def clock_skew(postgres: Postgres) -> Iterator[Supervised]:
    """The clock of one VM is ahead."""
    with supervised(postgres, Pool("vm-b", environment=bent(AHEAD)), Pool("vm-a"), interval=INTERVAL) as now:
        now.laravel.start_dispatching(n=3000, rate=2, seconds=1.5)  # so that some are held at every look
        yield now


@contextmanager
def no_skip_locked(postgres: Postgres) -> Iterator[Supervised]:
    """Workers were told a version that cannot skip what is locked, where a commit takes a while."""
    servers = Servers(postgres.binaries)
    pool = Pool(processes=10, environment={"DB_VERSION": "9.4"})
    with servers.started, supervised(servers.for_(SLOW), pool, interval=INTERVAL) as now:
        now.laravel.dispatch(n=1, seconds=0.01, delay=36_000)
        typed(now, COPIES)
        yield now


@contextmanager
def retry_storm(postgres: Postgres) -> Iterator[Supervised]:
    """Jobs find their partner busy, and wait for another try."""
    with supervised(postgres, MAIL, interval=INTERVAL) as now:
        now.laravel.dispatch("mail", n=120, mode="release:600", class_="SyncInventory", seconds=0)
        yield now
