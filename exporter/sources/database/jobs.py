"""The jobs table: how many jobs are in which state, and how long the oldest has been waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from psycopg import sql

from ... import queues
from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...timing import Deadline
from .. import named
from .session import GaveUpError, Pass, Row, Session, too_far_behind

WAITING_INDEX = "(queue, available_at) (reserved_at IS NULL)"
RESERVED_INDEX = "(queue, reserved_at) (reserved_at IS NOT NULL)"
RESERVED_INDEXES = {RESERVED_INDEX, "(reserved_at) (reserved_at IS NOT NULL)"}
NO_ATTEMPTS = "the jobs are counted in the two indexes, which know no attempts: retried jobs are not shown"
VISIBLE_ENOUGH = 0.5  # share of the pages that is visible to all; with less, the indexes send us to too many rows


class Raw(NamedTuple):
    """What a poll brought."""

    lag: float | None  # seconds that a standby is behind
    by_index: bool
    rows: list[Row]  # one for each queue
    mono: float  # just before the rows were read, by our clock
    dropped: int  # queues that earlier answers had too many


class Jobs:
    """One pass over the table, or two indexes made for the purpose while they spare us most rows."""

    name = "jobs"
    metrics: tuple[Metric, ...] = (
        queues.JOBS,
        queues.OLDEST_JOB_AGE,
        queues.OLDEST_RESERVED_AGE,
        queues.IMPLAUSIBLE,
        queues.RETRIED,
        queues.ATTEMPTS_MAX,
        queues.QUEUES,
        queues.TARGET_WAIT,
        queues.RETRY_AFTER,
        queues.DROPPED,
    )

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval
        self.dropped = 0

    def fetch(self, deadline: Deadline) -> Raw:
        self.session.passes.begin()
        poll = self.session.poll(deadline)
        tables = poll.ask("table")
        if not tables:
            raise SourceError("undefined_table", f"there is no table {self.settings.schema_}.{self.settings.table}")
        lag, mono = poll.replay_lag(), self.session.clock.mono()  # before the rows, so that these are no older
        by_index = has_indexes(tables[0]) and tables[0]["visible"] > VISIBLE_ENOUGH
        try:
            rows = poll.ask("jobs_by_index" if by_index else "jobs")
        except GaveUpError as failure:
            if failure.limit is None:
                raise
            raise SourceError("timeout", f"{failure}; {self._what_helps(tables[0])}") from None
        return Raw(lag, by_index, rows, mono, self.dropped)

    def _what_helps(self, table: Row) -> str:
        """How to get numbers from a table that takes too long to count."""
        limit = (
            f"it may take {table['time_limit']}, the lower of the setting `timeout` and the role's statement_timeout"
        )
        if has_indexes(table) or not table["is_plain"]:  # a view has none, and a partitioned table's take other words
            return limit
        name = sql.Identifier(self.settings.schema_, self.settings.table).as_string()
        indexes = (
            f"CREATE INDEX CONCURRENTLY ON {name} {index.replace(') (', ') WHERE (')}"
            for index in (WAITING_INDEX, RESERVED_INDEX)
        )
        return f"{limit}; with two indexes it takes far less: {'; '.join(indexes)}"

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        self.session.passes.end(None)
        if note := too_far_behind(raw.lag, self.interval):
            yield note
            return
        rows = self._by_queue(raw, now)
        if raw.by_index:
            yield Note(NO_ATTEMPTS)
        yield queues.DROPPED(self.dropped, self.session.name, self.name, "queue")
        for queue, row in rows.items():
            connection = self.settings.connection_of(queue, self.session.name)
            yield from self._queue(row, connection, queue)
            if not raw.by_index:
                yield queues.RETRIED(row["retried"], connection, queue)
                yield queues.ATTEMPTS_MAX(row["attempts_max"], connection, queue)
        yield from named.of_shown(self.settings, self.session.name, rows)

    def _by_queue(self, raw: Raw, now: float) -> dict[str, Row]:
        """A row for each queue that is shown. Two may carry one name: bytes that are no text look alike."""
        sizes = Counter[str]()
        for row in raw.rows:
            if not isinstance(row["queue"], str):
                raise SourceError("wrong_type", f"{self.settings.table}.queue holds something else than text")
            sizes[row["queue"]] += sum(row[state] for state in queues.STATES)
        shown = self.session.remembered.shown(sizes, now)
        self.dropped = raw.dropped + sum(queue != name for queue, name in shown.items())
        self.session.passes.end(last_pass(raw, shown))
        rows: dict[str, list[Row]] = {name: [] for name in sorted({*shown.values()})}
        for row in raw.rows:
            rows[shown[row["queue"]]].append(row)
        return {name: total(rows) for name, rows in rows.items()}

    def _queue(self, row: Row, connection: str, queue: str) -> Iterator[Sample]:
        for state in queues.STATES:
            yield queues.JOBS(row[state], connection, queue, state)
        age = oldest_job_age(row, self.settings.retry_after_of(queue))
        yield queues.OLDEST_JOB_AGE(age, connection, queue)
        yield queues.OLDEST_RESERVED_AGE(seconds_since(row["reserved_since"], row["now"]), connection, queue)
        yield queues.IMPLAUSIBLE(row["implausible"], connection, queue)


def has_indexes(table: Row) -> bool:
    """Whether the two indexes are there that spare us the rows."""
    return WAITING_INDEX in table["indexes"] and bool(RESERVED_INDEXES & {*table["indexes"]})


def last_pass(raw: Raw, shown: Mapping[str, str]) -> Pass:
    """What this answer says of single jobs."""
    held = frozenset(id_ for row in raw.rows for id_ in row["held"] or ())
    complete = len(held) == sum(row["reserved"] + row["expired"] for row in raw.rows)
    return Pass(raw.mono, raw.lag or 0.0, held, complete, shown)


def total(rows: list[Row]) -> Row:
    """Several rows as one; none as zeros. One answer has one `now`."""
    total: Row = {count: sum(row[count] for row in rows) for count in (*queues.STATES, "implausible")}
    for time in ("ready_since", "reserved_since"):
        total[time] = min((row[time] for row in rows if row[time] is not None), default=None)
    total["retried"] = sum(row.get("retried", 0) for row in rows)  # by index nobody asks for these two
    total["attempts_max"] = max((row.get("attempts_max", 0) for row in rows), default=0)
    return total | {"now": rows[0]["now"] if rows else 0}


def seconds_since(then: int | None, now: int) -> int:
    """An age by the database's clock; 0 when there is nothing, or when a worker's clock is ahead."""
    return 0 if then is None else max(0, now - then)


def oldest_job_age(row: Row, retry_after: int) -> int:
    """
    Seconds since the oldest job that could be taken became takeable.

    A ready one did at `available_at`, an expired one at `reserved_at` + retry_after; the one
    held longest is the first to expire.
    """
    expired_since = None if row["reserved_since"] is None else row["reserved_since"] + retry_after
    return max(seconds_since(row["ready_since"], row["now"]), seconds_since(expired_since, row["now"]))
