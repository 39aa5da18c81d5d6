"""The runbooks about the exporter: it is killed, kept out or forgotten for real, and the page leads out of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.demo import run
from exporter.demo.incidents import HEALTHY
from exporter.demo.incidents.healthy import REPORT
from exporter.demo.plan import Backlog
from exporter.demo.postgres import Postgres
from exporter.demo.prometheus import JOB
from exporter.demo.redis import Redis
from exporter.errors import REASONS
from exporter.sources.clock.databases import Databases
from exporter.sources.clock.ntp import Ntp
from exporter.sources.database import source as database
from exporter.sources.redis import source as redis
from exporter.sources.sqs import source as sqs

from ..commands.running import Serving, settings_file
from ..demo.rehearsal import Servers
from ..patience import until
from ..prometheus.prometheus import Prometheus
from ..world import poll, value, watched
from .alerted import SEEN_HEALED, follow_until_resolved, holds, resolved
from .blocks import Page, read
from .followed import ENDING, follow
from .stage import Stage, on_postgres
from .test_pages import section
from .troubles import revoked, table_locked

FAST = 1.0  # seconds between two polls
POLLS = 6  # that tell the pace: it is that of the last four, and the first one had to connect
SLOW = 2.0  # times its interval: from here on it is LaravelQueuePollSlow
MANY = replace(HEALTHY, backlogs=(Backlog("reports", REPORT, 200_000, oldest=300),))
OWN = str(Path(sys.executable).parent)  # where `queue-exporter` is


@pytest.fixture(scope="module")
def servers(postgres18: Postgres) -> Iterator[Servers]:
    """A server for each kind that an incident asks for, which may be stopped."""
    servers = Servers(postgres18.binaries)
    with servers.started:
        yield servers


def kept_out(stage: Stage, **more: str) -> Stage:
    """The same for a reader who logs in as the exporter does."""
    own = {"PGUSER": run.EXPORTER, "DBA": "postgres", "FAILED_TABLE": "failed_jobs"}
    return replace(stage, variables={**stage.variables, **own, **more})


def test_exporter_sees_the_jobs_again(servers: Servers, redis_server: Redis) -> None:
    """What keeps it from seeing them is told by its reason, and a grant that was lost is given again."""
    page, kept = read("LaravelQueueSourceDown"), set[str]()
    with on_postgres(servers, HEALTHY, FAST) as world:
        stage = kept_out(world, REDIS=f"redis://127.0.0.1:{redis_server.port}/0")
        with revoked("jobs")(stage):
            kept |= follow_until_resolved(page, stage)
        with watching(stage) as prometheus:
            for trouble in (table_locked(stage), stopped(servers.for_(HEALTHY))):
                with trouble:
                    until(lambda: holds(prometheus, page.name), ENDING)
                    kept |= follow(page.without("Mitigation"), stage)
                until(lambda: not holds(prometheus, page.name), SEEN_HEALED)
    assert kept == {promised for block in page.blocks for promised in block.prints}


def watching(stage: Stage) -> Prometheus:
    """A Prometheus that scrapes the stage's exporter."""
    return Prometheus(stage.variables["EXPORTER"].removeprefix("http://"))


@contextmanager
def stopped(server: Postgres) -> Iterator[None]:
    """The server is not there."""
    server.stop()
    try:
        yield
    finally:
        server.start()


def test_exporter_sees_a_part_again(servers: Servers) -> None:
    """A part that it may not read is named with its reason, and there again once it may."""
    with on_postgres(servers, HEALTHY, FAST) as world:
        stage = kept_out(world)
        with revoked("failed_jobs")(stage):
            follow_until_resolved(read("LaravelQueueCollectorDown"), stage)


def test_exporter_keeps_its_pace_again(servers: Servers) -> None:
    """With the two indexes and a vacuum, jobs that were too dear to count are counted at the usual pace."""
    with on_postgres(servers, MANY, duty=database.DUTY) as stage:
        assert pace(stage) > SLOW
        until(lambda: "asked every" in stage.page)
        follow(read("LaravelQueuePollSlow"), stage)
        until(lambda: pace(stage) <= SLOW, ENDING)


def pace(stage: Stage) -> float:
    """How many of its intervals an exporter lets pass now before it counts the jobs again."""
    where = stage.variables
    dsn = f"postgresql://{run.EXPORTER}@{where['PGHOST']}:{where['PGPORT']}/{where['PGDATABASE']}"
    with watched(dsn, interval=run.INTERVAL) as exporter:
        for _ in range(POLLS):
            poll(exporter, "jobs")
        interval = value(exporter, "source_poll_interval_seconds", collector="jobs", source="database")
    assert interval is not None
    return interval / run.INTERVAL


@contextmanager
def scraped(dsn: str, folder: Path, job: str = JOB) -> Iterator[tuple[Serving, Prometheus, Stage]]:
    """The exporter as a process of its own, a Prometheus that scrapes it, and somebody who was paged."""
    settings = settings_file(folder, dsn)
    with Serving(settings) as exporter, Prometheus(exporter.url[len("http://") : -1], job) as prometheus:
        until(lambda: prometheus.value("up") == 1)
        variables = {
            "EXPORTER": exporter.url.rstrip("/"),
            "PROMETHEUS": f"http://{prometheus.listen}",
            "PROMETHEUS_FILE": str(Path(prometheus.folder.name) / "prometheus.yml"),
            "PROMETHEUS_PID": str(prometheus.process.pid),
            "CONFIG": str(settings),
            "LOG": str(exporter.log),
            "PATH": f"{OWN}:{os.environ['PATH']}",
        }
        yield exporter, prometheus, Stage(variables)


def test_exporter_that_was_killed_is_started_by_hand(dsn18: str, tmp_path: Path) -> None:
    """Nobody listens, its settings are fine, and once somebody starts it Prometheus gets its answers."""
    page = read("LaravelQueueExporterDown")
    with scraped(dsn18, tmp_path) as (exporter, prometheus, stage):
        exporter.process.kill()
        exporter.process.wait()
        try:
            with resolved(prometheus, page.name):
                kept = follow(page, stage)
        finally:
            end(stage.variables["CONFIG"])
    assert "ok\n" in kept


def end(settings: str) -> None:
    """End the exporter that a page started with these settings."""
    found = subprocess.run(["pgrep", "-f", settings], stdout=subprocess.PIPE, text=True, check=False)
    for pid in found.stdout.split():
        os.kill(int(pid), signal.SIGTERM)


def test_job_that_was_renamed_has_its_name_again(dsn18: str, tmp_path: Path) -> None:
    """The exporter answers, and Prometheus knows it under another name, which the rules do not."""
    page = read("LaravelQueueExporterAbsent")
    with scraped(dsn18, tmp_path, "queue-exporter") as (_, prometheus, stage), resolved(prometheus, page.name):
        follow(page, stage)


def first_column(page: Page) -> list[str]:
    """What the rows of the diagnosis are about."""
    return re.findall(r"^\| `(\w+)` \|", section(page, "Diagnosis"), re.MULTILINE)


def test_every_reason_has_a_row() -> None:
    """Whatever reason a source fails for, the page says what it is and what to do."""
    assert first_column(read("LaravelQueueSourceDown")) == list(REASONS)


def test_every_collector_has_a_row() -> None:
    """Whatever collector is silent, the page says which alerts are blind."""
    collectors = (*database.COLLECTORS, *redis.COLLECTORS, *sqs.COLLECTORS, Ntp, Databases)
    names = {collector.name for collector in collectors} - {"jobs", "queues"}
    assert set(first_column(read("LaravelQueueCollectorDown"))) == names
