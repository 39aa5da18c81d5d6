"""The failed_jobs table: how many rows it has, and what failed since we look, by class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from psycopg import sql

from ... import queues
from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...queues import OTHER
from ...timing import BELIEF, Deadline
from .. import payloads
from ..remembered import Name, Remembered
from .session import GaveUpError, Poll, Row, Session, too_far_behind

MOST_READ = 1000  # new rows in one poll; the next one goes on where it stopped
FIRST = 300  # the last ids so far, whose classes are shown from the start
LATE = 60.0  # seconds in which a row may come below the highest id: its transaction was open for so long
MOST_MISSING = 1000  # ids for which we wait so long
LONGEST_COUNT = 0.5  # seconds
SLOWER = 20  # counting reads the whole table, so once in so many intervals is enough
MOST_CONNECTIONS = 10  # found ones; the settings name the others

NO_ID = "the table has no id that counts up, so its rows are counted, but not what failed by class"
NO_PAYLOAD = "the payloads cannot be read, so all that failed is of the class 'other'"
MORE = f"{MOST_READ} failures were read at once: the next poll counts what there is beyond them"
UNCOUNTED = "the rows could not be counted ({}): an index on (connection, queue) and a vacuum make that cheap"

Queue = tuple[str, str]  # of a connection
Class = tuple[str, str, str]  # of a job of a queue of a connection


class Counted(NamedTuple):
    """The rows of each queue, and when they were counted, on the monotonic clock."""

    rows: list[Row]
    mono: float


class Tally(NamedTuple):
    """What has been read so far, and what came of it. Replaced at each poll."""

    read_to: int | None = None  # the highest id; None before the first poll
    missing: Mapping[int, float] = {}  # ids below it without a row, and since when, on the monotonic clock
    failures: Mapping[Class, int] = {}  # by the names that are shown
    dropped: Mapping[str, int] = {}  # label → values that were too many


class Names(NamedTuple):
    """Connections, and queues of connections that are shown, each with the name that it is shown under."""

    connections: Mapping[str, str]
    queues: Mapping[Queue, Queue]

    def of(self, queue: Queue) -> Queue:
        """The name that this queue is shown under."""
        return self.queues[self.connections[queue[0]], queue[1]]


class Raw(NamedTuple):
    """What a poll brought."""

    withheld: Note | None  # why nothing was read, if it was not
    has_id: bool
    has_payload: bool
    rows: list[Row]  # new ones, each with the highest id of all, and that from which on it looked
    counted: Counted | None
    uncounted: str  # why there is no newer count, if there should be one
    mono: float
    before: Tally


class FailedJobs:
    """Reads new rows by id, of which each is counted once, and counts all rows now and then."""

    name = "failed_jobs"
    metrics: tuple[Metric, ...] = (queues.FAILED, queues.FAILED_TOTAL, queues.DROPPED)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval
        named = [(self.settings.connection_of(queue, session.name), queue) for queue in self.settings.queues]
        own = {session.name, *(connection for connection, _ in named)}
        self.connections = Remembered(own, lambda _: OTHER, MOST_CONNECTIONS)
        self.queues = Remembered[Queue](named, lambda queue: (queue[0], OTHER))
        self.tally = Tally()
        self.counted: Counted | None = None
        self.uncounted, self.count_at = "", float("-inf")

    def fetch(self, deadline: Deadline) -> Raw:
        poll, before, mono = self.session.poll(deadline), self.tally, self.session.clock.mono()
        tables = poll.ask("failed_table", failed_table=self.settings.failed_table)
        if not tables:
            raise SourceError(
                "undefined_table", f"there is no table {self.settings.schema_}.{self.settings.failed_table}"
            )
        withheld, (table,) = too_far_behind(poll.replay_lag(), self.interval), tables
        has_id, has_payload, rows = table["has_id"], table["has_payload"], []
        if has_id and not withheld:
            rows = self._read(poll, before, has_payload=has_payload)
        if mono >= self.count_at and not withheld:
            self._count(poll, mono)
        return Raw(withheld, has_id, has_payload, rows, self.counted, self.uncounted, mono, before)

    def _read(self, poll: Poll, before: Tally, *, has_payload: bool) -> list[Row]:
        return poll.ask(
            "failed_rows",
            read_to=before.read_to,
            missing=[*before.missing],
            payload=sql.Identifier("payload") if has_payload else sql.NULL,
            payload_read=payloads.READ,
            payload_read_reordered=payloads.READ_REORDERED,
            first=FIRST,
            most=MOST_READ,
        )

    def _count(self, poll: Poll, mono: float) -> None:
        """Count all rows. Where that takes too long, the last count stands for a while, and the rest goes on."""
        try:
            # Whoever gives up has to be the server, or what was read is lost; and the duty has to pay for it.
            limit = min(LONGEST_COUNT, poll.deadline.left() / 2)
            self.counted, self.uncounted = Counted(poll.ask("failed_counts", limit), mono), ""
        except GaveUpError as failure:
            self.uncounted = str(failure)
        self.count_at = mono + SLOWER * self.interval

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if raw.withheld:
            yield raw.withheld
            return
        rows = [row for row in raw.rows if row["id"] is not None]
        counts = self._counts(raw)
        names = self._names(Counter(map(queue_of, rows)) + Counter(counts), now)
        if counts is not None:
            totals = Counter(dict.fromkeys(names.queues.values(), 0))
            for queue, number in counts.items():
                totals[names.of(queue)] += number
            for queue, number in totals.items():
                yield queues.FAILED(number, *queue)
        self.tally = self._add(raw, rows, names)
        for labels, number in self.tally.failures.items() if raw.has_id else ():
            # A counter born at 1 would hide that from increase(), so at first it is 0.
            yield queues.FAILED_TOTAL(number if labels in raw.before.failures else 0, *labels)
        for label, number in self.tally.dropped.items():
            yield queues.DROPPED(number, self.session.name, self.name, label)
        yield from map(Note, notes(raw, rows))

    def _counts(self, raw: Raw) -> Counter[Queue] | None:
        """The rows of each queue, if the last count may still be believed."""
        if raw.counted is None or raw.mono - raw.counted.mono > BELIEF * SLOWER * self.interval:
            return None
        counts = Counter[Queue]()
        for row in raw.counted.rows:
            counts[queue_of(row)] += row["rows"]
        return counts

    def _names(self, sizes: Counter[Queue], now: float) -> Names:
        """The names that these queues, and those that are remembered, are shown under."""
        by_connection, by_queue = Counter[str](), Counter[Queue]()
        for (connection, _), size in sizes.items():
            by_connection[connection] += size
        connections = self.connections.shown(by_connection, now)
        for (connection, queue), size in sizes.items():
            by_queue[connections[connection], queue] += size
        return Names(connections, self.queues.shown(by_queue, now))

    def _add(self, raw: Raw, rows: list[Row], names: Names) -> Tally:
        """What is known after these rows. Those of the first poll were there before us."""
        before, shown = raw.before, dict.fromkeys(names.queues.values())
        failures: dict[Class, int] = {(*queue, OTHER): 0 for queue in shown}
        failures |= {labels: number for labels, number in before.failures.items() if labels[:2] in shown}
        too_many = set()
        for row in rows:
            job_class = payloads.read(row["payload"] or "").job_class
            shown_class = self.session.classes.shown(job_class)
            if job_class not in (None, shown_class):
                too_many.add(job_class)
            labels = (*names.of(queue_of(row)), shown_class)
            failures[labels] = failures.get(labels, 0) + (before.read_to is not None)
        dropped = {"connection": folded(names.connections), "queue": folded(names.queues), "job_class": len(too_many)}
        dropped = {label: number + before.dropped.get(label, 0) for label, number in dropped.items()}
        read_to, missing = position(raw, rows) if raw.has_id else (before.read_to, before.missing)
        return Tally(read_to, missing, failures, dropped)


def queue_of(row: Row) -> Queue:
    """Connection and queue of a row. SQS's queues are URLs, of which people know the last part."""
    queue: str = row["queue"]
    return row["connection"], queue.rstrip("/").rpartition("/")[2] if "://" in queue else queue


def folded(shown: Mapping[Name, Name]) -> int:
    """How many names are not shown as they are."""
    return sum(name != shown_as for name, shown_as in shown.items())


def position(raw: Raw, rows: list[Row]) -> tuple[int, dict[int, float]]:
    """
    The highest id that was read, and which below it have no row yet.

    Ids are given out in order, but become visible when their transactions end; most ids without
    a row never get one, as it was deleted or its transaction failed.
    """
    ids: set[int] = {row["id"] for row in rows}
    began: int = raw.rows[0]["read_to"]
    read_to = max(ids | {began})
    waited_for = {id_: since for id_, since in raw.before.missing.items() if id_ not in ids and raw.mono - since < LATE}
    skipped = islice((id_ for id_ in range(read_to - 1, began, -1) if id_ not in ids), MOST_MISSING)
    return read_to, dict(sorted((dict.fromkeys(skipped, raw.mono) | waited_for).items())[-MOST_MISSING:])


def notes(raw: Raw, rows: list[Row]) -> Iterator[str]:
    """What cannot be seen."""
    if not raw.has_id:
        yield NO_ID
    elif not raw.has_payload:
        yield NO_PAYLOAD
    if sum(row["id"] > row["read_to"] for row in rows) == MOST_READ:
        yield MORE
    if raw.uncounted:
        yield UNCOUNTED.format(raw.uncounted)
