"""An incident brought to life, and an exporter beside it that logs in as the demo's does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from exporter import config
from exporter.app import App
from exporter.demo import run
from exporter.demo.incidents import INCIDENTS
from exporter.demo.plan import Plan
from exporter.demo.postgres import Postgres
from exporter.demo.world import World
from exporter.status import report
from exporter.terminal import text

from ..patience import PAUSE
from ..world import close, poll, value

SMALLEST = INCIDENTS["flash-sale"].plan  # a plan that asks nothing of its server has this one's


def quoted(name: str) -> list[str]:
    """What the incident's lines quote from the status page."""
    return re.findall('"([^"]+)"', " ".join(INCIDENTS[name].look_at))


class Servers:
    """A server for each kind that plans ask for, started when the first of them does."""

    def __init__(self, binaries: Path) -> None:
        self.binaries, self.started = binaries, ExitStack()
        self.running: dict[str, Postgres] = {}

    def for_(self, plan: Plan) -> Postgres:
        """The server that this plan asks for."""
        asking = plan if plan.server else SMALLEST
        kind = repr((asking.server, asking.cores))
        if kind not in self.running:
            self.running[kind] = self.started.enter_context(run.server_of(asking, binaries=self.binaries))
        return self.running[kind]


class Onlooker:
    """Stops an exporter as soon as a condition holds; fails the test when that takes too long."""

    def __init__(self, condition: Callable[[], bool], until: float, what: Callable[[], str]) -> None:
        self.condition, self.until, self.what = condition, until, what

    def wait(self, timeout: float) -> bool:
        """As the exporter's pause between two polls."""
        next_poll = time.monotonic() + timeout
        while not (found := self.condition()) and time.monotonic() < next_poll:
            assert time.monotonic() < self.until, self.what()
            time.sleep(PAUSE)
        return found


class Rehearsal:
    """What one can look at and do while an incident goes on."""

    def __init__(self, server: Postgres, world: World, watching: App) -> None:
        self.server, self.world, self.watching = server, world, watching
        self.began = time.monotonic()

    @property
    def page(self) -> str:
        """The status page."""
        return text(report(self.watching.board))

    def watch(self, name: str, after: float = 0.0) -> list[str]:
        """
        Let the exporter poll at its own pace until the page says all that the incident's lines quote.

        It has two intervals for that, from when the incident begins: `after` so many seconds.
        Returns what is over its limit then.
        """
        words = quoted(name)
        source = self.watching.pollers[0]
        deadline = self.began + after + 2 * run.INTERVAL
        source.run(Onlooker(lambda: all(map(self.page.__contains__, words)), deadline, lambda: self.page))
        return self._over()

    def findings(self) -> list[str]:
        """What is over its limit or near it, worst first. Everything is polled anew."""
        for poller in self.watching.pollers:
            poll(self.watching, source=poller.source.name)
        return self._over()

    def _over(self) -> list[str]:
        return [f"{finding.where}: {finding.says}" for finding in report(self.watching.board).findings]

    def shown(self, name: str, **labels: str) -> float:
        """The value of a series of this connection that must be there."""
        number = value(self.watching, name, connection="database", **labels)
        assert number is not None, name
        return number

    def jobs(self, queue: str, state: str) -> float:
        """How many jobs of the queue are in this state."""
        return self.shown("jobs", queue=queue, state=state)

    def dba(self, statement: str) -> Any:
        """Run a statement as the superuser. Returns the only value that it gives, if any."""
        with psycopg.connect(self.server.dsn(run.APPLICATION), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall()[0][0] if cursor.description else None

    def finished_per_second(self, within: float = 2.0) -> float:
        """How many rows disappear a second, as the table itself says: the load takes real time."""
        gone = "SELECT (SELECT last_value FROM jobs_id_seq) - (SELECT count(*) FROM jobs)"
        began, before = time.monotonic(), self.dba(gone)
        time.sleep(within)
        return float(self.dba(gone) - before) / (time.monotonic() - began)

    @contextmanager
    def under(self, plan: Plan) -> Iterator[None]:
        """The same tables, but with the processes of this plan."""
        self.world.close()
        with World(plan, self.world.dsn) as world:
            world.start()
            yield


@contextmanager
def rehearsal(server: Postgres, plan: Plan, interval: float = run.INTERVAL) -> Iterator[Rehearsal]:
    """Bring the plan to life on this server, watched every `interval` seconds; afterwards nothing of it is left."""
    world = World(plan, server.dsn(run.APPLICATION, run.APPLICATION))
    connections = run.watched(plan, server.dsn(run.APPLICATION, run.EXPORTER))
    connections["database"]["interval"] = interval
    settings = config.parse({"connections": connections})
    watching = run.exporter(settings)
    try:
        with world:
            run.create(server, world)
            run.populate(world, lambda _: None)
            yield Rehearsal(server, world, watching)
    finally:
        close(watching)
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {run.APPLICATION} WITH (FORCE)")
            connection.execute(f"DROP ROLE {run.APPLICATION}, {run.EXPORTER}")
