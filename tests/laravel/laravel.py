"""Real Laravel 8.83, from Debian's packages: migrations, dispatches and workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from exporter.demo.postgres import Postgres
from exporter.demo.redis import Redis

from .truth import Event, Truth

APP = Path(__file__).parent / "app"
ENDING = 10.0  # seconds that a worker may take to finish its job after SIGTERM
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)

Worker = subprocess.Popen[bytes]


class Laravel:
    """An application whose queue is in one database, or in a Redis. A context manager: it leaves no process behind."""

    def __init__(self, server: Postgres, database: str, folder: Path, redis: Redis | None = None) -> None:
        self.dsn = server.dsn(database)
        self.folder = folder
        self.truth = Truth(folder / "truth.jsonl")
        self.errors = folder / "php.log"
        self.workers: list[Worker] = []
        self.environment = os.environ | {
            "DB_HOST": "127.0.0.1",
            "DB_PORT": str(server.port),
            "DB_DATABASE": database,
            "TRUTH_LOG": str(self.truth.path),
        }
        self.cache = "database"
        if redis:  # the queue and the cache are there; failed jobs stay in the database
            self.cache = "redis"
            self.environment |= {"QUEUE_CONNECTION": "redis", "REDIS_PORT": str(redis.port)}

    def __enter__(self) -> Laravel:
        self._run("migrate.php")
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()

    def dispatch(self, queue: str = "default", *, clock: float = 0.0, **options: object) -> list[Event]:
        """Push jobs, with the options of `app/dispatch.php`, and return what was pushed."""
        known = len(self.truth.events("dispatched"))
        self._run("dispatch.php", f"--queue={queue}", *_options(options), environment=bent(clock))
        return self.truth.events("dispatched")[known:]

    def start_dispatching(self, queue: str = "default", **options: object) -> Worker:
        """Push jobs in the background, at some `rate`."""
        return self._start({}, "dispatch.php", f"--queue={queue}", *_options(options))

    def work(
        self,
        queue: str = "default",
        pool: str = "vm-a",
        *,
        retry_after: int = 90,
        clock: float = 0.0,  # seconds by which the worker's clock is ahead
        cache: str = "",  # `file` for one that no other pool sees
        **options: object,
    ) -> Worker:
        """Start `queue:work`, and return when it is up."""
        options = {"sleep": 0.1, "timeout": 60, "tries": 1} | options
        environment = {
            "DB_APPLICATION_NAME": pool,
            "RETRY_AFTER": str(retry_after),
            "CACHE_DRIVER": cache or self.cache,
            "CACHE_PATH": str(self.folder / f"cache-{pool}"),
        } | bent(clock)
        known = len(self.truth.events("worker"))
        worker = self._start(environment, "artisan", "queue:work", f"--queue={queue}", *_options(options))
        self.truth.wait_for("worker", known + 1)
        return worker

    def restart(self, *, clock: float = 0.0) -> None:
        """Tell all workers to end after their job, with `queue:restart`: those that look into the same cache."""
        self._run("artisan", "queue:restart", environment={"CACHE_DRIVER": self.cache} | bent(clock))

    def kill(self, worker: Worker) -> None:
        """End a worker in the middle of whatever it does."""
        worker.kill()
        worker.wait()

    def stop(self) -> None:
        """Let all workers finish their jobs, and end them."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            worker.wait(ENDING)

    def _start(self, environment: dict[str, str], script: str, *arguments: str) -> Worker:
        with self.errors.open("ab") as log:
            process = subprocess.Popen(
                ["php", str(APP / script), *arguments], env=self.environment | environment, stdout=log, stderr=log
            )
        self.workers.append(process)
        return process

    def _run(self, script: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
        process = self._start(environment or {}, script, *arguments)
        assert process.wait(ENDING) == 0, self.errors.read_text()


def bent(seconds: float) -> dict[str, str]:
    """
    The environment of a process whose clock is ahead; its monotonic clock stays true.

    The library is loaded directly: the `faketime` command would stay as a parent whose death the child survives.
    """
    if not seconds:
        return {}
    assert FAKETIME, "Debian's libfaketime is missing: `make services` installs it"
    return {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{seconds:+}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def _options(options: dict[str, object]) -> list[str]:
    return [f"--{name.strip('_').replace('_', '-')}={value}" for name, value in options.items()]
