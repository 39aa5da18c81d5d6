"""The world's workers beside real ones, as PostgreSQL sees them."""

from __future__ import annotations

import re
from random import Random

import psycopg
import pytest
from psycopg import sql

from exporter.demo import laravel
from exporter.demo.payload import payload
from exporter.demo.plan import Arrivals, Job, Plan, Pool
from exporter.demo.postgres import Postgres
from exporter.demo.worker import Worker

from ..laravel.laravel import Laravel
from ..patience import until

POOL = Pool("default", ("high", "default"), workers=1, tries=1)
STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]+): (.+)")
SLEEP_JOB = "App\\Jobs\\SleepJob"  # a class that the real application has


class Ear:
    """Hears what one database is told."""

    def __init__(self, server: Postgres, dsn: str) -> None:
        self.log = server.log
        with psycopg.connect(dsn, autocommit=True) as connection:
            for setting in ("log_statement = 'all'", "log_min_messages = 'log'"):
                name = sql.Identifier(connection.info.dbname)
                connection.execute(sql.SQL("ALTER DATABASE {} SET ").format(name) + sql.SQL(setting))
        self.began = 0
        self.transactions()

    def transactions(self) -> list[str]:
        """Each different transaction since the last look, with what follows it; how the cache is read is left out."""
        new = self.log.read_bytes()[self.began :]
        self.began += len(new)
        told = [
            sent
            for sent in STATEMENT.findall(new.decode())
            if "jobs" in sent or sent in ("BEGIN", "COMMIT", "ROLLBACK")
        ]
        return list(dict.fromkeys(sent.strip("; ") for sent in "; ".join(told).split("BEGIN")[1:]))


@pytest.mark.parametrize(
    ("mode", "job", "last"),
    [
        ("ok", Job(SLEEP_JOB, (0, 0)), "processed"),
        ("fail", Job(SLEEP_JOB, (0, 0), fails=1.0), "failed"),
        ("release:60", Job(SLEEP_JOB, (0, 0), releases=1.0), "processed"),
    ],
)
def test_statements_are_laravels(real: Laravel, postgres_debian: Postgres, mode: str, job: Job, last: str) -> None:
    """Taking, finishing, failing, releasing: the same statements in the same transactions as a real worker's."""
    real.dispatch(seconds=0, mode=mode)
    ear = Ear(postgres_debian, real.dsn)
    real.work(",".join(POOL.queues))
    real.truth.wait_for(last)
    real.stop()
    theirs = ear.transactions()
    with psycopg.connect(real.dsn, autocommit=True, prepare_threshold=None) as connection:
        laravel.push(connection, "default", payload(job, "default", Random(1), 1), 1)
        ear.transactions()
        plan = Plan({}, arrivals=(Arrivals("default", job, per_second=0),))
        worker = Worker(plan, POOL, connection, lambda: 2.0, lambda _: None, Random(1))
        assert [worker.turn(), worker.turn()] == [True, False]
    assert len(theirs) == 3  # nothing for me; this one; done with it
    assert ear.transactions() == theirs


def test_real_worker_runs_the_worlds_jobs(real: Laravel) -> None:
    """A job that the world dispatched is run by a real worker, under the class and the id that the world gave it."""
    with psycopg.connect(real.dsn, autocommit=True) as connection:
        text = payload(Job("App\\Jobs\\SendInvoice"), "default", Random(1), 1)
        id_ = laravel.push(connection, "default", text, 1)
        real.work()
        (done,) = real.truth.wait_for("processed")
        until(lambda: connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,))
    assert (done.id, done.facts["class"]) == (id_, "App\\Jobs\\SendInvoice")


def test_worlds_worker_runs_real_jobs(real: Laravel) -> None:
    """A job that a real application dispatched is taken and finished by a worker of the world."""
    (dispatched,) = real.dispatch()
    with psycopg.connect(real.dsn, autocommit=True) as connection:
        worker = Worker(Plan({}), POOL, connection, lambda: 2e9, lambda _: None, Random(1))
        record = worker.pop("default")
        assert record
        assert record.id == dispatched.id
        worker.process(record)
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
