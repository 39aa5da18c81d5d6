"""The runbooks about jobs that run twice, die, fail or take long, followed among real workers under Supervisor."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from tempfile import gettempdir
from typing import Any
from urllib.request import urlopen

import psycopg
import pytest
import redis

from exporter.demo.incidents.healthy import WELCOME
from exporter.demo.payload import payload
from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from ..patience import until
from .alerted import follow_until_resolved
from .blocks import read
from .followed import follow
from .stage import Stage
from .supervised import Pool, Supervised, supervised

PATIENCE = 60.0  # seconds that a busy machine may take until something is seen
MAIL = Pool("mail", ("mail",), stopwaitsecs=1, options={"timeout": 30})
PATIENT = replace(MAIL, retry_after=300)  # however long a busy machine takes, nobody takes a job over meanwhile
DEAF = Pool("vm-b", environment={"CACHE_DRIVER": "file", "CACHE_PATH": gettempdir()})  # its cache is its own


def killed(going_on: Supervised, by: str = "", seconds: float = 5) -> None:
    """A worker dies in the middle of a job: of SIGKILL, or of what is typed."""
    going_on.laravel.dispatch("mail", seconds=seconds)
    (started,) = going_on.laravel.truth.wait_for("started")
    if by:
        subprocess.run(by, shell=True, check=True, env=os.environ | dict(going_on.stage.variables))
    else:
        os.kill(started.pid, signal.SIGKILL)


def aged(going_on: Supervised, seconds: int) -> None:
    """Jobs that are held have been held for so much longer: nobody need wait for it."""
    typed(going_on, f"UPDATE jobs SET reserved_at = reserved_at - {seconds} WHERE reserved_at IS NOT NULL")


def typed(going_on: Supervised, statement: str) -> list[tuple[Any, ...]]:
    """What a statement gives in the application's database, if anything."""
    with psycopg.connect(going_on.laravel.dsn) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def metrics(going_on: Supervised) -> str:
    """The exposition."""
    with urlopen(f"{going_on.stage.variables['EXPORTER']}/metrics") as answer:
        return str(answer.read().decode())


@contextmanager
def beside_redis(stage: Stage) -> Iterator[Stage]:
    """The same with a Redis in which a job of the queue `mail` is past `retry_after`."""
    with Redis() as server, redis.Redis(port=server.port) as client:
        job = payload(WELCOME, "mail", Random(0), int(time.time()))
        client.zadd("laravel_database_queues:mail:reserved", {job: time.time() - 20})
        yield replace(stage, variables=dict(stage.variables) | {"REDIS": server.url()})


def test_double_run_ends_with_a_longer_retry_after(postgres18: Postgres) -> None:
    """A mail that outlasts `retry_after` is sent twice; with a longer one each mail is sent once."""
    with supervised(postgres18, Pool("mail", ("mail",), processes=5, retry_after=3)) as going_on:
        going_on.laravel.start_dispatching("mail", n=200, rate=0.5, seconds=5)
        until(lambda: "was handed out again" in going_on.stage.page, PATIENCE)
        follow(read("LaravelQueueJobsReservedTwice"), going_on.stage)
        truth = going_on.laravel.truth
        before = len(truth.events("started"))
        runs = Counter(event.id for event in truth.wait_for("started", before + 5, PATIENCE)[before:])
        assert set(runs.values()) == {1}


def test_job_of_a_killed_worker_is_given_back(postgres18: Postgres) -> None:
    """A worker is killed in the middle of a job; once that is given back, another worker does it."""
    with supervised(postgres18, PATIENT) as going_on:
        killed(going_on, seconds=0.8)
        aged(going_on, 75)
        going_on.sees("LaravelQueueOrphanedReservations")
        follow(read("LaravelQueueOrphanedReservations"), going_on.stage)
        going_on.laravel.truth.wait_for("processed")


def test_rerun_is_told_from_a_double_run(postgres18: Postgres) -> None:
    """After the death of its worker and `retry_after` the job was started again; one job is taken out, not its like."""
    with supervised(postgres18, PATIENT) as going_on:
        killed(going_on, seconds=20)  # so that its second run cannot be missed
        aged(going_on, 75)
        going_on.sees("LaravelQueueOrphanedReservations")
        aged(going_on, 300)
        until(lambda: "was handed out again" in going_on.stage.page, PATIENCE)
        going_on.laravel.dispatch("mail", n=2, delay=600)  # of one that killed three workers and one that did not
        typed(going_on, "UPDATE jobs SET attempts = 3, reserved_at = available_at - 680 WHERE reserved_at IS NULL")
        follow(read("LaravelQueueJobsRerun"), going_on.stage)
        assert typed(going_on, "SELECT exception FROM failed_jobs") == [("taken out by hand",)]


def test_expired_job_is_taken_once_workers_run(postgres18: Postgres) -> None:
    """The pool was stopped in the middle of a job; when it is started, the job that expired is taken."""
    with supervised(postgres18, MAIL) as going_on:
        killed(going_on, "supervisorctl stop mail:*")
        aged(going_on, 110)
        going_on.sees("LaravelQueueReservationsExpired")
        with beside_redis(going_on.stage) as stage:
            follow_until_resolved(read("LaravelQueueReservationsExpired"), stage)
        going_on.laravel.truth.wait_for("processed")


@pytest.mark.parametrize("name", ["LaravelQueueFailureRatioHigh", "LaravelQueueFailureRatioElevated"])
def test_failed_jobs_are_found_and_tried_again(postgres18: Postgres, name: str) -> None:
    """Jobs fail for good; the page finds their class and exception, and puts them back."""
    with supervised(postgres18, replace(MAIL, options={"tries": 1})) as going_on:
        going_on.laravel.dispatch("mail", mode="fail", class_="SendInvoice", seconds=0)
        until(lambda: "SendInvoice" in metrics(going_on), PATIENCE)  # a class is born at 0
        going_on.laravel.dispatch("mail", n=40, mode="fail", class_="SendInvoice", seconds=0)
        follow(read(name), going_on.stage)


def test_retry_storm_is_set_aside(postgres18: Postgres) -> None:
    """Over a hundred jobs wait for another try; set aside, they hold nobody up, and can be had back."""
    with supervised(postgres18, MAIL, variables={"CLASS": r"App\Jobs\SyncInventory"}) as going_on:
        going_on.laravel.dispatch("mail", n=120, mode="release:600", class_="SyncInventory", seconds=0)
        going_on.sees("LaravelQueueRetryStorm")
        follow_until_resolved(read("LaravelQueueRetryStorm"), going_on.stage)


def test_restart_of_the_pool_ends_old_code(postgres18: Postgres) -> None:
    """One VM has a cache of its own and does not hear `queue:restart`; restarted, it has the new code."""
    with supervised(postgres18, DEAF, replace(MAIL, name="vm-a")) as going_on:
        both_seen = re.compile(r"/vm-a +2 .*/vm-b +2 ", re.DOTALL)
        until(lambda: both_seen.search(going_on.stage.page), PATIENCE)
        going_on.asks_again("signals")  # or a worker that began after its last look would not count as outdated
        going_on.laravel.restart()
        going_on.sees("LaravelQueueWorkersOutdated")
        until(lambda: re.search(r"/vm-a +2 +0", going_on.stage.page), PATIENCE)
        follow_until_resolved(read("LaravelQueueWorkersOutdated"), going_on.stage)


def test_long_jobs_are_seen_before_they_run_twice(postgres18: Postgres) -> None:
    """Jobs take more than half of `retry_after`, and the page raises it without killing any."""
    with supervised(postgres18, replace(MAIL, retry_after=10, options={"timeout": 9})) as going_on:
        going_on.laravel.start_dispatching("mail", n=200, rate=0.4, seconds=6)
        until(lambda: re.search('long_reservations_total.*SleepJob.*"} [1-9]', metrics(going_on)), PATIENCE)
        follow(read("LaravelQueueDurationNearRetryAfter"), going_on.stage)
        assert len(going_on.laravel.truth.events("started")) - len(going_on.laravel.truth.events("processed")) <= 2


def test_timeouts_are_put_in_order(postgres18: Postgres) -> None:
    """A class and a pool have timeouts over `retry_after`; the page finds both."""
    with supervised(postgres18, replace(MAIL, options={"timeout": 100})) as going_on:
        going_on.laravel.dispatch("mail", n=4, class_="ImportCsv", seconds=20)
        until(lambda: going_on.stage.page.count("not below retry_after") == 2, PATIENCE)
        follow(read("LaravelQueueTimeoutExceedsRetryAfter"), going_on.stage)
