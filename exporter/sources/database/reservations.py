"""The jobs that workers hold, one by one: handed out again, held for long, by whose clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ... import queues
from ...model import Limit, Metric, Note, Sample
from ...queues import OTHER, QUEUE
from ...timing import Deadline
from .. import held, payloads
from ..ledger import Id, Job, Ledger, Reading, Rules
from .session import Pass, Row, Session

LEAD = Metric(
    "laravel_queue_reserved_at_lead_seconds",
    "By how much a worker's clock is ahead of the database's, or behind if negative: at least. Absent if none is held.",
    QUEUE,
    limit=Limit(2, "a worker's clock is off by {value}", "LaravelQueueWorkerClockAhead", either_way=True),
)

WATCH = 2.0  # seconds between two looks at a job that is held for long; in 15 s a second worker has come and gone
MISSED = 2  # passes in a row that failed: nobody knows any more which jobs are held


class Raw(NamedTuple):
    """What a poll brought."""

    last_pass: Pass | None  # None if there is none that may be believed
    is_new: bool  # whether it brought new ids
    now: int  # by the database's clock
    asked: frozenset[Id]
    rows: list[Row]
    before: Ledger
    pass_before: Pass | None


class Reservations:
    """Reads rows by primary key: all that the last pass found held, and those held for long again every 2 s."""

    name = "reservations"
    metrics: tuple[Metric, ...] = (*held.METRICS, LEAD, queues.DROPPED)

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
        shown = {*raw.last_pass.queues.values()}
        yield queues.DROPPED(self.ledger.folded, self.session.name, self.name, "job_class")
        yield from held.samples(self.ledger, raw.before, shown, self._connection_of)
        for queue in sorted(shown & self.ledger.leads.keys()):
            yield LEAD(self.ledger.leads[queue], self._connection_of(queue), queue)
        yield from held.told(self.ledger, raw.now)

    def _connection_of(self, queue: str) -> str:
        return self.settings.connection_of(queue, self.session.name)


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
