"""The jobs that workers hold, one by one: handed out again, held for long, by whose clock."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor
from typing import NamedTuple

from ... import queues
from ...model import Limit, Metric, Note, Sample
from ...queues import OTHER, QUEUE
from ...timing import BELIEF, Deadline
from .. import held, payloads
from ..ledger import Job, Key, Ledger, Reading, Rules
from .questions import MOST_HELD
from .session import Pass, Row, Session

LEAD = Metric(
    "laravel_queue_reserved_at_lead_seconds",
    "By how much reserved_at is ahead of the database's clock, or behind if negative: at least so much is a worker's "
    "clock off, unless it is behind because it was committed late. Absent if nothing is held.",
    QUEUE,
    limit=Limit(
        2, "by the database's clock, reserved_at is {value:ahead}", "LaravelQueueWorkerClockAhead", either_way=True
    ),
)

WATCH = 2.0  # seconds between two looks at a job that is held for long; in 15 s a second worker has come and gone
MISSED = 2  # passes in a row that failed: nobody knows any more which jobs are held
SILENCE = 120.0  # seconds without any answer, after which a pass is not believed; the duty may ask for some


class Raw(NamedTuple):
    """What a poll brought."""

    last_pass: Pass | None  # None if there is none that may be believed
    is_new: bool  # whether it brought new ids
    now: float  # by the database's clock
    began: float  # the same by ours, a little earlier
    answered: float  # and a little later
    asked: frozenset[int]
    rows: list[Row]
    before: Ledger
    pass_before: Pass | None  # that was read


class Reservations:
    """Reads rows by primary key: all that the last pass found held, and those held for long again every 2 s."""

    name = "reservations"
    metrics: tuple[Metric, ...] = (*held.METRICS, LEAD, queues.DROPPED)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.ledger = Ledger(
            Rules(
                self.settings.interval,
                self.settings.retry_after_of,
                self.settings.worker_timeout_of,
                session.classes.shown,
            )
        )
        self.last_pass: Pass | None = None  # that was read
        self.read_at = 0.0  # when the last reading began, on the monotonic clock
        self.withheld = False  # whether nobody knows which jobs are held

    @property
    def interval(self) -> float:
        """Seconds until it should be asked again: few while a job may be handed out again soon, or a pass is due."""
        usual = self.settings.interval
        if self.withheld or not self.last_pass:
            return usual
        if self.ledger.watched:
            return min(WATCH, usual)
        until_next_pass = usual - (self.read_at - self.last_pass.mono)
        return max(min(WATCH, usual), until_next_pass) if until_next_pass > 0 else usual

    def fetch(self, deadline: Deadline) -> Raw:
        poll, before, began = self.session.poll(deadline), self.ledger, self.session.clock.mono()
        last_pass = self._believed_pass(began)
        is_new = last_pass is not None and last_pass is not self.last_pass
        known = {key.id for key in before.held}
        new = sorted(last_pass.held - known) if last_pass and is_new else []
        asked = ([*known, *new] if is_new else [key.id for key in before.watched])[:MOST_HELD]
        rows = poll.ask("reservations", ids=asked, new=new, payload_read=payloads.READ)
        answered = self.session.clock.mono()
        return Raw(last_pass, is_new, poll.now, began, answered, frozenset(asked), rows, before, self.last_pass)

    def _believed_pass(self, mono: float) -> Pass | None:
        """
        The last pass over the table, unless nobody knows any more which jobs are held.

        Where the database was silent, it may have been another collector that found out.
        """
        passes = self.session.passes
        last_pass = passes.last
        if last_pass is None or passes.missed >= MISSED:
            return None
        silence = mono - max(last_pass.mono, self.read_at)
        return last_pass if silence <= max(SILENCE, BELIEF * self.settings.interval) else None

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        self.withheld = raw.last_pass is None
        if raw.last_pass is None:
            yield Note("nobody knows which jobs are held, as the jobs are not known", withholds=True)
            return
        self.ledger = raw.before.after(reading(raw, raw.last_pass))
        self.last_pass, self.read_at = raw.last_pass, raw.began
        yield queues.DROPPED(self.ledger.folded, self.session.name, self.name, "job_class")
        yield from held.samples(self.ledger, self._connection_of)
        for queue, of in sorted(self.ledger.queues.items()):
            if of.lead is not None:
                yield LEAD(of.lead, self._connection_of(queue), queue)
        yield from held.told(self.ledger, raw.now)
        if not raw.last_pass.complete or len(self.ledger.held) >= MOST_HELD:
            yield Note(held.LOWER_BOUNDS)

    def _connection_of(self, queue: str) -> str:
        return self.settings.connection_of(queue, self.session.name)


def reading(raw: Raw, last_pass: Pass) -> Reading:
    """The answer, with the names that queues are shown under."""
    names = last_pass.queues
    jobs = tuple(
        Job(
            Key(row["id"], row["available_at"]),
            names.get(row["queue"], OTHER),
            row["attempts"],
            row["reserved_at"],
            row["payload"],
            not_held_at(raw, row["id"]),
        )
        for row in raw.rows
    )
    queues = frozenset(names.values()) | {job.queue for job in jobs}
    return Reading(floor(raw.now), raw.is_new, raw.asked, jobs, queues)


def not_held_at(raw: Raw, id_: int) -> int | None:
    """
    When the pass before saw that nobody held this job, by the database's clock; None if it did not.

    How long ago that was is told by our own clock: the other one may have been set meanwhile.
    """
    before = raw.pass_before
    if before is None or not before.complete or id_ in before.held:
        return None
    return floor(raw.now - before.lag - (raw.answered - before.mono))
