"""The queues: how many jobs are in which state, how long the oldest has been waiting, and whether anybody looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ... import queues
from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...queues import EARLIEST, OTHER, TEN_YEARS
from ...source import Result
from ...timing import Deadline
from ..resp.link import Command
from ..resp.replies import Reply
from .found import Found
from .heads import HEAD, Line, look
from .metrics import OVERDUE
from .session import Answer, Session
from .settings import Redis

LOOKED = 10  # seconds in which a worker that is there has looked for due jobs; by itself it does so every 3 s
EMPTY = "no queue has had a job so far: is the prefix {!r} right? (In Redis an empty queue does not exist.)"
MORE = "more than 1,000 queues were found, and {:,} keys of others: so nobody knows what 'other' would be"


class Asked(NamedTuple):
    """What is asked of one queue. `delayed` and `reserved` are sorted by when they are due, and when they expire."""

    length: int
    head: list[bytes]  # the payloads of those who are first in line
    delayed: int
    delayed_due: int
    delayed_overdue: int
    delayed_early: int  # due before Laravel was there
    delayed_late: int  # due in more than ten years
    first_due: list[bytes]  # of those that are due the first, and when
    reserved: int
    reserved_due: int
    reserved_overdue: int
    reserved_early: int
    reserved_late: int
    first_reserved: list[bytes]


def commands(key: str, now: int, head: int) -> list[Command]:
    """The questions for one queue, in the order of `Asked`; each takes as long with a million jobs as with one."""
    line: list[Command] = [("LLEN", key), ("LRANGE", key, 0, head - 1)]
    return [*line, *_set(f"{key}:delayed", now, now), *_set(f"{key}:reserved", now)]


def _set(key: str, now: int, first_until: int | str = "+inf") -> list[Command]:
    return [
        ("ZCARD", key),
        ("ZCOUNT", key, "-inf", now),
        ("ZCOUNT", key, "-inf", now - LOOKED),
        ("ZCOUNT", key, "-inf", f"({EARLIEST}"),
        ("ZCOUNT", key, f"({now + TEN_YEARS}", "+inf"),
        ("ZRANGEBYSCORE", key, EARLIEST, first_until, "WITHSCORES", "LIMIT", 0, 1),
    ]


MANY = len(Asked._fields)


@dataclass
class Numbers:
    """What is said of one queue. Two that are shown under one name are added up."""

    states: Counter[str] = field(default_factory=Counter)
    oldest: float | None = 0.0  # seconds; None where nobody can know
    longest_held: float = 0.0
    implausible: int = 0
    overdue: int = 0

    def __add__(self, other: Numbers) -> Numbers:
        oldest = max(self.oldest or 0.0, other.oldest or 0.0)
        is_known = oldest > 0.0 or None not in (self.oldest, other.oldest)
        return Numbers(
            self.states + other.states,
            oldest if is_known else None,
            max(self.longest_held, other.longest_held),
            self.implausible + other.implausible,
            self.overdue + other.overdue,
        )


class Raw(NamedTuple):
    """What a poll brought."""

    answer: Answer
    asked: tuple[str, ...]  # queues
    unseen: int  # keys of queues that were found, but are too many to be asked for
    before: Mapping[str, Line]
    dropped: int  # queues that earlier answers had too many


class Queues:
    """One pipeline: the same few commands for each queue, whatever is in it."""

    name = "queues"
    metrics: tuple[Metric, ...] = (
        queues.JOBS,
        queues.OLDEST_JOB_AGE,
        queues.OLDEST_RESERVED_AGE,
        queues.IMPLAUSIBLE,
        OVERDUE,
        queues.QUEUES,
        queues.TARGET_WAIT,
        queues.RETRY_AFTER,
        queues.DROPPED,
    )

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval
        self.found = Found(session)
        self.lines: dict[str, Line] = {}
        self.dropped = 0
        self.had_jobs = False

    def fetch(self, deadline: Deadline) -> Raw:
        if self.settings.discover:
            self.found.look_on(deadline)
        known = dict.fromkeys((*self.settings.queues, *self.found.queues, *self.session.shown))
        asked = tuple(queue for queue in known if queue != OTHER)
        answer = self.session.ask(deadline, lambda now: [c for queue in asked for c in self._commands(queue, now)])
        parts = [next(failures(part), None) for part in chunks(answer.replies)]
        if parts and (failure := parts[0]) and all(parts):
            raise failure  # it is not the fault of a single queue
        return Raw(answer, asked, self.found.unseen, self.lines, self.dropped)

    def _commands(self, queue: str, now: int) -> list[Command]:
        head = HEAD if self.session.once else self.lines.get(queue, Line()).ask_for
        return commands(f"{self.settings.prefix}queues:{queue}", now, head)

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        if raw.answer.withheld:
            yield raw.answer.withheld
            return
        by_queue: dict[str, Numbers] = {}
        self.lines = {}
        for queue, part in zip(raw.asked, chunks(raw.answer.replies), strict=True):
            failure = next(failures(part), None)
            if failure is None:
                by_queue[queue] = self._numbers(queue, Asked(*part), raw)
            else:
                yield SourceError(failure.reason, f"queue {queue!r}: {failure}")
        yield from self._shown(by_queue, raw, now)

    def _numbers(self, queue: str, asked: Asked, raw: Raw) -> Numbers:
        now, retry_after = raw.answer.now, self.settings.retry_after_of(queue)
        expires = retry_after is not None
        expired = asked.reserved_due if expires else 0
        states = {
            "ready": asked.length + asked.delayed_due,
            "delayed": max(0, asked.delayed - asked.delayed_due),  # a job may come between two questions
            "reserved": max(0, asked.reserved - expired),
            "expired": expired,
        }
        is_idle = states["ready"] + expired == 0
        line = self.lines[queue] = look(asked.head, raw.before.get(queue, Line()), now, is_idle=is_idle)
        due, expiry = score(asked.first_due), score(asked.first_reserved)
        is_expired = expiry is not None and expires and expiry <= now
        since = [line.since, due, expiry if is_expired else None]  # the first who could be taken
        held_since = expiry if expiry is None else expiry - (retry_after or 0)
        return Numbers(
            Counter(states),
            oldest_age(since, now, is_known=line.since is not None or not asked.length),
            0.0 if held_since is None else max(0.0, now - held_since),
            asked.delayed_early + asked.delayed_late + asked.reserved_early + asked.reserved_late,
            asked.delayed_overdue + (asked.reserved_overdue if expires else 0),
        )

    def _shown(self, by_queue: Mapping[str, Numbers], raw: Raw, now: float) -> Iterator[Sample | Note]:
        sizes = {queue: numbers.states.total() for queue, numbers in by_queue.items() if numbers.states.total()}
        self.had_jobs = self.had_jobs or bool(sizes)
        names = self.session.remembered.shown(sizes, now)
        failed = set(raw.asked) - by_queue.keys()
        self.session.shown = {queue: name for queue, name in names.items() if queue not in failed}
        self.dropped = raw.dropped + raw.unseen + sum(queue != name for queue, name in names.items())
        yield queues.DROPPED(self.dropped, self.session.name, self.name, "queue")
        watched = Counter({self.session.name: 0})
        for name in sorted({*self.session.shown.values()} - ({OTHER} if raw.unseen else set())):
            connection = self.session.connection_of(name)
            watched[connection] += 1
            numbers = [by_queue[queue] for queue, shown_as in names.items() if shown_as == name and queue in by_queue]
            yield from samples(sum(numbers, Numbers()), connection, name)
            if name not in self.settings.queues:
                yield from queue_settings(self.settings, self.session.name, name)
        for connection, count in watched.items():
            yield queues.QUEUES(count, connection)
        if raw.unseen:
            yield Note(MORE.format(raw.unseen))
        if not self.had_jobs and not failed:
            yield Note(EMPTY.format(self.settings.prefix))


def chunks(replies: list[Reply]) -> Iterator[list[Reply]]:
    """The replies of each queue."""
    return (replies[at : at + MANY] for at in range(0, len(replies), MANY))


def failures(replies: list[Reply]) -> Iterator[SourceError]:
    """Those replies that are none."""
    return (reply for reply in replies if isinstance(reply, SourceError))


def score(pair: list[bytes]) -> float | None:
    """The score of a member that was asked for with it; None where there is none."""
    return float(pair[1]) if pair else None


def oldest_age(since: Iterable[float | None], now: int, *, is_known: bool) -> float | None:
    """
    Seconds since the first of these; 0 where there is none; None where somebody waits, but nobody knows how long.

    Where only a part is known, the age is a lower bound.
    """
    known = [then for then in since if then is not None]
    if not known and not is_known:
        return None
    return max((0.0, *(now - then for then in known)))


def samples(numbers: Numbers, connection: str, queue: str) -> Iterator[Sample]:
    """What is said of one queue."""
    for state in queues.STATES:
        yield queues.JOBS(numbers.states[state], connection, queue, state)
    if numbers.oldest is not None:
        yield queues.OLDEST_JOB_AGE(numbers.oldest, connection, queue)
    yield queues.OLDEST_RESERVED_AGE(numbers.longest_held, connection, queue)
    yield queues.IMPLAUSIBLE(numbers.implausible, connection, queue)
    yield OVERDUE(numbers.overdue, connection, queue)


def queue_settings(settings: Redis, source: str, queue: str) -> Iterator[Sample]:
    """What is set for one queue, as metrics to compare with."""
    connection = settings.connection_of(queue, source)
    if (retry_after := settings.retry_after_of(queue)) is not None:
        yield queues.RETRY_AFTER(retry_after, connection, queue)
    if (target := settings.target_wait_of(queue)) is not None:
        yield queues.TARGET_WAIT(target, connection, queue)
