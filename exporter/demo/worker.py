"""One `php artisan queue:work` process. Source: Illuminate/Queue/Worker.php of Laravel 12."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from . import laravel
from .laravel import Connection, Record
from .plan import Job, Plan, Pool

TRACE = "\nStack trace:\n#0 {main}"


class KilledError(Exception):
    """The process is gone: its connection closes, and what it held stays reserved."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker of one pool, over its one connection. Its clock, its rest and its luck are handed in."""

    plan: Plan
    pool: Pool
    connection: Connection
    wall: Callable[[], float]
    rest: Callable[[float], None]  # for so many seconds; raises `KilledError` if the process is killed meanwhile
    chance: Random

    def run(self) -> None:
        """Work until `queue:restart` is called; raises `KilledError`."""
        signal = self.restart_signal()
        while True:
            self.turn()
            if self.restart_signal() != signal:
                return

    def turn(self) -> bool:
        """The first job of the first queue that has one; without one, sleep. Returns whether there was one."""
        for queue in self.pool.queues:
            if not self.paused(queue) and (record := self.pop(queue)):
                self.process(record)
                return True
        self.rest(self.pool.sleep)
        return False

    def pop(self, queue: str) -> Record | None:
        """Take a job by this machine's clock."""
        return laravel.pop(self.connection, queue, self.now(), self.plan.retry_after, skip_locked=self.pool.skip_locked)

    def process(self, record: Record) -> None:
        """Run a job to its end, whatever that is."""
        fields = record.fields
        if "displayName" not in fields:  # no payload of Laravel's: it vanishes, and only a log says so
            laravel.delete(self.connection, record)
            return
        name, tries = fields["displayName"], _first(fields.get("maxTries"), self.pool.tries)
        if tries and record.attempts > tries:
            text = f"Illuminate\\Queue\\MaxAttemptsExceededException: {name} has been attempted too many times."
            laravel.fail(self.connection, record, text + TRACE, self.now())
            return
        job = self.plan.jobs.get(name, Job(name))
        seconds = self.chance.uniform(*job.seconds)
        timeout = _first(fields.get("timeout"), self.pool.timeout)
        if timeout and seconds > timeout:
            self.rest(timeout)
            self.time_out(record, name, last=0 < tries <= record.attempts)
        if self.chance.random() < job.kills:
            self.rest(seconds / 2)
            raise KilledError
        self.rest(seconds)
        self.finish(record, job, last=0 < tries <= record.attempts)

    def time_out(self, record: Record, name: str, *, last: bool) -> None:
        """The alarm of `--timeout`: a job with no try left has failed; the process kills itself either way."""
        if last:
            text = f"Illuminate\\Queue\\TimeoutExceededException: {name} has timed out."
            laravel.fail(self.connection, record, text + TRACE, self.now())
        raise KilledError

    def finish(self, record: Record, job: Job, *, last: bool) -> None:
        """The job threw, put itself back, or is done."""
        if self.chance.random() < job.fails:
            if last:
                laravel.fail(self.connection, record, f"RuntimeException: {job.name} failed{TRACE}", self.now())
            else:
                laravel.release(self.connection, record, self.now(), self.backoff(record))
        elif self.chance.random() < job.releases:
            laravel.release(self.connection, record, self.now(), self.backoff(record))
        else:
            laravel.delete(self.connection, record)

    def backoff(self, record: Record) -> int:
        """Seconds until the next try: of the job itself (the last of its list from then on), else of the pool."""
        own = record.fields.get("backoff")
        if own is None:
            return int(_first(record.fields.get("delay"), self.pool.backoff))
        steps = own.split(",")
        return int(steps[min(record.attempts, len(steps)) - 1])

    def now(self) -> int:
        """This machine's clock, which may be wrong, in whole seconds as PHP has them."""
        return int(self.wall() + self.pool.ahead)

    def restart_signal(self) -> str | None:
        """When `queue:restart` was called last, as far as this worker's cache knows."""
        return None if self.pool.own_cache else laravel.cached(self.connection, laravel.RESTART, self.now())

    def paused(self, queue: str) -> bool:
        """Whether `queue:pause` holds this queue, as far as this worker's cache knows."""
        if self.pool.own_cache:
            return False
        return laravel.cached(self.connection, laravel.PAUSED.format(queue=queue), self.now()) is not None


def _first(own: int | None, general: int) -> int:
    """What the job says itself, 0 included; else what holds for all."""
    return general if own is None else own
