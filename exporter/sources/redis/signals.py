"""What workers are told: to restart, and to leave a paused queue alone, by Laravel or by Horizon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ... import queues
from ...model import Metric, Note, Sample
from ...timing import Deadline
from .. import cache
from ..cache import Cached
from ..resp.link import Command
from . import fleet as fleets
from .fleet import Fleet
from .session import Session


class Raw(NamedTuple):
    """What a poll brought."""

    now: int
    withheld: Note | None
    queues: tuple[str, ...]
    cached: Cached | None  # None without a cache
    fleet: Fleet | None  # None without Horizon


class Signals:
    """A few keys of the cache, and whether Horizon is paused."""

    name = "signals"
    metrics: tuple[Metric, ...] = (queues.PAUSED, cache.RESTART_SIGNAL)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval

    def fetch(self, deadline: Deadline) -> Raw:
        shown = self.session.called_as_shown()
        questions: list[Command] = fleets.who(self.settings.horizon.prefix) if self.settings.horizon else []
        answer = self.session.ask(deadline, lambda _: questions)
        found = None
        if self.settings.horizon:
            found = self._fleet(self.settings.horizon.prefix, answer.replies, deadline)
        cached = None
        if self.session.cache:
            cached = self.session.cache.read([(self.session.connection_of(queue), queue) for queue in shown], deadline)
        return Raw(answer.now, answer.withheld, shown, cached, found)

    def _fleet(self, prefix: str, replies: list[object], deadline: Deadline) -> Fleet:
        names = fleets.names(replies)
        return fleets.fleet(names, self.session.link.ask(fleets.each(prefix, names), deadline))

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if raw.withheld:
            yield raw.withheld
            return
        for queue in raw.queues:
            connection = self.session.connection_of(queue)
            by_laravel = raw.cached is not None and raw.cached.pauses(connection, queue)
            is_paused = by_laravel or (raw.fleet is not None and raw.fleet.pauses(queue))
            if is_paused or (raw.cached is not None and not raw.cached.doubt):
                yield queues.PAUSED(is_paused, connection, queue)
        if raw.cached is not None:
            yield from self._restart(raw.cached, raw.now)

    def _restart(self, cached: Cached, now: int) -> Iterator[Sample | Note]:
        if cached.doubt:
            yield Note(cached.doubt)
        if (signal := cached.restart(now)) is not None:
            time = cache.time_of(signal, now)
            yield Note(cache.NO_TIME) if time is None else cache.RESTART_SIGNAL(time, self.session.name)
