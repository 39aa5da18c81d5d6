"""The incidents of jobs that wait, brought about among real workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import psycopg

from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from ..patience import until
from ..world import value
from .supervised import Pool, Supervised, supervised

Incident = Callable[[Postgres], AbstractContextManager[Supervised]]

CALM = {"KEEP": "4", "CLASS": r"App\Jobs\SyncInventory"}  # how it was, and what nobody waits for
SMALL = {"max_connections": "40", "autovacuum_naptime": "6s"}
LATE = {"default": {"target_wait": 1}}  # soon
SHOPPERS = 20  # sessions of the web application
QUARTER_OF_AN_HOUR = 1000  # seconds, and a little more


@contextmanager
def flash_sale(postgres: Postgres) -> Iterator[Supervised]:
    """Jobs that nobody waits for fill the queue; somebody raised the workers from 4 to 12, and the shop is short of
    connections."""
    with (
        Postgres(postgres.binaries, SMALL) as small,
        Redis() as redis,
        supervised(small, Pool(processes=12), redis=redis, variables=CALM, queues=LATE) as now,
        ExitStack() as shop,
    ):
        for _ in range(SHOPPERS):
            shop.enter_context(psycopg.connect(now.laravel.dsn, application_name="web"))
        for _ in range(2):
            now.laravel.dispatch(n=500, seconds=1, _class="SyncInventory")
        now.laravel.start_dispatching(n=1000, rate=2, _class="SendInvoice")
        now.laravel.dispatch(n=5, conn="redis")
        now.sees("LaravelQueueWaitTooLong")
        yield now


@contextmanager
def bursts(postgres: Postgres) -> Iterator[Supervised]:
    """A scheduled command dispatches more jobs at once than two workers can do in time."""
    variables = {"MORE": "4", "PROMETHEUS": "http://prometheus.invalid"}  # a history of six hours is not to be had
    with supervised(postgres, Pool(), target_wait=1, variables=variables) as now:
        now.laravel.dispatch(n=60, seconds=0.5, _class="SyncInventory")
        now.sees("LaravelQueueWaitTooLong")
        yield now


@contextmanager
def undecided(postgres: Postgres) -> Iterator[Supervised]:
    """A queue without a target, and its oldest job is older than a quarter of an hour."""
    with supervised(postgres, Pool("exports", ("exports",), processes=1), variables={"MORE": "4"}) as now:
        now.laravel.dispatch("exports", n=20, seconds=1.5, _class="ImportCsv")
        with psycopg.connect(now.laravel.dsn) as connection:
            connection.execute("UPDATE jobs SET available_at = available_at - %s", (QUARTER_OF_AN_HOUR,))
        until(lambda: (oldest(now, "exports") or 0) > 900)
        yield now


@contextmanager
def dead_consumer(postgres: Postgres) -> Iterator[Supervised]:
    """A typo, in the database and in Redis: jobs for the queue `emials`, and workers that listen to `emails`."""
    emails, typo = Pool("emails", ("emails",)), {"QUEUE": "emials"}
    with Redis() as redis, supervised(postgres, emails, redis=redis, variables=typo, target_wait=1) as now:
        now.laravel.dispatch("emials", n=30, seconds=0.02, _class="SendInvoice")
        now.laravel.dispatch("emials", n=4, delay=1, conn="redis")
        now.sees("LaravelQueueWaitTooLong")
        yield now


@contextmanager
def starvation(postgres: Postgres) -> Iterator[Supervised]:
    """The workers look at `high` first, and it never empties."""
    shared = Pool("shared", ("high", "default"))
    with supervised(postgres, shared, queues=LATE, variables={"QUEUE": "default"}) as now:
        now.laravel.dispatch("high", n=8, seconds=0.4, _class="SyncInventory")
        now.laravel.start_dispatching("high", n=2000, rate=12, seconds=0.4, _class="SyncInventory")
        now.laravel.dispatch(n=40, _class="SendInvoice", seconds=0.05)
        now.sees("LaravelQueueWaitTooLong")
        yield now


@contextmanager
def no_workers(postgres: Postgres) -> Iterator[Supervised]:
    """A deploy set `--memory` too low: workers end as soon as they have started, until Supervisor gives them up."""
    pool = Pool(options={"memory": 1}, startsecs=10)  # on a busy machine PHP may need seconds for nothing
    with supervised(postgres, pool, target_wait=1) as now:
        now.laravel.dispatch(n=60, seconds=0.02, _class="SendInvoice")
        until(lambda: value(now.watching, "workers", pool="default") == 0, 30)
        yield now


@contextmanager
def growth(postgres: Postgres) -> Iterator[Supervised]:
    """More jobs arrive than two workers can do, and the database has room for more of them."""
    with supervised(postgres, Pool(), variables={"MORE": "6", "VMS": "3", "PROCESSES": "8"}) as now:
        now.laravel.dispatch(n=12, seconds=0.5)
        now.laravel.start_dispatching(n=1000, rate=5, seconds=0.5)
        until(lambda: busy(now) == 1)
        yield now


def oldest(now: Supervised, queue: str) -> float | None:
    """How long the oldest job of a queue has waited, as the exporter says."""
    return value(now.watching, "oldest_job_age_seconds", queue=queue)


def busy(now: Supervised) -> float:
    """The share of the workers that hold a job, as the exporter says."""
    return (value(now.watching, "jobs", state="reserved") or 0) / (value(now.watching, "workers") or 1)
