"""What workers are told: to restart, and to leave a paused queue alone, by Laravel or by Horizon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ... import queues
from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...queues import OTHER
from ...timing import Deadline
from .. import cache
from . import fleet as fleets
from .connection import Command, Link
from .fleet import Fleet
from .session import Session, answered
from .settings import Redis

UNKNOWN = "no prefix of Laravel's versions is in the cache: whether a queue is paused is not known (see cache.prefix)"


class Raw(NamedTuple):
    """What a poll brought."""

    now: int
    of_the_past: Note | None
    queues: tuple[str, ...]
    cached: dict[str, str] | None  # key → value of those that are there; None without a cache
    fleet: Fleet | None  # None without Horizon


class Signals:
    """A few keys of the cache, and whether Horizon is paused."""

    name = "signals"
    metrics: tuple[Metric, ...] = (queues.PAUSED, cache.RESTART_SIGNAL)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval
        self.prefixes = tuple(prefixes(self.settings))
        target = self.settings.cache_target()
        self.cache = Link(target) if target else None

    def close(self) -> None:
        """Close the connection to the cache."""
        if self.cache:
            self.cache.close()

    def fetch(self, deadline: Deadline) -> Raw:
        shown = tuple(queue for queue, name in self.session.shown.items() if queue == name != OTHER)
        questions: list[Command] = fleets.who(self.settings.horizon.prefix) if self.settings.horizon else []
        answer = self.session.ask(deadline, lambda _: questions)
        found = None
        if self.settings.horizon:
            found = self._fleet(self.settings.horizon.prefix, answer.replies, deadline)
        return Raw(answer.now, answer.of_the_past, shown, self._cached(shown, deadline), found)

    def _fleet(self, prefix: str, replies: list[object], deadline: Deadline) -> Fleet:
        names = fleets.names(replies)
        return fleets.fleet(names, self.session.link.ask(fleets.each(prefix, names), deadline))

    def _cached(self, shown: tuple[str, ...], deadline: Deadline) -> dict[str, str] | None:
        if self.cache is None:
            return None
        names = (cache.RESTART, *(name for queue in shown for name in self._pauses(queue)))
        keys = [prefix + name for name in dict.fromkeys(names) for prefix in self.prefixes]
        try:
            values = answered(self.cache.ask([("MGET", *keys)], deadline)[0])
        except SourceError as failure:  # it may be another server: the queues can still be asked for
            raise SourceError(failure.reason, f"the cache: {failure}") from None
        found = zip(keys, values, strict=True)
        return {key: value.decode(errors="replace") for key, value in found if value is not None}

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if raw.of_the_past:
            yield raw.of_the_past
            return
        cached = raw.cached or {}
        is_known = raw.cached is not None and (bool(cached) or len(self.prefixes) == 1)
        true = {key for key, value in cached.items() if value != cache.FALSE}
        for queue in raw.queues:
            by_laravel = any(prefix + name in true for name in self._pauses(queue) for prefix in self.prefixes)
            is_paused = by_laravel or (raw.fleet is not None and raw.fleet.pauses(queue))
            if is_paused or is_known:
                yield queues.PAUSED(is_paused, self._connection_of(queue), queue)
        yield from self._restart(cached, raw.now)
        if raw.cached is not None and not is_known:
            yield Note(UNKNOWN)

    def _restart(self, cached: dict[str, str], now: int) -> Iterator[Sample | Note]:
        keys = (prefix + cache.RESTART for prefix in self.prefixes)
        signal = cache.newest([cached[key] for key in keys if key in cached], now)
        if signal is None:
            return
        time = cache.time_of(signal, now)
        yield Note(cache.NO_TIME) if time is None else cache.RESTART_SIGNAL(time, self.session.name)

    def _pauses(self, queue: str) -> tuple[str, str]:
        """The keys, without their prefix, of which either pauses this queue."""
        return cache.ALL_PAUSED, cache.PAUSED.format(connection=self._connection_of(queue), queue=queue)

    def _connection_of(self, queue: str) -> str:
        return self.settings.connection_of(queue, self.session.name)


def prefixes(settings: Redis) -> Iterator[str]:
    """
    What the keys of the cache may begin with: as it is set, or as Laravel's versions make it.

    That is the prefix of all of the application's Redis, and behind it the cache's own, which
    is made of the application's name as well. Laravel up to 10 puts a colon behind it.
    """
    if settings.cache and settings.cache.prefix is not None:
        yield settings.cache.prefix
        return
    name = settings.prefix
    for ending in ("_database_", "-database-"):
        name = name.removesuffix(ending)
    for own in (f"{name}_cache:", f"{name}_cache_:", f"{name}_cache_", f"{name}-cache-"):
        yield settings.prefix + own
