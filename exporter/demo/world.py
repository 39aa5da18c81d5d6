"""A plan brought to life: workers under a supervisor, a web application, and what else holds connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from threading import Event, Thread

import psycopg

from . import laravel
from .laravel import Connection
from .payload import copies, payload
from .plan import Arrivals, Backlog, Job, Plan, Pool
from .worker import KilledError, Worker

PAUSE = 1.0  # seconds before the supervisor starts a process again
ENDING = 5.0  # seconds that a thread may take to end
PAST = Job("App\\Jobs\\SendInvoice")  # what the dead rows once were


class World:
    """Threads with one connection each. `fill` and `start` it; leaving the context ends all of it."""

    def __init__(
        self, plan: Plan, dsn: str, wall: Callable[[], float] = time.time, chance: Random | None = None
    ) -> None:
        self.plan, self.dsn, self.wall = plan, dsn, wall
        self.chance = chance or Random()  # noqa: S311  # luck, not secrets
        self.stopping = Event()
        self.threads: list[Thread] = []
        self.held: list[Connection] = []  # with a transaction open

    def __enter__(self) -> World:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def migrate(self) -> None:
        """Laravel's tables."""
        with self.connect("artisan") as connection:
            laravel.migrate(connection, self.plan.autovacuum_threshold)

    def fill(self) -> None:
        """The past that the plan begins with, the newest rows last."""
        for name in self.plan.open_transactions:
            self.held.append(connection := self.connect(name))
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            connection.execute('select count(*) from "failed_jobs"')
        with self.connect("artisan") as connection:
            for queue in self.plan.paused:
                laravel.pause(connection, queue, self._now())
            if self.plan.dead_rows:
                laravel.copy_in(connection, self._rows(Backlog("default", PAST, self.plan.dead_rows, 3600)))
                connection.execute('delete from "jobs"')
            for backlog in self.plan.backlogs:
                laravel.copy_in(connection, self._rows(backlog))
            connection.execute('ANALYZE "jobs"')

    def start(self) -> None:
        """Start every process; all are connected when this returns."""
        for pool in self.plan.pools:
            for _ in range(pool.workers):
                self._thread(self._supervise, pool, self.connect(pool.application_name))
        self._thread(self._serve_customers, [self.connect("web") for _ in range(self.plan.web_sessions)])
        if self.plan.restart_after is not None:
            self._thread(self._deploy, self.plan.restart_after)

    def close(self) -> None:
        """End every process at once, in the middle of whatever it does."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(ENDING)
        for connection in self.held:
            connection.close()

    def connect(self, application_name: str) -> Connection:
        """A connection as Laravel's processes have: named, and nothing open between statements."""
        return psycopg.connect(self.dsn, application_name=application_name, autocommit=True, prepare_threshold=None)

    def rest(self, seconds: float) -> None:
        """Wait; raises `KilledError` if the world ends meanwhile."""
        if self.stopping.wait(seconds):
            raise KilledError

    def _thread(self, run: Callable[..., None], *args: object) -> None:
        thread = Thread(target=run, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _supervise(self, pool: Pool, first: Connection) -> None:
        """Supervisor: a worker that ends is started again, with a connection of its own."""
        connection: Connection | None = first
        while connection or not self.stopping.is_set():
            try:
                with connection or self.connect(pool.application_name) as own:
                    Worker(self.plan, pool, own, self.wall, self.rest, self.chance).run()
            except (KilledError, psycopg.Error):
                self.stopping.wait(PAUSE)
            connection = None

    def _serve_customers(self, sessions: list[Connection]) -> None:
        """The web application: requests that dispatch jobs come at random moments, each over some session."""
        arrivals = self.plan.arrivals
        rates = [arrival.per_second for arrival in arrivals]
        try:
            while sum(rates):
                self.rest(self.chance.expovariate(sum(rates)))
                (some,) = self.chance.choices(arrivals, rates)
                which = self.chance.randrange(len(sessions))
                sessions[which] = self._request(sessions[which], some)
            self.stopping.wait()
        except KilledError:
            pass
        finally:
            for session in sessions:
                session.close()

    def _request(self, session: Connection, some: Arrivals) -> Connection:
        """One request. If it fails nothing is dispatched, and the next one over this session connects anew."""
        text = payload(some.job, some.queue, self.chance, self._now(), some.delay or None)
        try:
            session = self.connect("web") if session.closed else session
            laravel.push(session, some.queue, text, self._now(), some.delay)
        except psycopg.Error:
            session.close()
        return session

    def _deploy(self, after: float) -> None:
        """A deploy calls `queue:restart`."""
        if not self.stopping.wait(after):
            with self.connect("artisan") as connection:
                laravel.restart(connection, self._now())

    def _rows(self, backlog: Backlog) -> Iterator[tuple[str, int, int | None, int, int, str]]:
        now = self._now()
        reserved = None if backlog.reserved is None else int(now - backlog.reserved)
        step = (backlog.oldest - backlog.newest) / backlog.count
        texts = copies(backlog.job, backlog.queue, self.chance, int(now - max(0, backlog.oldest)))
        for index, text in zip(range(backlog.count), texts, strict=False):
            available = int(now - backlog.oldest + step * index)
            created = min(now, available)
            yield backlog.queue, backlog.attempts, reserved, available, created, text

    def _now(self) -> int:
        return int(self.wall())
