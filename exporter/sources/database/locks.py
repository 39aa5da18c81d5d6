"""Who waits for a lock on the jobs table, or on a row of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...model import Limit, Metric, Note, Sample
from ...timing import Deadline
from .session import Row, Session

TABLE = ("connection", "table")
WAITERS = Metric(
    "laravel_queue_table_lock_waiters",
    "Sessions that wait for a lock on the table or on a row of it.",
    TABLE,
    # A worker with SKIP LOCKED waits for no row, and an ALTER TABLE that got its lock is soon over: at
    # 600 jobs a second not one of 64 workers was seen waiting in 900 looks, so one is worth a word.
    limit=Limit(0, "{value:session} waiting for a lock on the table", "LaravelQueueLockWaits"),
)
LONGEST_WAIT = Metric(
    "laravel_queue_table_longest_lock_wait_seconds",
    "How long the one of them that waits longest has been waiting; 0 when none waits.",
    TABLE,
    limit=Limit(5, "a session waiting for a lock for {value}, limit {bound}", "LaravelQueueLockWaits"),
)


class Raw(NamedTuple):
    """Whether it is a standby, and what its locks say."""

    in_recovery: bool
    locks: Row


class Locks:
    """pg_locks and the catalogue only: answers while the table is locked, and hides nothing from any role."""

    name = "locks"
    metrics: tuple[Metric, ...] = (WAITERS, LONGEST_WAIT)

    def __init__(self, session: Session) -> None:
        self.session, self.interval = session, session.settings.interval

    def fetch(self, deadline: Deadline) -> Raw:
        poll = self.session.poll(deadline)
        (locks,) = poll.ask("locks")
        return Raw(poll.in_recovery, locks)

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if raw.in_recovery or not raw.locks["parts"]:
            return  # a standby's workers are on its primary; of a view nobody can tell what it is made of
        at = (self.session.name, self.session.settings.table)
        yield WAITERS(raw.locks["waiters"], *at)
        yield LONGEST_WAIT(raw.locks["longest"], *at)
