"""The runbooks about jobs that run twice, die, fail or take long, followed among real workers under Supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import psycopg
import redis

from exporter.demo.incidents.healthy import WELCOME
from exporter.demo.payload import payload
from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from ..patience import until
from .blocks import read
from .followed import follow
from .stage import Stage
from .supervised import Pool, Supervised, supervised

MAIL = Pool("mail", ("mail",), stopwaitsecs=1, options={"timeout": 30})


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
    with psycopg.connect(going_on.laravel.dsn) as connection:
        connection.execute("UPDATE jobs SET reserved_at = reserved_at - %s WHERE reserved_at IS NOT NULL", [seconds])


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
        until(lambda: "was handed out again" in going_on.stage.page, 20)
        follow(read("LaravelQueueJobsReservedTwice"), going_on.stage)
        truth = going_on.laravel.truth
        known = len(truth.events("started", "processed"))
        until(lambda: len([event for event in truth.events("started", "processed")[known:] if event.name == "processed"]) > 1, 20)
        runs = Counter(event.id for event in truth.events("started", "processed")[known:] if event.name == "started")
        assert set(runs.values()) == {1}


def test_job_of_a_killed_worker_is_given_back(postgres18: Postgres) -> None:
    """A worker is killed in the middle of a job; once that is given back, another worker does it."""
    with supervised(postgres18, MAIL) as going_on:
        killed(going_on, seconds=0.8)
        aged(going_on, 75)
        going_on.sees("LaravelQueueOrphanedReservations")
        follow(read("LaravelQueueOrphanedReservations"), going_on.stage)
        going_on.laravel.truth.wait_for("processed")


def test_rerun_is_told_from_a_double_run(postgres18: Postgres) -> None:
    """After the death of its worker and `retry_after` the job was started again, and everything points to the death."""
    with supervised(postgres18, MAIL) as going_on:
        killed(going_on)
        aged(going_on, 75)
        going_on.sees("LaravelQueueOrphanedReservations")
        aged(going_on, 20)
        until(lambda: "was handed out again" in going_on.stage.page)
        follow(read("LaravelQueueJobsRerun"), going_on.stage)


def test_expired_job_is_taken_once_workers_run(postgres18: Postgres) -> None:
    """The pool was stopped in the middle of a job; when it is started, the job that expired is taken."""
    with supervised(postgres18, MAIL) as going_on:
        killed(going_on, "supervisorctl stop mail:*")
        aged(going_on, 110)
        going_on.sees("LaravelQueueReservationsExpired")
        with beside_redis(going_on.stage) as stage:
            follow(read("LaravelQueueReservationsExpired"), stage)
        going_on.laravel.truth.wait_for("processed")
