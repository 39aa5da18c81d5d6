"""A world of each driver, one real exporter that watches all of them, and a real Prometheus with the shipped rules."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from exporter import app, config
from exporter.demo import run
from exporter.demo.daemon import free_port
from exporter.demo.fargate import incidents as fargate
from exporter.demo.fargate.aws import CREDENTIALS, Aws
from exporter.demo.fargate.run import connections
from exporter.demo.fargate.world import FargateWorld
from exporter.demo.horizon import HorizonWorld
from exporter.demo.incidents import HEALTHY
from exporter.demo.redis import Redis
from exporter.demo.world import World
from tools.record import prometheus

PLAN = replace(HEALTHY, restart_after=1.0)  # so that there is something outdated, or not
STARTING = 503  # HTTP status while it reads its storage
MEMORY = {"maxmemory": "64mb"}
Answer = Mapping[tuple[tuple[str, str], ...], float]  # labels → value


class Scene(NamedTuple):
    """Where the exporter and the Prometheus are."""

    exporter: str
    prometheus: str

    def ask(self, query: str) -> Answer:
        """What Prometheus answers now."""
        return ask(self.prometheus, query)


def ask(prometheus: str, query: str) -> Answer:
    """What a Prometheus answers now. Nothing while it is starting."""
    url = f"http://{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            result = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        if error.code != STARTING:
            raise AssertionError(error.read()) from error
        return {}
    except OSError:
        return {}
    return {tuple(sorted(series["metric"].items())): float(series["value"][1]) for series in result}


def on_postgres(ended: ExitStack) -> dict[str, Any]:
    """The demo's healthy world on PostgreSQL and in Redis: the connections to watch."""
    postgres = ended.enter_context(run.server_of(PLAN))
    redis = ended.enter_context(Redis(MEMORY))
    world = ended.enter_context(World(PLAN, postgres.dsn(run.APPLICATION, run.APPLICATION)))
    run.create(postgres, world)
    run.populate(world, lambda _: None)
    ended.enter_context(HorizonWorld(PLAN.horizon, redis.port))
    return run.watched(PLAN, postgres.dsn(run.APPLICATION, run.EXPORTER), redis.port)


def on_aws(ended: ExitStack) -> dict[str, Any]:
    """The same on SQS."""
    os.environ.update(CREDENTIALS)
    for name in CREDENTIALS:
        ended.callback(os.environ.pop, name)
    aws = ended.enter_context(Aws())
    world = ended.enter_context(FargateWorld(fargate.HEALTHY, aws))
    world.fill()
    world.start()
    return connections(fargate.HEALTHY, aws.url, 1)


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """All of it at work."""
    with ExitStack() as ended:
        watched = on_postgres(ended) | on_aws(ended)
        target = f"127.0.0.1:{free_port()}"
        settings = config.parse({"web": {"listen": target}, "connections": watched})
        exporter = run.exporter(settings)
        stop, server = Event(), app.listen(exporter, settings)
        serving = Thread(target=exporter.serve, args=(server, stop))
        serving.start()
        ended.callback(serving.join)
        ended.callback(stop.set)
        yield Scene(target, ended.enter_context(prometheus(folder, {target: target}, 1)))
