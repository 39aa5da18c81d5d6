"""
Incidents as a Prometheus saw them: the demo's world, healthy for a while and then not, with the shipped rules.

`python -m tools.record INCIDENT FOLDER` leaves the storage of that Prometheus in FOLDER, and in FOLDER/times.json when
it began and ended, as Unix time. A picture of a dashboard can be made from that as often as one likes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psycopg
import redis as driver

from exporter import app, config
from exporter.demo import run
from exporter.demo.daemon import free_port
from exporter.demo.fargate import incidents as fargate
from exporter.demo.fargate.aws import CREDENTIALS, Aws
from exporter.demo.fargate.plan import Fargate
from exporter.demo.fargate.run import connections
from exporter.demo.fargate.world import FargateWorld
from exporter.demo.horizon import PREFIX, HorizonWorld
from exporter.demo.incidents import HEALTHY, INCIDENTS
from exporter.demo.plan import Plan
from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis
from exporter.demo.world import World
from tests.bundle.incidents import TOLD
from tests.bundle.rules import ALERTS

BEFORE, DURING = 240, 480  # seconds: nothing is wrong, then the incident, at least
FIRING = 180  # seconds that its alert is to be seen firing
SINCE = {"starvation": 600, "single-group": 600, "more-tasks-than-groups": 600}  # seconds that it has to be so first
OVER = {"backlog-per-task": 265}  # seconds after which it has been put right
LEAST = {"database-bound": 20_000}  # jobs of each backlog, or the workers are through with it too soon
STEP = 90  # seconds between two steps of the scaling: as slow as in life
STEPS = {"flapping": 15}  # where the incident is that it is not
CAMPAIGN = 2  # times as many jobs arrive: the pace of the scaling asks for a longer incident than the demo's
SOURCE_DOWN = "source-down"  # the database's server is stopped
ROOT = Path(__file__).parents[1]
Staged = tuple[dict[str, Any], Generator[None, None, None]]  # connections to watch; the phases, one after the other
INSTANCE = "exporter.internal:10087"  # what the exporter is called in a picture
CONFIG = """\
global: {{scrape_interval: {interval}s, evaluation_interval: {interval}s}}
rule_files: ["{root}/alerts/laravel-queue.*.yml"]
scrape_configs:
  - job_name: laravel-queue-exporter
    static_configs: {targets}
"""


def incident(name: str) -> Plan:
    """The demo's plan, but everything begins now: what is waiting has only just come."""
    plan = INCIDENTS[name].plan
    fresh = [replace(some, oldest=1, newest=0) if some.oldest > 0 else some for some in plan.backlogs]
    fresh = [replace(some, count=max(some.count, LEAST.get(name, 0))) for some in fresh]
    return replace(plan, backlogs=tuple(fresh), horizon=replace(plan.horizon, backlog=0))


def before(plan: Plan) -> Plan:
    """The same server, queues and pools, in a world in which nothing is wrong."""
    return replace(HEALTHY, targets=plan.targets, retry_after=plan.retry_after, server=plan.server, cores=plan.cores)


@contextmanager
def on_postgres(name: str) -> Iterator[Staged]:
    """A database and a Redis: the connections to watch, and the phases one after the other."""
    plan = HEALTHY if name == SOURCE_DOWN else incident(name)
    with run.server_of(plan) as postgres, Redis(plan.horizon.server) as redis:
        dsn = postgres.dsn(run.APPLICATION, run.APPLICATION)

        def phases() -> Generator[None, None, None]:
            with World(before(plan), dsn) as world, HorizonWorld(HEALTHY.horizon, redis.port):
                run.create(postgres, world)
                run.populate(world, print)
                yield
                if name == SOURCE_DOWN:
                    postgres.stop()
                    yield
                    return
            let_go(postgres, redis)
            with World(plan, dsn) as world, HorizonWorld(plan.horizon, redis.port):
                run.populate(world, print)
                yield

        watched = postgres.dsn(run.APPLICATION, run.EXPORTER)
        yield run.watched(plan, watched, redis.port), phases()


def let_go(postgres: Postgres, redis: Redis) -> None:
    """The healthy world ends with all of its jobs done, or what it leaves would be an incident of its own."""
    with psycopg.connect(postgres.dsn(run.APPLICATION), autocommit=True) as connection:
        connection.execute("DELETE FROM jobs")
    with driver.Redis(port=redis.port) as client:
        client.delete(*[f"{PREFIX}queues:{queue}:reserved" for queue in HEALTHY.horizon.workers])


@contextmanager
def on_aws(name: str) -> Iterator[Staged]:
    """The same on SQS and Fargate."""
    os.environ.update(CREDENTIALS)
    plan = fargate.INCIDENTS[name].plan
    plan = Fargate(tuple(replace(each, oldest=0, per_second=CAMPAIGN * each.per_second) for each in plan.services))
    with Aws() as aws:

        def phases() -> Generator[None, None, None]:
            for each in (fargate.HEALTHY, plan):
                with FargateWorld(each, aws, step=STEPS.get(name, STEP)) as world:
                    world.fill()
                    world.start()
                    yield
                for service in each.services:  # what its tasks held would come back, and the next may be set otherwise
                    world.sqs.delete_queue(QueueUrl=world.url(service.queue))

        yield connections(plan, aws.url, run.INTERVAL), phases()


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, str], interval: int = run.INTERVAL, more: str = "") -> Iterator[str]:
    """
    A server that scrapes exporters and evaluates the shipped rules, with its storage in `folder`.

    `targets`: what an exporter's instance is called → its address. `more` is put under its configuration, where a list
    of jobs stands last. Gives the server's own address.
    """
    static = [{"targets": [address], "labels": {"instance": instance}} for instance, address in targets.items()]
    config = CONFIG.format(root=ROOT, interval=interval, targets=json.dumps(static)) + more
    (folder / "prometheus.yml").write_text(config)
    program, address = shutil.which("prometheus") or "prometheus", f"127.0.0.1:{free_port()}"
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--log.level=error"]
    process = subprocess.Popen([program, *options, f"--web.listen-address={address}"])
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


def lasting(name: str) -> float:
    """Seconds that the incident goes on: until the alert that tells it has been firing for a while."""
    if name in OVER:
        return OVER[name]
    told = [ALERTS[alert].pending for alert in TOLD[name].by] if name in TOLD else []
    return max([DURING, *(SINCE.get(name, 0) + pending + FIRING for pending in told)])


def record(name: str, folder: Path) -> None:
    """Play one incident, watched."""
    folder.mkdir(parents=True)
    world = on_aws(name) if name in fargate.INCIDENTS else on_postgres(name)
    with ExitStack() as ended:
        watched, phases = ended.enter_context(world)
        ended.callback(phases.close)
        target = f"127.0.0.1:{free_port()}"
        settings = config.parse({"web": {"listen": target}, "connections": watched})
        exporter = run.exporter(settings)
        server, stop = app.listen(exporter, settings), Event()
        next(phases)
        serving = Thread(target=exporter.serve, args=(server, stop))
        serving.start()
        ended.callback(serving.join)
        ended.callback(stop.set)
        ended.enter_context(prometheus(folder, {INSTANCE: target}))
        began = time.time()
        time.sleep(BEFORE)
        next(phases)
        time.sleep(lasting(name))
        (folder / "times.json").write_text(json.dumps({"began": began, "ended": time.time()}))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers end with it
    record(sys.argv[1], Path(sys.argv[2]))
