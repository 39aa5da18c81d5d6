"""Laravel's cache where it is kept in a Redis."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import SourceError
from ...timing import Deadline
from .. import cache
from ..cache import Cached, Queue
from .link import Link
from .replies import Reply, answered, of_the_past
from .target import Target

UNKNOWN = (
    "in database {} of the cache's Redis nothing is told to workers under a prefix of Laravel's versions: "
    "whether a queue is paused is not known (see cache.prefix)"
)


class RedisCache:
    """A few keys of a cache, over a connection of its own: it may be on another server than the queues."""

    def __init__(self, target: Target, prefixes: Iterable[str]) -> None:
        self.link, self.prefixes = Link(target), tuple(prefixes)
        self.doubt = UNKNOWN.format(target.database)

    def close(self) -> None:
        """Close the connection; the next question opens a new one."""
        self.link.close()

    def read(self, queues: Iterable[Queue], deadline: Deadline) -> Cached:
        """
        What these queues' workers are told. Raises `SourceError`, which says that it was the cache.

        It takes half of the time at most: a cache that hangs is no reason for others to wait. That it
        cannot be reached says nothing of the queues.
        """
        keys = cache.keys(self.prefixes, queues)
        try:
            values = self._values(keys, deadline.share(2))
        except SourceError as failure:
            where = f" (of keys such as {keys[0]})" if failure.reason == "permission" else ""
            raise SourceError(failure.reason, f"the cache: {failure}{where}") from None
        found = zip(keys, values, strict=True)
        there = {key: value.decode(errors="replace") for key, value in found if value is not None}
        return Cached(self.prefixes, there, "" if there or len(self.prefixes) == 1 else self.doubt)

    def _values(self, keys: list[str], deadline: Deadline) -> Reply:
        replication, values = self.link.ask([("INFO", "replication"), ("MGET", *keys)], deadline)
        if why := of_the_past(replication):
            raise SourceError("loading", why)  # as a replica says that would rather be silent than tell the past
        return answered(values)
