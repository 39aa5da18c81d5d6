"""What workers are told: to restart, and to leave a paused queue alone, by Laravel or by Horizon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ... import queues
from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...source import Result
from ...timing import Deadline
from .. import cache
from ..cache import Cached
from .fleet import Fleet
from .session import Session


class Raw(NamedTuple):
    """What a poll brought."""

    queues: tuple[str, ...]
    cached: Cached | SourceError | None  # None without a cache
    fleet: Fleet | None  # as `Horizon` saw it last; None where nobody knows


class Signals:
    """
    A few keys of the cache, and whether Horizon is paused.

    Of Horizon it asks nothing: the collector `horizon` has told what it saw. It is here that both
    are put together, as two collectors must not tell one series.
    """

    name = "signals"
    metrics: tuple[Metric, ...] = (queues.PAUSED, cache.RESTART_SIGNAL)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval

    def fetch(self, deadline: Deadline) -> Raw:
        shown = self.session.called_as_shown()
        return Raw(shown, self._cached(shown, deadline), self.session.fleet())

    def _cached(self, shown: Iterable[str], deadline: Deadline) -> Cached | SourceError | None:
        """What stands in the cache. That it cannot be read is no reason to hide what Horizon says."""
        if self.session.cache is None:
            return None
        try:
            return self.session.cache.read([(self.session.connection_of(queue), queue) for queue in shown], deadline)
        except SourceError as failure:
            if self.session.fleet() is None:
                raise
            return failure

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        cached = None if isinstance(raw.cached, SourceError) else raw.cached
        by_laravel = cached is not None and not cached.doubt
        by_horizon = self.settings.horizon is None or raw.fleet is not None
        for queue in raw.queues:
            connection = self.session.connection_of(queue)
            is_paused = (cached is not None and cached.pauses(connection, queue)) or (
                raw.fleet is not None and raw.fleet.pauses(queue)
            )
            if is_paused or (by_laravel and by_horizon):
                yield queues.PAUSED(is_paused, connection, queue)
        if not by_horizon:
            yield Note("whether Horizon is paused is not known")
        if isinstance(raw.cached, SourceError):
            yield raw.cached
        elif raw.cached is not None:
            yield from self._restart(raw.cached, now)

    def _restart(self, cached: Cached, now: float) -> Iterator[Sample | Note]:
        if cached.doubt:
            yield Note(cached.doubt)
        if (signal := cached.restart(now)) is not None:
            time = cache.time_of(signal, now)
            yield Note(cache.NO_TIME) if time is None else cache.RESTART_SIGNAL(time, self.session.name)
