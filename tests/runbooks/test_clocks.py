"""The runbooks about clocks, followed where one machine's clock is 40 s ahead of the others'."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from exporter import app, config
from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from ..clock.stepped import stepped_postgres
from ..laravel.laravel import bent
from ..prometheus.prometheus import Prometheus
from .alerted import resolved
from .blocks import read
from .followed import follow
from .stage import Stage, serving
from .supervised import Pool, supervised

AHEAD = 40  # seconds


def test_workers_of_a_fast_machine_are_stopped(postgres18: Postgres) -> None:
    """Jobs are reserved by a clock that is ahead until the workers of that VM are stopped."""
    pools = Pool("vm-b", environment=bent(AHEAD)), Pool("vm-a")
    with supervised(postgres18, *pools) as going_on:
        going_on.laravel.start_dispatching(n=300, rate=2, seconds=1.5)
        going_on.sees("LaravelQueueWorkerClockAhead")
        follow(read("LaravelQueueWorkerClockAhead"), going_on.stage)


def test_the_clock_that_is_wrong_is_found() -> None:
    """The database's machine is ahead, Redis's is not; once its clock is set right, the alert resolves."""
    with stepped_postgres() as stepped, Redis() as redis, beside(stepped.server, redis) as stage:
        stepped.set_clock(AHEAD)
        target = stage.variables["EXPORTER"].removeprefix("http://")
        with Prometheus(target) as prometheus, resolved(prometheus, "LaravelQueueClockOffset"):
            follow(read("LaravelQueueClockOffset"), stage)
            stepped.set_clock(0)


@contextmanager
def beside(server: Postgres, redis: Redis) -> Iterator[Stage]:
    """An application at work in a database, and an exporter that watches that and this Redis."""
    with supervised(server, Pool()) as going_on:
        connections = {
            "database": {"driver": "database", "dsn": going_on.laravel.dsn, "interval": 1},
            "redis": {"driver": "redis", "url": redis.url(), "prefix": "laravel_database_"},
        }
        watching = app.build(config.parse({"connections": connections}))
        with serving(watching) as address:
            variables = dict(going_on.stage.variables) | {"EXPORTER": address, "REDIS": redis.url()}
            yield replace(going_on.stage, variables=variables, watching=watching)
