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
from .. import named
from ..resp.link import Command
from ..resp.replies import Reply, failures
from .found import Found
from .heads import HEAD, Line, look
from .metrics import OVERDUE
from .session import Answer, Session

LOOKED = 10  # seconds in which a worker that is there has looked for due jobs; by itself it does so every 3 s
EMPTY = (
    "no queue has had a job so far: are the prefix {!r} and the database {} right? (In Redis an empty queue does not "
    "exist.)"
)
NEVER = "in {} no job was seen for an hour and more, and in others some were: is that what Laravel calls it?"
LONG_ENOUGH = 3600.0  # seconds without a job after which the name of a queue is in doubt
MOST_NAMED = 10  # of those queues in one note
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


def commands(key: bytes, now: int, head: int) -> list[Command]:
    """The questions for one queue, in the order of `Asked`; each takes as long with a million jobs as with one."""
    line: list[Command] = [("LLEN", key), ("LRANGE", key, 0, head - 1)]
    return [*line, *_set(key + b":delayed", now, now), *_set(key + b":reserved", now)]


def _set(key: bytes, now: int, first_until: int | str = "+inf") -> list[Command]:
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
    unfound: SourceError | None  # why nobody could look for more
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
        self.never = {*self.settings.queues}  # named queues in which no job was seen so far
        self.began: float | None = None  # Unix time of the first answer

    def fetch(self, deadline: Deadline) -> Raw:
        unfound = self._look_on(deadline) if self.settings.discover else None
        remembered = (queue for queue in self.session.shown if queue != OTHER)  # it stands for many
        asked = tuple(dict.fromkeys((*self.settings.queues, *self.found.queues, *remembered)))
        answer = self.session.ask(deadline, lambda now: [c for queue in asked for c in self._commands(queue, now)])
        self.session.raise_shared(next(failures(part), None) for part in chunks(answer.replies))
        return Raw(answer, asked, self.found.unseen, unfound, self.lines, self.dropped)

    def _look_on(self, deadline: Deadline) -> SourceError | None:
        """Look for queues; that somebody may not is no reason to hide those that are known."""
        try:
            self.found.look_on(deadline)
        except SourceError as failure:
            if failure.unreachable:
                raise
            return SourceError(failure.reason, f"looking for queues: {failure}")
        return None

    def _commands(self, queue: str, now: int) -> list[Command]:
        head = HEAD if self.session.once else self.lines.get(queue, Line()).ask_for
        return commands(self.session.key(queue), now, head)

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
                self.lines[queue] = raw.before.get(queue, Line())
                yield SourceError(failure.reason, f"queue {queue!r}: {failure}")
        yield from self._shown(by_queue, raw, now)
        if raw.unfound:
            yield raw.unfound

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
            0 if expires and states["reserved"] else asked.delayed_overdue + (asked.reserved_overdue if expires else 0),
        )

    def _shown(self, by_queue: Mapping[str, Numbers], raw: Raw, now: float) -> Iterator[Sample | Note]:
        sizes = {queue: numbers.states.total() for queue, numbers in by_queue.items() if numbers.states.total()}
        names = self.session.remembered.shown(sizes, now)
        unanswered = {queue for queue in raw.asked if queue not in by_queue}
        as_before = {queue: name for queue, name in self.session.shown.items() if queue in unanswered}
        self.session.shown = as_before | {queue: readable(name) for queue, name in names.items()}
        self.dropped = raw.dropped + raw.unseen + sum(queue != name for queue, name in names.items())
        yield queues.DROPPED(self.dropped, self.session.name, self.name, "queue")
        without = {*as_before.values(), *([OTHER] if raw.unseen else [])}
        shown = sorted({*self.session.shown.values()} - without)
        for name in shown:
            numbers = sum(self._called(name, by_queue), Numbers())
            yield from samples(numbers, self.session.connection_of(name), name)
        yield from named.of_shown(self.settings, self.session.name, shown)
        if raw.unseen:
            yield Note(MORE.format(raw.unseen))
        yield from self._doubts(by_queue, sizes, now, is_whole=len(by_queue) == len(raw.asked))

    def _called(self, name: str, by_queue: Mapping[str, Numbers]) -> Iterator[Numbers]:
        """Those of all queues that are shown under one name."""
        return (by_queue[queue] for queue, shown in self.session.shown.items() if shown == name and queue in by_queue)

    def _doubts(
        self, by_queue: Mapping[str, Numbers], sizes: Mapping[str, int], now: float, *, is_whole: bool
    ) -> Iterator[Note]:
        """Whether somebody may have misspelt something: what is not there and what is empty look alike."""
        self.had_jobs = self.had_jobs or bool(sizes)
        self.never -= sizes.keys()
        self.began = now if self.began is None else self.began
        if not self.had_jobs and is_whole:
            yield Note(EMPTY.format(self.settings.prefix, self.settings.target().database), doubts=True)
        never = sorted(self.never & by_queue.keys())
        if self.had_jobs and never and now - self.began >= LONG_ENOUGH:
            yield Note(NEVER.format(", ".join(map(repr, never[:MOST_NAMED]))))


def readable(queue: str) -> str:
    """A queue's name as it can be shown: bytes that are no text are replaced."""
    return queue.encode(errors="surrogateescape").decode(errors="replace")


def chunks(replies: list[Reply]) -> Iterator[list[Reply]]:
    """The replies of each queue."""
    return (replies[at : at + MANY] for at in range(0, len(replies), MANY))


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
