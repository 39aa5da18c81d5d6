"""
What is known of the jobs that workers hold, from reading to reading. Arithmetic only.

On PostgreSQL a job that is released or retried comes back under a new id. So the same id with a
later `reserved_at` and more attempts was handed out again, while or after its first worker had it.
On Redis a release keeps the id, so there that is said only of a job that was seen held past retry_after.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from ..model import Distribution
from ..queues import EARLIEST, OTHER, TEN_YEARS
from . import payloads

BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 90.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0)  # seconds
TIMEOUT_KEPT = 3600  # seconds for which a class's timeout is shown after it was seen
GONE_KEPT = 3600  # seconds for which a job that is past retry_after may wait for its second worker
SLACK = 10  # seconds that a worker may need to die of its timeout


Id = Hashable


class Job(NamedTuple):
    """A job that a worker holds, as the far side says at one moment."""

    id: Id
    queue: str  # the name it is shown under
    attempts: int
    reserved_at: int  # Unix time by the worker's clock
    payload: str | None  # its beginning; None if the job was known


class Reading(NamedTuple):
    """Jobs that were looked at."""

    now: int  # Unix time by the far side's clock
    asked: frozenset[Id]  # those of which there is no row are not held any more
    rows: tuple[Job, ...]
    shown: frozenset[str]  # the queues of which something is kept
    since: int | None  # when a pass saw all jobs that were held then, and none that is new now; None if none did


class Held(NamedTuple):
    """A reservation."""

    queue: str
    job_class: str
    timeout: float | None  # seconds, inf for none; None where nobody knows
    attempts: int
    reserved_at: int
    seen: int  # when it was last looked at, by the far side's clock
    long: bool = False  # whether it has been counted as one that takes long

    @property
    def age(self) -> int:
        """Seconds for which it is known to have lasted; 0 while a worker's clock is ahead."""
        return max(0, self.seen - self.reserved_at)


class Repeat(NamedTuple):
    """A job that was handed out again."""

    id: Id
    held: Held  # the new reservation
    after: int  # seconds for which the one before had lasted


class Timeout(NamedTuple):
    """The largest timeout of a class, and when it was seen, by the far side's clock."""

    seconds: float
    seen: int


@dataclass(frozen=True)
class Rules:
    """What the settings say, by the name that a queue is shown under. Seconds."""

    retry_after: Callable[[str], float]  # inf where a job is never handed out again
    worker_timeout: Callable[[str], float | None]  # the longest; None if nobody said
    job_class: Callable[[str | None], str]  # the name that a class is shown under
    release_keeps_id: bool = False


@dataclass
class Ledger:
    """All that is known. A reading makes a new one, so the same reading twice does no harm."""

    rules: Rules
    held: dict[Id, Held] = field(default_factory=dict)
    repeated: Counter[str] = field(default_factory=Counter)  # by queue
    long: Counter[tuple[str, str]] = field(default_factory=Counter)  # by queue and class, from 0 on
    lengths: dict[str, Distribution] = field(default_factory=dict)  # of reservations that have ended
    newest: dict[str, int] = field(default_factory=dict)  # reserved_at by queue
    leads: dict[str, int] = field(default_factory=dict)  # of the workers' clocks, since the last pass
    timeouts: dict[tuple[str, str], Timeout] = field(default_factory=dict)
    last_repeat: Repeat | None = None
    gone: dict[Id, Held] = field(default_factory=dict)  # seen past retry_after, and then no more; where ids are kept
    folded: int = 0  # classes that came after too many others

    def after(self, reading: Reading, *, is_pass: bool) -> Ledger:
        """What is known after this reading; with a pass, evidence about clocks begins anew."""
        shown = reading.shown
        new = Ledger(
            self.rules,
            dict(self.held),
            Counter({queue: count for queue, count in self.repeated.items() if queue in shown}),
            Counter({key: count for key, count in self.long.items() if key[0] in shown}),
            {queue: lengths for queue, lengths in self.lengths.items() if queue in shown},
            {queue: newest for queue, newest in self.newest.items() if queue in shown},
            {} if is_pass else dict(self.leads),
            {key: t for key, t in self.timeouts.items() if reading.now - t.seen < TIMEOUT_KEPT and key[0] in shown},
            self.last_repeat,
            {id_: held for id_, held in self.gone.items() if reading.now - held.seen < GONE_KEPT},
            self.folded,
        )
        new._read(reading)
        return new

    def past_timeout(self, queue: str) -> int:
        """How many jobs are held for longer than their timeout allows, and are not expired yet."""
        retry_after = self.rules.retry_after(queue)
        return sum(
            held.queue == queue and held.timeout is not None and held.timeout + SLACK < held.age < retry_after
            for held in self.held.values()
        )

    def nearly_long(self, within: float) -> frozenset[Id]:
        """The ids of those that have lasted for half of retry_after, or will have within so many seconds."""
        return frozenset(
            id_ for id_, held in self.held.items() if held.age + within > self.rules.retry_after(held.queue) / 2
        )

    def nearly_expired(self, within: float) -> bool:
        """Whether one of them is past retry_after, or will be within so many seconds."""
        return any(held.age + within > self.rules.retry_after(held.queue) for held in self.held.values())

    def _read(self, reading: Reading) -> None:
        rows = {row.id: row for row in reading.rows if EARLIEST <= row.reserved_at <= reading.now + TEN_YEARS}
        for id_ in reading.asked - rows.keys():
            if (held := self.held.pop(id_, None)) is not None:
                self._leave(id_, held)
        for id_, row in rows.items():
            before = self.held.get(id_)
            if before is None:
                held, since = self._come_back(row, self._begin(row, reading.now)), reading.since
            elif row.attempts > before.attempts and row.reserved_at > before.reserved_at:
                held, since = self._again(row, before, reading.now), before.seen
            else:
                held, since = before._replace(seen=reading.now), None
            self.held[id_] = self._judged(held)
            self._compare_clocks(held, since)

    def _begin(self, row: Job, now: int) -> Held:
        payload = payloads.read(row.payload or "")
        job_class = self.rules.job_class(payload.job_class)
        self.folded += job_class == OTHER and payload.job_class is not None
        own = self.rules.worker_timeout(row.queue) if payload.timeout is None else payload.timeout or inf
        if own is not None:
            key = row.queue, job_class
            largest = max(own, self.timeouts[key].seconds if key in self.timeouts else own)
            self.timeouts[key] = Timeout(largest, now if own == largest else self.timeouts[key].seen)
        self.long.setdefault((row.queue, job_class), 0)
        return Held(row.queue, job_class, own, row.attempts, row.reserved_at, now)

    def _leave(self, id_: Id, held: Held) -> None:
        self._end(held)
        if self.rules.release_keeps_id and held.age >= self.rules.retry_after(held.queue):
            self.gone[id_] = held

    def _come_back(self, row: Job, held: Held) -> Held:
        before = self.gone.pop(row.id, None)
        if before is not None and row.attempts > before.attempts:
            self._tell(row, before, held)
        return held

    def _again(self, row: Job, before: Held, now: int) -> Held:
        if self.rules.release_keeps_id and before.age < self.rules.retry_after(before.queue):
            self._end(before)  # as far as anybody saw, it was released
            return before._replace(attempts=row.attempts, reserved_at=row.reserved_at, seen=now, long=False)
        return self._repeat(row, before, now)

    def _repeat(self, row: Job, before: Held, now: int) -> Held:
        self._end(before if before.long else self._counted(before))  # it has lasted for all of retry_after
        held = before._replace(attempts=row.attempts, reserved_at=row.reserved_at, seen=now, long=False)
        self._tell(row, before, held)
        return held

    def _tell(self, row: Job, before: Held, held: Held) -> None:
        self.repeated[before.queue] += row.attempts - before.attempts  # each pop adds one
        self.last_repeat = Repeat(row.id, held, before.age)

    def _judged(self, held: Held) -> Held:
        takes_long = not held.long and held.age > self.rules.retry_after(held.queue) / 2
        return self._counted(held) if takes_long else held

    def _counted(self, held: Held) -> Held:
        self.long[held.queue, held.job_class] += 1
        return held._replace(long=True)

    def _end(self, held: Held) -> None:
        lengths = self.lengths.get(held.queue, NOTHING)
        counts = list(lengths.counts)
        counts[bisect_left(BUCKETS, held.age)] += 1
        self.lengths[held.queue] = Distribution(tuple(counts), lengths.sum + held.age)

    def _compare_clocks(self, held: Held, since: int | None) -> None:
        """It was reserved between `since` and now: by what `reserved_at` lies outside, the worker's clock is wrong."""
        self.newest[held.queue] = max(held.reserved_at, self.newest.get(held.queue, held.reserved_at))
        lead = held.reserved_at - held.seen
        if lead < 0:
            lead = 0 if since is None else min(0, held.reserved_at - since)
        if abs(lead) >= abs(self.leads.get(held.queue, 0)):
            self.leads[held.queue] = lead


NOTHING = Distribution((0,) * (len(BUCKETS) + 1), 0.0)
