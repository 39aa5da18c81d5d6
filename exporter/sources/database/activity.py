"""Who is connected: connections by pool and state, what they wait for, what keeps old rows alive, workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from ...model import Limit, Metric, Note, Sample
from ...queues import OTHER, RETRY_AFTER
from ...timing import Deadline
from .metrics import CONNECTIONS, CONNECTIONS_MAX, CONNECTIONS_RESERVED, USAGE, WORKERS
from .session import Row, Session
from .settings import Pool

WAITING = Metric(
    "laravel_queue_database_waiting_backends",
    "Active sessions that wait for something other than their client.",
    ("connection", "wait_event_type"),
)
OLDEST_TRANSACTION = Metric(
    "laravel_queue_database_oldest_transaction_age_seconds",
    "Age of this database's oldest transaction by holder; for a slot or a standby, how long its xmin has been seen.",
    ("connection", "holder"),
    limit=Limit(900, "a transaction open for {value}, limit {bound}", "LaravelQueueXminHeld"),
)
WORKER_TIMEOUT = Metric(
    "laravel_queue_worker_timeout_seconds",
    "The workers' --timeout, from the settings.",
    ("connection", "pool", "queue"),
    limit=Limit(
        RETRY_AFTER,
        "the workers' timeout {value}, not below retry_after {bound}",
        "LaravelQueueTimeoutExceedsRetryAfter",
        reached=True,
    ),
)

STATES = {
    "active": "active",
    "idle": "idle",
    "idle in transaction": "idle_in_transaction",
    "idle in transaction (aborted)": "idle_in_transaction_aborted",
}
WAIT_TYPES = ("BufferPin", "Extension", "IO", "IPC", "LWLock", "Lock", "Timeout")
HIDDEN = "the role is not a member of pg_monitor: connections by state, their use, waits and transactions are not shown"


class Raw(NamedTuple):
    """Whether it is a standby, what the server says of itself, and its sessions, folded."""

    in_recovery: bool
    server: Row
    sessions: list[Row]
    mono: float  # when we looked, on the clock that never jumps


class Activity:
    """pg_stat_activity, folded in the database to a row per program, role and state."""

    name = "activity"
    metrics: tuple[Metric, ...] = (
        CONNECTIONS, CONNECTIONS_MAX, CONNECTIONS_RESERVED, USAGE, WAITING, OLDEST_TRANSACTION, WORKERS,
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self.session, self.interval = session, session.settings.interval
        self.pools = session.settings.pools
        self.first_seen: dict[tuple[str, str], float] = {}  # (holder, its name and xmin) → monotonic time

    def fetch(self, deadline: Deadline) -> Raw:
        poll = self.session.poll(deadline)
        (server,), sessions = poll.ask("server"), poll.ask("sessions")
        return Raw(poll.in_recovery, server, sessions, self.session.clock.mono())

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if raw.in_recovery:
            return
        name = self.session.name
        yield CONNECTIONS_MAX(raw.server["max_connections"], name)
        yield CONNECTIONS_RESERVED(raw.server["reserved_connections"], name)
        yield from self._workers(raw.sessions)
        yield from self._horizon(raw.server, raw.mono)
        if not raw.server["sees_all"]:
            yield Note(HIDDEN)
            return
        yield from self._connections(raw)
        yield from self._waits(raw.sessions)
        yield from self._transactions(raw.sessions)

    def _workers(self, sessions: list[Row]) -> Iterator[Sample]:
        counts = Counter[str]()
        for row in sessions:
            if row["here"]:  # another application's workers may have the same name
                counts[pool_of(row, self.pools)] += row["sessions"]
        for name in worker_pools(self.pools):
            yield WORKERS(counts[name], self.session.name, name)

    def _connections(self, raw: Raw) -> Iterator[Sample]:
        states = (*STATES.values(), OTHER)
        counts = Counter({(pool, state): 0 for pool in (*self.pools, OTHER) for state in states})
        for row in raw.sessions:
            state = STATES.get(row["state"], OTHER)
            counts[pool_of(row, self.pools), state] += row["sessions"]
        for labels, count in counts.items():
            yield CONNECTIONS(count, self.session.name, *labels)
        free = raw.server["max_connections"] - raw.server["reserved_connections"]
        if free > 0:
            yield USAGE(counts.total() / free, self.session.name)

    def _waits(self, sessions: list[Row]) -> Iterator[Sample]:
        counts = Counter(dict.fromkeys((*WAIT_TYPES, OTHER), 0))
        for row in sessions:
            wait_type = row["wait_event_type"]
            if row["state"] == "active" and wait_type not in (None, "Client", "Activity"):
                counts[wait_type if wait_type in WAIT_TYPES else OTHER] += row["sessions"]
        for wait_type, count in counts.items():
            yield WAITING(count, self.session.name, wait_type)

    def _transactions(self, sessions: list[Row]) -> Iterator[Sample]:
        oldest = {"active": 0.0, "idle_in_transaction": 0.0}
        for row in sessions:
            holder = "active" if row["state"] == "active" else "idle_in_transaction"
            if row["here"] and row["oldest_transaction"] is not None:
                oldest[holder] = max(oldest[holder], row["oldest_transaction"])
        for holder, age in oldest.items():
            yield OLDEST_TRANSACTION(age, self.session.name, holder)

    def _horizon(self, server: Row, mono: float) -> Iterator[Sample]:
        """What keeps old row versions alive without being a session."""
        yield OLDEST_TRANSACTION(max(0.0, server["oldest_prepared"] or 0.0), self.session.name, "prepared")
        held = {("replication_slot", slot) for slot in server["slots"]}
        held |= {("standby", standby) for standby in server["standbys"]}
        self.first_seen = {key: self.first_seen.get(key, mono) for key in held}
        for holder in ("replication_slot", "standby"):
            if holder == "standby" and not server["sees_all"]:
                continue
            since = [at for (kind, _), at in self.first_seen.items() if kind == holder]
            yield OLDEST_TRANSACTION(mono - min(since, default=mono), self.session.name, holder)


def worker_pools(pools: dict[str, Pool]) -> list[str]:
    """The pools of which each connection is a worker."""
    return [name for name, pool in pools.items() if pool.queues and not pool.pooled]


def pool_of(row: Row, pools: dict[str, Pool]) -> str:
    """The first pool in the settings whose pattern and role, as far as they are given, fit."""
    for name, pool in pools.items():
        program = (pool.application_name or "*").replace("[", "[[]")  # a bracket stands for itself
        if fnmatchcase(row["application_name"] or "", program) and pool.role in (None, row["role"]):
            return name
    return OTHER
