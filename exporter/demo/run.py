"""The demonstration: a server, a world in it, and the exporter that watches it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import psycopg

from .. import app, config
from ..app import App
from ..errors import ConfigError
from . import prometheus
from .daemon import StartError, free_port
from .fargate import incidents as fargate
from .horizon import HORIZON, PREFIX, HorizonWorld
from .incidents import HEALTHY, INCIDENTS
from .laravel import CACHE_PREFIX
from .plan import Plan
from .postgres import Postgres
from .redis import Redis
from .world import World

LISTEN = "127.0.0.1:10087"
INTERVAL = 5  # seconds, so that one need not wait long to see something
DUTY = 0.05  # asked three times as often as in life, and from the process that plays the world, an answer costs more
SERVER = {"autovacuum_naptime": "5s", "shared_buffers": "128MB"}  # whatever the plan says of the rest
APPLICATION, EXPORTER = "laravel", "queue_exporter"  # roles
ROLES = (
    f"CREATE ROLE {APPLICATION} LOGIN",
    f"CREATE DATABASE {APPLICATION} OWNER {APPLICATION}",
    f"CREATE ROLE {EXPORTER} LOGIN CONNECTION LIMIT 3",
    f"ALTER ROLE {EXPORTER} SET statement_timeout = '2s'",
    f"GRANT pg_monitor TO {EXPORTER}",
)
GRANTS = f"GRANT SELECT ON jobs, failed_jobs, cache TO {EXPORTER}"

REHEARSED = INCIDENTS | fargate.INCIDENTS
Say = Callable[[str], None]
Begin = Callable[[ExitStack, Say], None]


class StoppedError(Exception):
    """A stop was asked for while something was being started."""


def demo(incident: str | None, stop: Event) -> int:
    """Run until `stop` is set. Returns the exit status. Raises `ConfigError` if something it needs cannot be had."""
    stop_when_the_terminal_closes(stop)

    def say(line: str) -> None:
        """Announce a step. None begins once a stop was asked for."""
        if stop.is_set():
            raise StoppedError
        print(line, flush=True)

    with suppress(StoppedError):
        run(incident, say, stop)
    print("stopped; nothing is left behind", flush=True)
    return 0


def run(incident: str | None, say: Say, stop: Event) -> None:
    """Start everything, the exporter last; end everything in the opposite order."""
    connections, begin = on_aws(incident) if incident in fargate.INCIDENTS else on_postgres(incident)
    settings = config.parse({"web": {"listen": LISTEN}, "connections": connections})
    wired = exporter(settings)
    with ExitStack() as ended:
        server = app.listen(wired, settings)  # before anything else: a port in use is told at once
        ended.callback(server.stop)
        begin(ended, say)
        if program := prometheus.found():
            say("starting Prometheus")
            started = ended.enter_context(prometheus.Prometheus(program, LISTEN, INTERVAL))
            say(f"Prometheus is on http://{started.listen}")
        explain(incident, say)
        wired.serve(server, stop)


def on_aws(incident: str) -> tuple[dict[str, Any], Begin]:
    """The connections to watch, and how to begin, on SQS and Fargate. Raises `ConfigError`."""
    try:
        from .fargate.run import prepare  # what it brings is in the extra
    except ImportError:
        raise ConfigError("demo: the demo needs its extra: pip install 'laravel-queue-exporter[demo]'") from None
    return prepare(fargate.INCIDENTS[incident].plan, INTERVAL)


def on_postgres(incident: str | None) -> tuple[dict[str, Any], Begin]:
    """The same on a PostgreSQL, with a Redis beside it where there is a redis-server. Raises `ConfigError`."""
    plan, port = INCIDENTS[incident].plan if incident else HEALTHY, free_port()
    redis_port = free_port() if shutil.which("redis-server") else None
    if redis_port is None and plan.horizon != HEALTHY.horizon:
        raise ConfigError("demo: this incident happens in a Redis, and there is no redis-server on PATH")

    def begin(ended: ExitStack, say: Say) -> None:
        say("starting PostgreSQL in a temporary folder")
        try:
            postgres = ended.enter_context(server_of(plan, port))
        except StartError as error:
            raise ConfigError(f"demo: {error}") from None
        say("creating Laravel's tables")
        world = ended.enter_context(World(plan, postgres.dsn(APPLICATION, APPLICATION)))
        create(postgres, world)
        populate(world, say)
        if redis_port:
            say("starting Redis, and a Horizon in it")
            redis = ended.enter_context(Redis(plan.horizon.server, redis_port))
            ended.enter_context(HorizonWorld(plan.horizon, redis.port))

    return watched(plan, f"postgresql://{EXPORTER}@127.0.0.1:{port}/{APPLICATION}", redis_port), begin


def exporter(settings: config.Config) -> App:
    """The exporter; of the database's time it may take more than in life."""
    wired = app.build(settings)
    for poller in wired.pollers:
        poller.source = replace(poller.source, duty=max(DUTY, poller.source.duty))
    return wired


def server_of(plan: Plan, port: int | None = None, binaries: Path | None = None) -> Postgres:
    """The plan's PostgreSQL, not started yet."""
    return Postgres(binaries, SERVER | dict(plan.server), port, plan.cores)


def create(postgres: Postgres, world: World) -> None:
    """Roles, a database, Laravel's tables in it, and what the exporter may read of them."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        for statement in ROLES:
            connection.execute(statement)
    world.migrate()
    with world.connect("artisan") as connection:
        connection.execute(GRANTS)


def populate(world: World, say: Say) -> None:
    """Rows first, then processes."""
    plan = world.plan
    if rows := sum(backlog.count for backlog in plan.backlogs) + plan.dead_rows:
        say(f"writing a past of {rows:,} jobs")
    world.fill()
    pools = ", ".join(f"{pool.workers} for {','.join(pool.queues)}" for pool in plan.pools)
    say(f"starting {plan.workers} workers ({pools}) and a web application with {plan.web_sessions} connections")
    world.start()


def explain(incident: str | None, say: Say) -> None:
    """Where everything is, what is going on, and where to look."""
    say(f"the exporter is on http://{LISTEN} (metrics: http://{LISTEN}/metrics)")
    if incident is None:
        say(f"nothing is wrong in this world; --incident {'|'.join(REHEARSED)} rehearses what can go wrong")
    else:
        say(f"incident {incident}: {REHEARSED[incident].description} Look at:")
        for line in REHEARSED[incident].look_at:
            say(f"  {line}")
    say("Ctrl-C stops everything")


def watched(plan: Plan, dsn: str, redis_port: int | None = None) -> dict[str, Any]:
    """The connections of an exporter that knows this world."""
    pools: dict[str, dict[str, Any]] = {
        pool.name: {"application_name": pool.application_name, "queues": list(pool.queues), "timeout": pool.timeout}
        for pool in plan.pools
    }
    database = {
        "driver": "database",
        "dsn": dsn,
        "interval": INTERVAL,
        "retry_after": plan.retry_after,
        "target_wait": plan.target_wait,
        "queues": {queue: {"target_wait": target} for queue, target in plan.targets.items()},
        "pools": pools | {"web": {"application_name": "web"}},
        "cache": {"table": "cache", "prefix": CACHE_PREFIX},
    }
    redis = {
        "driver": "redis",
        "url": f"redis://127.0.0.1:{redis_port}/0",
        "prefix": PREFIX,
        "interval": INTERVAL,
        "target_wait": plan.target_wait,
        "queues": dict.fromkeys((*plan.horizon.per_second, *plan.horizon.due)),
        "horizon": {"prefix": HORIZON},
    }
    return {"database": database} | ({"redis": redis} if redis_port else {})


def stop_when_the_terminal_closes(stop: Event) -> None:
    """A closed terminal must not leave a server behind. Under nohup the signal stays ignored."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        app.end_by(stop, signal.SIGHUP)
