"""The server: how much memory it uses, and whether it may throw jobs away when there is none left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...errors import SourceError
from ...model import Limit, Metric, Note, Sample
from ...timing import Deadline
from ..resp.replies import info
from .session import Session

MEMORY_MAX = Metric("laravel_queue_redis_memory_max_bytes", "The limit maxmemory; absent without one.", ("connection",))
MEMORY_USED = Metric(
    "laravel_queue_redis_memory_used_bytes",
    "Memory that Redis uses. At the limit it refuses new jobs, or throws keys away, as its policy says.",
    ("connection",),
    limit=Limit(
        MEMORY_MAX,
        "Redis uses {value} of {bound}: when it is full, no job can be pushed, or jobs are thrown away",
        "LaravelQueueRedisMemoryHigh",
        share=0.85,
    ),
)
EVICTED = Metric(
    "laravel_queue_redis_evicted_keys_total", "Keys thrown away for lack of memory.", ("connection",), "counter"
)
POLICY = Metric(
    "laravel_queue_redis_maxmemory_policy_info",
    "1 for the eviction policy that is set, 0 as long as there is no limit to the memory.",
    ("connection", "policy"),
    limit=Limit(
        0,
        "Redis may throw jobs away when its memory is full: set maxmemory-policy noeviction",
        "LaravelQueueRedisEvictionPolicy",
        where=("policy", "allkeys-lru", "allkeys-lfu", "allkeys-lrm", "allkeys-random"),
    ),
)


class Raw(NamedTuple):
    """What a poll brought."""

    memory: dict[str, str]
    stats: dict[str, str]


class Server:
    """Two sections of INFO. A job's key has no expiry, so only the policies `allkeys-…` can evict it."""

    name = "server"
    metrics: tuple[Metric, ...] = (MEMORY_USED, MEMORY_MAX, EVICTED, POLICY)

    def __init__(self, session: Session) -> None:
        self.session = session
        self.interval = session.settings.interval

    def fetch(self, deadline: Deadline) -> Raw:
        answer = self.session.ask(deadline, lambda _: [("INFO", "memory"), ("INFO", "stats")])
        memory, stats = map(info, answer.replies)
        if not {"used_memory", "maxmemory", "maxmemory_policy"} <= memory.keys() or "evicted_keys" not in stats:
            raise SourceError("malformed", "INFO does not say how much memory is used")
        return Raw(memory, stats)

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        name, most = self.session.name, int(raw.memory["maxmemory"])
        yield MEMORY_USED(int(raw.memory["used_memory"]), name)
        if most:
            yield MEMORY_MAX(most, name)
        yield EVICTED(int(raw.stats["evicted_keys"]), name)
        yield POLICY(most > 0, name, raw.memory["maxmemory_policy"])
