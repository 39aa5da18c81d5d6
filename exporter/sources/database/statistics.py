"""What PostgreSQL's statistics say of the jobs table: dead rows, when autovacuum comes, and what went through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ...model import Limit, Metric, Note, Sample
from ...timing import Deadline
from .session import Row, Session

TABLE = ("connection", "table")
TRIGGER = Metric(
    "laravel_queue_table_autovacuum_trigger_tuples",
    "Dead rows at which autovacuum starts, with the table's own settings; summed over partitions.",
    TABLE,
)
LIVE = Metric("laravel_queue_table_live_tuples", "Live rows as the statistics estimate them.", TABLE)
DEAD = Metric(
    "laravel_queue_table_dead_tuples",
    "Dead rows that a vacuum has not removed yet: each pop may have to step over them.",
    TABLE,
    limit=Limit(
        TRIGGER, "{value} dead tuples, vacuum at {bound}", "LaravelQueueDeadTuplesHigh", soon=0.8, least=10_000
    ),
)
ENABLED = Metric(
    "laravel_queue_table_autovacuum_enabled",
    "Whether autovacuum looks after all of the table.",
    TABLE,
    limit=Limit(1, "autovacuum does not look after all of it", "LaravelQueueAutovacuumDisabled", below=True),
)
LAST_VACUUM = Metric(
    "laravel_queue_table_last_vacuum_timestamp_seconds",
    "Unix time of the last vacuum, manual or automatic; of the partition longest without one. Absent if never.",
    TABLE,
)
INSERTED = Metric(
    "laravel_queue_table_rows_inserted_total", "Rows inserted: jobs pushed, released or retried.", TABLE, "counter"
)
UPDATED = Metric("laravel_queue_table_rows_updated_total", "Rows updated: jobs reserved.", TABLE, "counter")
DELETED = Metric(
    "laravel_queue_table_rows_deleted_total", "Rows deleted: jobs finished, released or failed.", TABLE, "counter"
)
IN_RECOVERY = Metric("laravel_queue_database_in_recovery", "Whether the database is a standby.", ("connection",))
REPLAY_LAG = Metric(
    "laravel_queue_database_replay_lag_seconds",
    "How far a standby is behind its primary; 0 on a primary; absent when it cannot be known.",
    ("connection",),
)
GAUGES = ((LIVE, "live"), (DEAD, "dead"))
COUNTERS = ((INSERTED, "inserted"), (UPDATED, "updated"), (DELETED, "deleted"))


class Raw(NamedTuple):
    """Whether it is a standby and how far behind, and a row for each partition."""

    in_recovery: bool
    lag: float | None
    parts: list[Row]  # of the table; itself if it has none


class Statistics:
    """Catalogue and statistics only: answers while the table is locked."""

    name = "statistics"
    metrics: tuple[Metric, ...] = (
        *(metric for metric, _ in GAUGES + COUNTERS), TRIGGER, ENABLED, LAST_VACUUM, IN_RECOVERY, REPLAY_LAG,
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self.session, self.interval = session, session.settings.interval
        self.last: dict[tuple[int, str], int] = {}  # (oid, column) → value; of dropped partitions as well
        self.totals = Counter[str]()  # by column

    def fetch(self, deadline: Deadline) -> Raw:
        poll = self.session.poll(deadline)
        parts = poll.ask("statistics")
        return Raw(poll.in_recovery, poll.replay_lag(), parts)

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        in_recovery, lag, parts = raw
        yield IN_RECOVERY(in_recovery, self.session.name)
        if lag is not None:
            yield REPLAY_LAG(lag, self.session.name)
        if in_recovery or not parts:
            return  # a standby keeps no statistics of its own; no table, or a view, has none
        at = (self.session.name, self.session.settings.table)
        for metric, column in GAUGES:
            yield metric(sum(part[column] for part in parts), *at)
        for metric, column in COUNTERS:
            self._count_on(parts, column)
            yield metric(self.totals[column], *at)
        yield TRIGGER(sum(trigger(part) for part in parts), *at)
        yield ENABLED(all(part["enabled"] for part in parts), *at)
        vacuums = [part["last_vacuum"] for part in parts]
        if None not in vacuums:
            yield LAST_VACUUM(min(vacuums), *at)

    def _count_on(self, parts: list[Row], column: str) -> None:
        """Add what is new: the sum would fall with each partition that is dropped. A value that fell began anew."""
        for part in parts:
            key, value = (part["oid"], column), part[column]
            last = self.last.get(key, 0)
            self.totals[column] += value - last if value >= last else value
            self.last[key] = value


def trigger(part: Row) -> float:
    """
    Dead rows above which autovacuum vacuums the table.

    Source: PostgreSQL's manual, "The Autovacuum Daemon": base threshold + scale factor × rows,
    from PostgreSQL 18 on no more than the maximum threshold, unless that is negative. A table
    that was never counted (reltuples -1) has 0 rows here.
    """
    computed: float = part["threshold"] + part["scale_factor"] * max(0.0, part["reltuples"])
    most = part["max_threshold"]
    return computed if most is None or most < 0 else min(computed, most)
