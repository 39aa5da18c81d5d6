"""
Where runbooks are run with real workers: Laravel 8 under Supervisor, on PostgreSQL, watched by the exporter.

    pools = (Pool("default", processes=4), Pool("mail", ("mail",), options={"timeout": 5}, retry_after=6))
    with supervised(postgres18, *pools, target_wait=1) as going_on:
        going_on.laravel.dispatch("mail", n=20, seconds=8)  # bring the incident about: real jobs
        going_on.sees("LaravelQueueWaitTooLong")            # wait until the status page names it
        follow(read("LaravelQueueWaitTooLong"), going_on.stage)

A pool is a program of Supervisor, in a file of its own in the folder `$SUPERVISOR`, as in /etc/supervisor/conf.d: a
block may edit that file and type `supervisorctl update`. `supervisorctl` needs no argument to find this Supervisor, and
`php artisan` finds this application; where that writes it needs `PGOPTIONS=` before it, as the terminal of the looks
is read-only. `going_on.laravel.truth` is what the workers say that they did.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exporter.app import App
from exporter.board import Key
from exporter.demo import run
from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from ..laravel.conftest import application
from ..laravel.laravel import APP, Laravel
from ..patience import until
from ..world import settings
from .stage import READ_ONLY, STARTING, Stage, serving

INTERVAL = 0.5  # seconds between two polls
TELLING = 20.0  # seconds until the status page names what was brought about
WEB = {"web": {"application_name": "web"}}  # a pool without workers
SUPERVISOR = """
[supervisord]
nodaemon=true
logfile={folder}/supervisord.log
pidfile={folder}/supervisord.pid
[unix_http_server]
file={folder}/supervisor.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix://{folder}/supervisor.sock
[include]
files = {folder}/conf.d/*.conf
"""
PROGRAM = """
[program:{name}]
process_name=%(program_name)s_%(process_num)02d
command=php {artisan} queue:work --queue={queues} {options}
environment={environment}
autostart=true
autorestart=true
stopasgroup=true
killasgroup=true
startsecs={startsecs}
numprocs={processes}
redirect_stderr=true
stdout_logfile={folder}/{name}.log
stopwaitsecs={stopwaitsecs}
"""


@dataclass(frozen=True, slots=True)
class Pool:
    """A program of Supervisor, as Laravel's documentation writes it; its sessions are called as the program is."""

    name: str = "default"
    queues: tuple[str, ...] = ("default",)
    processes: int = 2
    stopwaitsecs: int = 10
    startsecs: int = 1  # who ends sooner ended "too quickly"
    retry_after: int = 90  # in config/queue.php of its machine
    options: Mapping[str, float] = field(default_factory=dict)  # of queue:work
    environment: Mapping[str, str] = field(default_factory=dict)  # of its machine: CACHE_DRIVER, what `bent` gives

    def program(self, folder: Path) -> str:
        """Its file in Supervisor's folder."""
        options = {"sleep": 0.2, "timeout": 60, "tries": 3} | dict(self.options)
        environment = {"DB_APPLICATION_NAME": self.name, "RETRY_AFTER": self.retry_after} | dict(self.environment)
        return PROGRAM.format(
            name=self.name,
            artisan=APP / "artisan",
            queues=",".join(self.queues),
            options=" ".join(f"--{name}={value}" for name, value in options.items()),
            environment=",".join(f'{name}="{value}"' for name, value in environment.items()),
            startsecs=self.startsecs,
            processes=self.processes,
            folder=folder,
            stopwaitsecs=self.stopwaitsecs,
        )

    def watched(self) -> dict[str, Any]:
        """What the exporter is told of it."""
        timeout = int(self.options.get("timeout", 60))
        return {"application_name": self.name, "queues": list(self.queues), "timeout": timeout}


@dataclass(frozen=True, slots=True)
class Supervised:
    """An incident among real workers: where one looks, and what one can do to the application."""

    stage: Stage
    laravel: Laravel
    watching: App

    def sees(self, alert: str) -> None:
        """Wait until the status page names this alert."""
        until(lambda: alert in self.stage.page, TELLING)

    def asks_again(self, collector: str) -> None:
        """Wait until the exporter has asked this once more: what comes after that, it sees as a change."""
        key = Key("database", collector)
        before = self.watching.board.read()[key].polls
        until(lambda: self.watching.board.read()[key].polls > before + 1, TELLING)


@contextmanager
def supervised(
    server: Postgres,
    *pools: Pool,
    redis: Redis | None = None,
    variables: Mapping[str, str] | None = None,
    **watched: Any,
) -> Iterator[Supervised]:
    """
    A migrated application whose pools are at work, and the exporter, which is told what `watched` says (`target_wait`).

    `variables` are what pages ask the reader to set, beyond those that every stage has. With a Redis, `conn="redis"`
    dispatches to it.
    """
    folder = Path(tempfile.mkdtemp(prefix="queue-exporter-supervisor-"))  # a test's own path is too long for a socket
    try:
        with contextmanager(application)(server, folder) as laravel, _supervisord(laravel, pools) as path:
            if redis:
                laravel.environment |= {"REDIS_PORT": str(redis.port)}
            told: dict[str, Any] = {"interval": INTERVAL, "retry_after": max(pool.retry_after for pool in pools)}
            told |= {"pools": {pool.name: pool.watched() for pool in pools} | WEB, "cache": {"prefix": "laravel_cache"}}
            watching = run.exporter(settings(laravel.dsn, **told | watched))
            with serving(watching) as address:
                typed = _typed(laravel, pools[0], path) | {"EXPORTER": address} | dict(variables or {})
                yield Supervised(Stage(typed, watching), laravel, watching)
    finally:
        shutil.rmtree(folder)


def _typed(laravel: Laravel, pool: Pool, path: str) -> dict[str, str]:
    """The environment of what is typed: that of the application, of `psql`, of `supervisorctl`."""
    mine = {name: value for name, value in laravel.environment.items() if os.environ.get(name) != value}
    where = {f"PG{name}": mine[f"DB_{name}"] for name in ("HOST", "PORT", "DATABASE")}
    own = {"PATH": path, "SUPERVISOR": str(laravel.folder / "conf.d"), "POOL": pool.name, "QUEUE": pool.queues[0]}
    own |= {"LONGEST": str(int(pool.options.get("timeout", 60)) + 10)}  # this and the next are what mitigations ask for
    own |= {"LONGER": "300", "STOPWAITSECS": "90", "TIMEOUT": "75", "MEMORY": "128"}
    own |= {"SUPERVISOR_LOG": str(laravel.folder / "supervisord.log")}
    own |= {"REDIS": f"redis://127.0.0.1:{mine.get('REDIS_PORT')}/0", "REDIS_PREFIX": "laravel_database_"}
    database = {"TABLE": "jobs", "RETRY_AFTER": str(pool.retry_after), "PGUSER": "postgres", "PGOPTIONS": READ_ONLY}
    return mine | where | own | database


@contextmanager
def _supervisord(laravel: Laravel, pools: tuple[Pool, ...]) -> Iterator[str]:
    """Supervisor with these programs, all of them at work: the PATH with which `supervisorctl` finds it."""
    settings, tool = laravel.folder / "supervisord.conf", laravel.folder / "bin" / "supervisorctl"
    (laravel.folder / "conf.d").mkdir()
    tool.parent.mkdir()
    settings.write_text(SUPERVISOR.format(folder=laravel.folder))
    for pool in pools:
        (laravel.folder / "conf.d" / f"{pool.name}.conf").write_text(pool.program(laravel.folder))
    tool.write_text(f'#!/bin/sh\nexec {shutil.which("supervisorctl")} -c {settings} "$@"\n')
    tool.chmod(0o755)
    with (laravel.folder / "said").open("wb") as said:
        command, environment = ["supervisord", "-c", str(settings)], laravel.environment
        supervisord = subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)
    try:
        laravel.truth.wait_for("worker", sum(pool.processes for pool in pools), STARTING)
        yield f"{tool.parent}:{os.environ['PATH']}"
    finally:
        _end(supervisord)


def _end(supervisord: subprocess.Popen[bytes]) -> None:
    """End it without waiting for any job; once told, it starts nothing again."""
    children = Path(f"/proc/{supervisord.pid}/task/{supervisord.pid}/children")
    supervisord.terminate()

    def ended() -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
        return supervisord.poll() is not None

    until(ended, STARTING)
