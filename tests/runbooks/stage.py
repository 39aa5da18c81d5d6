"""Where runbooks are run: an incident goes on, an exporter watches it and serves its pages, commands can be typed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread

from psycopg.conninfo import conninfo_to_dict

from exporter import runbooks
from exporter.app import App
from exporter.demo import run
from exporter.demo.incidents import INCIDENTS
from exporter.demo.plan import Plan
from exporter.pages import Pages
from exporter.server import open_server
from exporter.status import report
from exporter.terminal import text
from exporter.web import Gate, WebConfig

from ..demo.rehearsal import Rehearsal, Servers, rehearsal
from ..laravel.laravel import APP
from ..patience import until
from .blocks import Block

STARTING = 20.0  # seconds until every collector has answered once
PATIENCE = 60.0  # seconds that one block may take
READ_ONLY = "-c default_transaction_read_only=on -c statement_timeout=5s -c lock_timeout=1s"


@dataclass(frozen=True, slots=True)
class Stage:
    """What somebody who was paged has in front of them."""

    variables: Mapping[str, str]  # what a page asks the reader to set, and what is behind it
    watching: App | None = None
    patience: float = PATIENCE

    @property
    def page(self) -> str:
        """The status page."""
        return text(report(self.watching.board, runbooks.names())) if self.watching else ""

    def run(self, block: Block, set_by_hand: set[str]) -> tuple[int, str]:
        """Run a block as the reader would: the exit status, and what is printed."""
        own = sorted(name for name in set_by_hand if not name.startswith("PG"))
        psql = [word for name in own for word in ("-v", f"{name.lower()}={self.variables[name]}")]
        commands = {
            "sh": ["sh", "-e", "-c", block.source],
            "sql": ["psql", "-X", "-v", "ON_ERROR_STOP=1", *psql],
            "redis": ["sh", "-e", "-c", "redis-cli -u $REDIS"],
        }
        done = subprocess.run(
            commands[block.language],
            input="" if block.language == "sh" else block.source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=APP,  # where `artisan` is
            env=os.environ | dict(self.variables),
            timeout=self.patience,
        )
        return done.returncode, done.stdout


@contextmanager
def serving(watching: App) -> Iterator[str]:
    """The exporter at work on a free port: its address, once every collector has answered."""
    stop = Event()
    server = open_server(("127.0.0.1", 0), Pages(watching.board, watching.exposition, Gate({})), WebConfig())
    working = Thread(target=watching.serve, args=(server, stop))
    working.start()
    try:
        until(lambda: all(state.polls for state in watching.board.read().values()), STARTING)
        yield f"http://{server.where}"
    finally:
        stop.set()
        working.join()


@contextmanager
def on_postgres(
    servers: Servers, plan: Plan, interval: float = run.INTERVAL, duty: float = run.DUTY
) -> Iterator[Stage]:
    """
    This world of the demo, with the variables of every page that is about PostgreSQL.

    The exporter asks every `interval` seconds, and less often if that takes more than `duty` of the database's time.
    """
    with rehearsal(servers.for_(plan), plan, interval) as now:
        for poller in now.watching.pollers:
            poller.source = replace(poller.source, duty=duty)
        with serving(now.watching) as address:
            yield _stage(now, plan, address)


def _stage(now: Rehearsal, plan: Plan, address: str) -> Stage:
    database = conninfo_to_dict(now.server.dsn(run.APPLICATION))
    where = {"HOST": str(database["host"]), "PORT": str(database["port"]), "DATABASE": str(database["dbname"])}
    return Stage(
        {
            "EXPORTER": address,
            "TABLE": "jobs",
            "RETRY_AFTER": str(plan.retry_after),
            "QUEUE": "default",
            "OTHER_QUEUE": "imports",
        }
        | {"POOL": "default", "SUPERVISOR": "/etc/supervisor/conf.d"}  # nobody supervises its workers
        | {f"PG{name}": value for name, value in where.items()}
        | {"PGUSER": "postgres", "PGOPTIONS": READ_ONLY}
        | {f"DB_{name}": value for name, value in where.items()}
        | {"DB_USERNAME": "laravel", "CACHE_DRIVER": "database", "CACHE_PATH": str(Path("/nonexistent"))},
        now.watching,
    )


@contextmanager
def incident(servers: Servers, name: str) -> Iterator[Stage]:
    """An incident of the demo on PostgreSQL."""
    with on_postgres(servers, INCIDENTS[name].plan) as stage:
        yield stage
