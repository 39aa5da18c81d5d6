"""The jobs that workers hold, one by one: handed out again, held for long, by whose clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ... import queues
from ...model import Limit, Metric, Note, Sample
from ...queues import OTHER, QUEUE
from ...timing import Deadline
from .. import payloads
from .ledger import BUCKETS, NOTHING, Job, Ledger, Reading, Rules
from .session import Pass, Row, Session

REPEATED = Metric(
    "laravel_queue_reservations_repeated_total",
    "Jobs handed out again: a double run if the first worker lives, a rerun if it died. A lower bound.",
    QUEUE,
    "counter",
)
LONG = Metric(
    "laravel_queue_long_reservations_total",
    "Reservations that outlasted half of retry_after; more than one in a hundred means that the p99 did.",
    (*QUEUE, "job_class"),
    "counter",
)
LENGTHS = Metric(
    "laravel_queue_reservation_seconds",
    "Lengths of reservations, up to when they were last seen: a lower bound, and below one interval a biased sample.",
    QUEUE,
    "histogram",
    buckets=BUCKETS,
)
PAST_TIMEOUT = Metric(
    "laravel_queue_reserved_past_timeout_jobs",
    "Jobs held for 10 s longer than their timeout, and not expired yet: their worker should be dead.",
    QUEUE,
    limit=Limit(0, "{value:job} held past the timeout: is the worker dead?", "LaravelQueueOrphanedReservations"),
)
TIMEOUT = Metric(
    "laravel_queue_job_timeout_seconds",
    "The largest timeout of the class's jobs held within the last hour, else that of their workers; +Inf for none.",
    (*QUEUE, "job_class"),
    limit=Limit(
        queues.RETRY_AFTER,
        "timeout {value}, not below retry_after {bound}",
        "LaravelQueueTimeoutExceedsRetryAfter",
        reached=True,
    ),
)
NEWEST = Metric(
    "laravel_queue_last_reservation_timestamp_seconds",
    "Unix time of the newest reservation seen, by its worker's clock. Absent if none was.",
    QUEUE,
)
LEAD = Metric(
    "laravel_queue_reserved_at_lead_seconds",
    "By how much a worker's clock is ahead of the database's, or behind if negative: at least. Absent if none is held.",
    QUEUE,
    limit=Limit(2, "a worker's clock is off by {value}", "LaravelQueueWorkerClockAhead", either_way=True),
)

WATCH = 2.0  # seconds between two looks at a job that is held for long; in 15 s a second worker has come and gone
MISSED = 2  # passes in a row that failed: nobody knows any more which jobs are held
TOLD = 900  # seconds for which a job that was handed out again is worth a word


class Raw(NamedTuple):
    """What a poll brought."""

    last_pass: Pass | None  # None if there is none that may be believed
    is_new: bool  # whether it brought new ids
    now: int  # by the database's clock
    asked: frozenset[int]
    rows: list[Row]
    before: Ledger
    pass_before: Pass | None


class Reservations:
    """Reads rows by primary key: all that the last pass found held, and those held for long again every 2 s."""

    name = "reservations"
    metrics: tuple[Metric, ...] = (
        REPEATED, LONG, LENGTHS, PAST_TIMEOUT, TIMEOUT, NEWEST, LEAD, queues.DROPPED,
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        rules = Rules(self.settings.retry_after_of, self.settings.worker_timeout_of, session.classes.shown)
        self.ledger = Ledger(rules)
        self.last_pass: Pass | None = None  # that was read

    @property
    def interval(self) -> float:
        """Seconds until it should be asked again: few while a job may be handed out again soon."""
        usual = self.settings.interval
        return min(WATCH, usual) if self.ledger.nearly_long(usual) else usual

    def fetch(self, deadline: Deadline) -> Raw:
        poll, session, before = self.session.poll(deadline), self.session, self.ledger
        last_pass = session.last_pass if session.missed_passes < MISSED else None
        is_new = last_pass is not None and last_pass is not self.last_pass
        ids = (
            (last_pass.held | before.held.keys())
            if last_pass and is_new
            else before.nearly_long(self.settings.interval)
        )
        rows = poll.ask("reservations", ids=[*ids], known=[*before.held], payload_read=payloads.READ)
        return Raw(last_pass, is_new, int(poll.now), ids, rows, before, self.last_pass)

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if raw.last_pass is None:
            yield Note("nobody knows which jobs are held, as the jobs are not known", withholds=True)
            return
        self.ledger, self.last_pass = raw.before.after(reading(raw, raw.last_pass), is_pass=raw.is_new), raw.last_pass
        yield queues.DROPPED(self.ledger.folded, self.session.name, self.name, "job_class")
        for queue in sorted({*raw.last_pass.queues.values()}):
            yield from self._queue(queue, self.settings.connection_of(queue, self.session.name))
        yield from self._classes(raw.before)
        yield from self._told(raw.now)

    def _queue(self, queue: str, connection: str) -> Iterator[Sample]:
        ledger = self.ledger
        yield REPEATED(ledger.repeated[queue], connection, queue)
        yield LENGTHS(ledger.lengths.get(queue, NOTHING), connection, queue)
        yield PAST_TIMEOUT(ledger.past_timeout(queue), connection, queue)
        for metric, known in ((NEWEST, ledger.newest), (LEAD, ledger.leads)):
            if queue in known:
                yield metric(known[queue], connection, queue)
        if (queue, OTHER) not in ledger.long:
            yield LONG(0, connection, queue, OTHER)

    def _classes(self, before: Ledger) -> Iterator[Sample]:
        for key, count in self.ledger.long.items():
            shown = count if key in before.long else 0  # a counter born at 1 would hide that from increase()
            yield LONG(shown, self.settings.connection_of(key[0], self.session.name), *key)
        for (queue, job_class), timeout in self.ledger.timeouts.items():
            connection = self.settings.connection_of(queue, self.session.name)
            yield TIMEOUT(timeout.seconds, connection, queue, job_class)

    def _told(self, now: int) -> Iterator[Note]:
        """A word about the last job that was handed out again, as a label cannot say which one it was."""
        last = self.ledger.last_repeat
        if last and now - last.held.seen < TOLD:
            yield Note(
                f"{last.held.job_class} (id {last.id}, queue {last.held.queue!r}) was handed out again"
                f" after {last.after} s, attempt {last.held.attempts}"
            )


def reading(raw: Raw, last_pass: Pass) -> Reading:
    """The answer, with the names that queues are shown under."""
    before = raw.pass_before if raw.is_new else None
    shown = last_pass.queues
    rows = (
        Job(row["id"], shown.get(row["queue"], OTHER), row["attempts"], row["reserved_at"], row["payload"])
        for row in raw.rows
    )
    since = before.now if before and before.complete else None
    return Reading(raw.now, raw.asked, tuple(rows), frozenset(shown.values()), since)
