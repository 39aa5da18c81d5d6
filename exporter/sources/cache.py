"""What workers are told through Laravel's cache: the keys, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from .. import queues
from ..model import Metric

RESTART_SIGNAL = Metric(
    "laravel_queue_restart_signal_timestamp_seconds",
    "Unix time of the last queue:restart, by the clock of the machine that called it. Absent without the key.",
    ("connection",),
)

USUAL = ("laravel_cache_", "laravel_cache", "laravel-cache-", "")  # in a table, with APP_NAME=Laravel: 9 to 12, 8, 12
RESTART = "illuminate:queue:restart"
PAUSED = "illuminate:queue:paused:{connection}:{queue}"  # Laravel 12.40 and later
ALL_PAUSED = "illuminate:queues:paused"  # Laravel 13.25 and later
FALSE = "b:0;"  # as PHP serialises it
TIME = re.compile(r"i:([0-9]{1,18});|([0-9]{1,18})")  # as PHP serialises a number, or as a number is kept plainly
NAME = "laravel"  # what Laravel makes of APP_NAME=Laravel
IN_REDIS = ("_cache:", "_cache_:", "_cache_", "-cache-")  # behind an application's name: 8, 10, 11, 12 and later
REDIS_PREFIXES = ("{}_database_", "{}-database-")  # of all keys that an application has in a Redis: 5.8, 12.1 and later
NO_TIME = "the restart signal is no time from 2005 to ten years ahead, so it is not shown"


def newest(signals: Iterable[str], now: float) -> str | None:
    """Of the restart signals under several prefixes the last one; one that is no time only if there is no other."""
    return max(signals, key=lambda signal: (time_of(signal, now) or 0, signal), default=None)


def time_of(signal: str, now: float) -> int | None:
    """The Unix time that a restart signal is; None if it cannot be one."""
    match = TIME.fullmatch(signal)
    time = int(match[1] or match[2]) if match else 0
    return time if queues.EARLIEST <= time <= now + queues.TEN_YEARS else None


Queue = tuple[str, str]  # of a connection


class Cached(NamedTuple):
    """What stands in a cache under the keys that were asked for."""

    prefixes: tuple[str, ...]  # that the keys may begin with
    values: Mapping[str, str]  # of the keys that are there
    doubt: str = ""  # why nobody can tell whether these are the right prefixes

    def restart(self, now: float) -> str | None:
        """The restart signal, if there is one."""
        return newest(self._under(RESTART), now)

    def pauses(self, connection: str, queue: str) -> bool:
        """Whether this queue is paused, by itself or with all others."""
        names = (ALL_PAUSED, PAUSED.format(connection=connection, queue=queue))
        return any(value != FALSE for name in names for value in self._under(name))

    def _under(self, name: str) -> Iterator[str]:
        """The values under this name; an upgrade may have left some under an older prefix."""
        return (self.values[prefix + name] for prefix in self.prefixes if prefix + name in self.values)


def keys(prefixes: Iterable[str], queues: Iterable[Queue]) -> list[str]:
    """The keys that tell what the workers of these queues are told."""
    paused = (PAUSED.format(connection=connection, queue=queue) for connection, queue in queues)
    names = (RESTART, ALL_PAUSED, *paused)
    return [prefix + name for name in names for prefix in prefixes]


def prefixes_in_redis(prefix: str) -> tuple[str, ...]:
    """
    What the keys of a cache in Redis begin with where `prefix` is that of all the application's keys there.

    Behind it comes the cache's own, which is made of the application's name as well. Laravel joins
    the words of a name as it joins what comes behind it: by `_` or, of late, by `-`.
    """
    endings = [ending.format("") for ending in REDIS_PREFIXES]
    name = next((prefix.removesuffix(ending) for ending in endings if prefix.endswith(ending)), prefix)
    return tuple(prefix + own_prefix(name, ending) for ending in IN_REDIS)


def own_prefix(name: str, ending: str) -> str:
    """A cache's own prefix, of an application of this name."""
    return re.sub("[_-]", ending[0], name) + ending


# With APP_NAME=Laravel; the one without a prefix of all keys is Laravel 5.7's, and Predis's with an empty REDIS_PREFIX.
USUAL_IN_REDIS = (
    *(key for prefix in REDIS_PREFIXES for key in prefixes_in_redis(prefix.format(NAME))),
    *(own_prefix(NAME, ending) for ending in IN_REDIS),
)
