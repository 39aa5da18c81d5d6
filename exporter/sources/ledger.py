"""
What is known of the jobs that workers hold, from reading to reading. Arithmetic only.

On PostgreSQL a job that is released or retried comes back under a new id. So the same id with a
later `reserved_at` and more attempts was handed out again, while or after its first worker had it.
On Redis a release keeps the id, so there this is said only of a job that was seen held past retry_after.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple

from ..model import Distribution
from ..queues import EARLIEST, OTHER, TEN_YEARS
from . import payloads

BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 90.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0)  # seconds
NOTHING = Distribution((0,) * (len(BUCKETS) + 1), 0.0)
TIMEOUT_KEPT = 3600  # seconds for which a class's timeout is shown after it was seen
GONE_KEPT = 3600  # seconds for which a job that is past retry_after may wait for its second worker
MOST_CLASSES = 500  # pairs of a queue and a class that are shown; what comes later is the class `other`
SLACK = 10  # seconds that a worker may need to die of its timeout


class Key(NamedTuple):
    """
    By what a job is known again.

    In a table its id alone may come back as another job's: in a view of several tables, or with
    RESTART IDENTITY. `available_at` stays as it is for as long as the row is there.
    """

    id: Any  # a number in a table, a text in Redis
    available_at: int = 0


class Job(NamedTuple):
    """A job that a worker holds, as the far side says at one moment."""

    key: Key
    queue: str  # the name it is shown under
    attempts: int
    reserved_at: int  # Unix time by the worker's clock
    payload: str | None  # its beginning; None if the job was known
    since: int | None  # when nobody held it yet, by the far side's clock; None if nobody looked


class Reading(NamedTuple):
    """Jobs that were looked at."""

    now: int  # Unix time by the far side's clock
    is_pass: bool  # whether they are all that were held, and not only those that are watched
    asked: frozenset[Any]  # ids; those of which there is no row are not held any more
    rows: tuple[Job, ...]
    queues: frozenset[str]  # that are shown


class Held(NamedTuple):
    """A reservation."""

    queue: str
    job_class: str
    timeout: float | None  # the job's own, in seconds, inf for none; None where its workers' applies
    attempts: int
    reserved_at: int
    seen: int  # when it was last looked at, by the far side's clock
    long: bool = False  # whether it has been counted as one that takes long

    @property
    def age(self) -> int:
        """Seconds for which it is known to have lasted; 0 while a worker's clock is ahead."""
        return max(0, self.seen - self.reserved_at)


class OfQueue(NamedTuple):
    """What is known of the reservations of one queue."""

    repeated: int = 0
    lengths: Distribution = NOTHING  # of those that have ended
    newest: int | None = None  # reserved_at, or when it was seen if that is ahead; None if there was none
    lead: int | None = None  # of its workers' clocks, since the last pass; None if nothing was held


class OfClass(NamedTuple):
    """What is known of the reservations of one class in one queue."""

    long: int = 0
    is_new: bool = True  # until the next pass
    timeout: float | None = None  # the largest
    timeout_seen: int = 0


class Repeat(NamedTuple):
    """A job that was handed out again."""

    key: Key
    held: Held  # the new reservation
    after: int  # seconds for which the one before had lasted, at least


@dataclass(frozen=True)
class Rules:
    """What the settings say, by the name that a queue is shown under. Seconds."""

    interval: float  # between two passes
    retry_after: Callable[[str], float]  # inf where a job is never handed out again
    worker_timeout: Callable[[str], float | None]  # the longest; None if nobody said
    job_class: Callable[[str | None], str]  # the name that a class is shown under
    release_keeps_id: bool = False


@dataclass
class Ledger:
    """All that is known. A reading makes a new one, so the same reading twice does no harm."""

    rules: Rules
    held: dict[Key, Held] = field(default_factory=dict)
    queues: dict[str, OfQueue] = field(default_factory=dict)
    classes: dict[tuple[str, str], OfClass] = field(default_factory=dict)  # by queue and class
    watched: frozenset[Key] = frozenset()  # held for half of retry_after, or about to be before the next pass
    last_repeat: Repeat | None = None
    gone: dict[Key, Held] = field(default_factory=dict)  # seen past retry_after, and then no more; where ids are kept
    folded: int = 0  # reservations whose class came after too many others

    def after(self, reading: Reading) -> Ledger:
        """What is known after this reading. Only queues that are shown are kept."""
        new = replace(
            self,
            held=dict(self.held),
            queues={queue: self.queues.get(queue, OfQueue()) for queue in reading.queues},
            classes={key: of for key, of in self.classes.items() if key[0] in reading.queues},
            gone={key: held for key, held in self.gone.items() if reading.now - held.seen < GONE_KEPT},
        )
        new.read(reading)
        return new

    def read(self, reading: Reading) -> None:
        """Take in what was seen."""
        if reading.is_pass:
            self._begin_pass(reading.now)
        rows = {row.key: row for row in reading.rows if is_plausible(row, reading.now)}
        for key in [key for key in self.held if key.id in reading.asked and key not in rows]:
            self._leave(key, self.held.pop(key))
        for key, row in rows.items():
            before = self.held.get(key)
            held = self._come(row, reading.now) if before is None else self._go_on(before, row, reading.now)
            self._keep_timeout(held)
            self._compare_clocks(row, reading.now)
            is_long = not held.long and self._beyond_half(held, held.seen) > 0
            self.held[key] = self._counted(held) if is_long else held
        soon = self.rules.interval
        self.watched = frozenset(
            key for key, held in self.held.items() if self._beyond_half(held, reading.now + soon) > 0
        )

    def past_timeout(self) -> Counter[str]:
        """By queue: how many jobs are held for longer than their timeout allows, and are not expired yet."""
        return Counter(
            held.queue
            for held in self.held.values()
            if (timeout := self.timeout_of(held)) is not None
            and timeout + SLACK < held.age < self.rules.retry_after(held.queue)
        )

    def timeout_of(self, held: Held) -> float | None:
        """Seconds that this job may take, as is known now: who told of its workers may have come later than the job."""
        return self.rules.worker_timeout(held.queue) if held.timeout is None else held.timeout

    def nearly_expired(self) -> bool:
        """Whether one of them is past retry_after, or will be before the next pass."""
        return any(held.age + self.rules.interval > self.rules.retry_after(held.queue) for held in self.held.values())

    def _begin_pass(self, now: int) -> None:
        """Evidence about clocks begins anew, classes are not new any more, and what was seen long ago is forgotten."""
        for queue in self.queues:
            self._of_queue(queue, lead=None)
        for key, of in self.classes.items():
            is_old = now - of.timeout_seen >= TIMEOUT_KEPT
            self.classes[key] = of._replace(is_new=False, timeout=None if is_old else of.timeout)

    def _come(self, row: Job, now: int) -> Held:
        held, before = self._begin(row, now), self.gone.pop(row.key, None)
        if before is not None and row.attempts > before.attempts:
            self._tell(row, before, held)
        return held

    def _leave(self, key: Key, held: Held) -> None:
        self._end(held)
        if self.rules.release_keeps_id and held.age >= self.rules.retry_after(held.queue):
            self.gone[key] = held

    def _begin(self, row: Job, now: int) -> Held:
        payload = payloads.read(row.payload or "")
        job_class = self.rules.job_class(payload.job_class)
        if (row.queue, job_class) not in self.classes and len(self.classes) >= MOST_CLASSES:
            job_class = OTHER
        self.folded += job_class == OTHER and payload.job_class is not None
        timeout = None if payload.timeout is None else payload.timeout or inf
        return Held(row.queue, job_class, timeout, row.attempts, row.reserved_at, now)

    def _go_on(self, before: Held, row: Job, now: int) -> Held:
        held = before._replace(queue=row.queue, attempts=row.attempts, reserved_at=row.reserved_at, seen=now)
        is_later = row.reserved_at > before.reserved_at or self.rules.release_keeps_id  # perhaps in the same second
        if row.attempts <= before.attempts or not is_later:
            return held  # as it was, or changed by hand
        held = held._replace(long=False)
        if self.rules.release_keeps_id and before.age < self.rules.retry_after(before.queue):
            self._end(before)  # as far as anybody saw, it was released
            return held
        # Until now it has lasted for all of retry_after, unless the second worker's clock is ahead.
        self._end(self._counted(before) if not before.long and self._beyond_half(before, now) > 0 else before)
        self._tell(row, before, held)
        return held

    def _tell(self, row: Job, before: Held, held: Held) -> None:
        # Each pop adds an attempt, and comes no sooner than retry_after after the one before.
        most = 1 + (row.reserved_at - before.reserved_at) // self.rules.retry_after(row.queue)
        again = min(row.attempts - before.attempts, most)
        self._of_queue(row.queue, repeated=self.queues[row.queue].repeated + again)
        self.last_repeat = Repeat(row.key, held, before.age)

    def _end(self, held: Held) -> None:
        lengths = self.queues.get(held.queue, OfQueue()).lengths
        counts = list(lengths.counts)
        counts[bisect_left(BUCKETS, held.age)] += 1
        self._of_queue(held.queue, lengths=Distribution(tuple(counts), lengths.sum + held.age))

    def _beyond_half(self, held: Held, now: float) -> float:
        """Seconds for which it has, or will have, lasted beyond half of retry_after; negative before that."""
        return now - held.reserved_at - self.rules.retry_after(held.queue) / 2

    def _counted(self, held: Held) -> Held:
        self._of_class(held, long=self._of_class(held).long + 1)
        return held._replace(long=True)

    def _keep_timeout(self, held: Held) -> None:
        largest, timeout = self._of_class(held).timeout, self.timeout_of(held)
        if timeout is not None and (largest is None or timeout >= largest):
            self._of_class(held, timeout=timeout, timeout_seen=held.seen)

    def _compare_clocks(self, row: Job, now: int) -> None:
        """It was reserved between `since` and now: outside lies what a wrong clock wrote or came late."""
        ahead = max(0, row.reserved_at - now)
        behind = 0 if row.since is None else min(0, row.reserved_at - row.since)
        lead, of = ahead or behind, self.queues[row.queue]
        self._of_queue(
            row.queue,
            newest=max(min(row.reserved_at, now), of.newest or 0),
            lead=lead if abs(lead) >= abs(of.lead or 0) else of.lead,
        )

    def _of_queue(self, queue: str, **known: Any) -> OfQueue:
        of = self.queues[queue] = self.queues.get(queue, OfQueue())._replace(**known)
        return of

    def _of_class(self, held: Held, **known: Any) -> OfClass:
        key = held.queue, held.job_class
        of = self.classes[key] = self.classes.get(key, OfClass())._replace(**known)
        return of


def is_plausible(row: Job, now: int) -> bool:
    """Whether this can be the time of a reservation."""
    return EARLIEST <= row.reserved_at <= now + TEN_YEARS
