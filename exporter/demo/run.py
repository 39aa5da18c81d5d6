"""The demonstration: a server, a world in it, and the exporter that watches it."""

from __future__ import annotations

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
from .incidents import HEALTHY, INCIDENTS
from .laravel import CACHE_PREFIX
from .plan import Plan
from .postgres import Postgres, StartError, free_port
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

Say = Callable[[str], None]


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
    plan = INCIDENTS[incident].plan if incident else HEALTHY
    port = free_port()
    settings = config.parse(exporter_settings(plan, f"postgresql://{EXPORTER}@127.0.0.1:{port}/{APPLICATION}"))
    wired = exporter(settings)
    with ExitStack() as ended:
        server = app.listen(wired, settings)  # before anything else: a port in use is told at once
        ended.callback(server.stop)
        say("starting PostgreSQL in a temporary folder")
        try:
            postgres = ended.enter_context(server_of(plan, port))
        except StartError as error:
            raise ConfigError(f"demo: {error}") from None
        say("creating Laravel's tables")
        world = ended.enter_context(World(plan, postgres.dsn(APPLICATION, APPLICATION)))
        create(postgres, world)
        populate(world, say)
        if program := prometheus.found():
            say("starting Prometheus")
            started = ended.enter_context(prometheus.Prometheus(program, LISTEN, INTERVAL))
            say(f"Prometheus is on http://{started.listen}")
        explain(incident, say)
        wired.serve(server, stop)


def exporter(settings: config.Config) -> App:
    """The exporter; of the database's time it may take more than in life."""
    wired = app.build(settings)
    for poller in wired.pollers:
        poller.source = replace(poller.source, duty=max(DUTY, poller.source.duty))
    return wired


def server_of(plan: Plan, port: int | None = None, binaries: Path | None = None) -> Postgres:
    """The plan's PostgreSQL. Raises `StartError`."""
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
        say(f"nothing is wrong in this world; --incident {'|'.join(INCIDENTS)} rehearses what can go wrong")
    else:
        say(f"incident {incident}: {INCIDENTS[incident].description} Look at:")
        for line in INCIDENTS[incident].look_at:
            say(f"  {line}")
    say("Ctrl-C stops everything")


def exporter_settings(plan: Plan, dsn: str) -> dict[str, Any]:
    """The settings of an exporter that knows this world."""
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
    return {"web": {"listen": LISTEN}, "connections": {"database": database}}


def stop_when_the_terminal_closes(stop: Event) -> None:
    """A closed terminal must not leave a server behind. Under nohup the signal stays ignored."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        app.end_by(stop, signal.SIGHUP)
