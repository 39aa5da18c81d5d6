"""What workers are told through Laravel's cache: to restart, and to leave a paused queue alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, NamedTuple

from ... import queues
from ...model import Metric, Note, Sample
from ...timing import Deadline
from ..cache import NO_TIME, RESTART_SIGNAL, USUAL, Cached, Queue, keys, time_of
from .activity import pool_of, worker_pools
from .metrics import OUTDATED
from .session import GaveUpError, Poll, Row, Session, too_far_behind

LOCAL = "illuminate:"  # how keys of the framework's own begin where there is no prefix
LOOK_AT = 100  # keys of a cache in which none of ours was found
LOOK_FOR = 0.1  # seconds; the beginning of a cache may be all dead rows
LOOK_EVERY = 20  # intervals
OTHER_PREFIX = (
    "the keys of the cache begin with none of Laravel's usual prefixes: without the setting cache.prefix nobody knows "
    "what is paused and who has heard of the restart"
)
HIDDEN = "the role is not a member of pg_monitor: who has worked since before the restart signal is not shown"


class Told(NamedTuple):
    """What workers had been told when we looked."""

    signal: str | None  # the restart signal, as it stands in the cache
    at: float  # by the database's clock
    since: float | None  # who began earlier, by the same clock, has not heard it; None if that is not known


class Raw(NamedTuple):
    """What a poll brought."""

    in_recovery: bool
    lag: float | None  # seconds that a standby is behind
    sessions: list[Row]
    queues: tuple[Queue, ...]  # that were asked for
    cached: Cached
    now: float  # when this was read, by the database's clock
    before: Told | None  # what we knew from the last poll


class Signals:
    """A few keys of the cache, and since when the workers have been connected."""

    name = "signals"
    metrics: tuple[Metric, ...] = (queues.PAUSED, RESTART_SIGNAL, OUTDATED)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval
        self.prefixes = self.settings.cache.prefixes() if self.settings.cache else ()
        self.told: Told | None = None
        self.other_prefix, self.look_at = False, float("-inf")  # as it was found last, and when to look again

    def fetch(self, deadline: Deadline) -> Raw:
        poll = self.session.poll(deadline)
        sessions = poll.ask("begun")
        lag = poll.replay_lag()  # before the rows, so that these are no older
        connection_of, name = self.settings.connection_of, self.session.name
        shown = tuple((connection_of(queue, name), queue) for queue in self.session.called_as_shown())
        if self.session.cache:
            cached, lag = self.session.cache.read(shown, deadline), 0.0
        else:
            cached = self._in_table(poll, shown)
        return Raw(poll.in_recovery, lag, sessions, shown, cached, poll.now, self.told)

    def _in_table(self, poll: Poll, shown: tuple[Queue, ...]) -> Cached:
        rows = poll.ask("signals", keys=keys(self.prefixes, shown))
        values = {row["key"]: row["value"] for row in rows if row["value"] is not None}
        return Cached(self.prefixes, values, OTHER_PREFIX if not rows and self._has_other_prefix(poll) else "")

    def _has_other_prefix(self, poll: Poll) -> bool:
        """Whether nothing was found because nobody said how the keys begin."""
        mono = self.session.clock.mono()
        if self.prefixes is USUAL and mono >= self.look_at:
            self.other_prefix, self.look_at = self._look_for_prefix(poll), mono + LOOK_EVERY * self.interval
        return self.other_prefix

    def _look_for_prefix(self, poll: Poll) -> bool:
        usual = [prefix for prefix in USUAL if prefix] + [LOCAL]
        try:
            (few,) = poll.ask("other_prefix", LOOK_FOR, prefixes=usual, look_at=LOOK_AT)
        except GaveUpError:
            return False
        return bool(few["other"])

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if note := too_far_behind(raw.lag, self.interval):
            yield note
            return
        if raw.cached.doubt:
            yield Note(raw.cached.doubt)
        for queue in () if raw.cached.doubt else raw.queues:
            yield queues.PAUSED(raw.cached.pauses(*queue), *queue)
        signal = raw.cached.restart(raw.now)
        time = None if signal is None else time_of(signal, raw.now)
        if time is not None:
            yield RESTART_SIGNAL(time, self.session.name)
        elif signal is not None:
            yield Note(NO_TIME)
        if not raw.in_recovery:  # the workers are connected to its primary
            self.told = Told(signal, raw.now, since(signal, time, raw))
            yield from self._outdated(raw.sessions, self.told.since)

    def _outdated(self, sessions: list[Row], since: float | None) -> Iterator[Sample | Note]:
        begun = defaultdict[str, list[Any]](list)  # pool → Unix times, None for one that is hidden
        for row in sessions:
            begun[pool_of(row, self.settings.pools)] += row["begun"]
        pools = worker_pools(self.settings.pools)
        seen = [name for name in pools if None not in begun[name]]
        for name in seen if since is not None else ():
            yield OUTDATED(sum(at < since for at in begun[name]), self.session.name, name)
        if len(seen) < len(pools):
            yield Note(HIDDEN)


def since(signal: str | None, time: float | None, raw: Raw) -> float | None:
    """
    Before when a worker began that has not heard the restart signal, by the database's clock; None if not known.

    The signal is what some machine's clock said. So where we saw it change (or vanish, which
    workers heed as well), it is when we last saw the old one; else the signal itself, but no
    later than when we first saw it.
    """
    if raw.before is not None:
        return raw.before.since if signal == raw.before.signal else raw.before.at
    if signal is None:
        return None if raw.cached.doubt else -inf  # nobody was told anything
    return None if time is None else min(time, raw.now)
