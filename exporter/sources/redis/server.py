"""The server: how much memory it uses, and whether it may throw jobs away when there is none left."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ...errors import SourceError
from ...model import Limit, Metric, Only, Sample
from ...timing import Deadline
from ..resp.replies import Reply, info, number
from .session import Session

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
MEMORY_MAX = Metric("laravel_queue_redis_memory_max_bytes", "The limit maxmemory; absent without one.", ("connection",))
MEMORY_USED = Metric(
    "laravel_queue_redis_memory_used_bytes",
    "Memory that Redis uses. At the limit it refuses new jobs, or throws keys away, as its policy says.",
    ("connection",),
    limit=(
        Limit(
            MEMORY_MAX,
            "Redis uses {value} of {bound}: when it is full, no job can be pushed, or jobs are thrown away",
            "LaravelQueueRedisMemoryHigh",
            share=0.85,
        ),
        # With volatile-… it makes room as long as a key has an expiry, so only noeviction is sure to refuse.
        Limit(
            MEMORY_MAX,
            "Redis uses {value} of {bound}: it is full, and no job can be pushed",
            "LaravelQueueRedisFull",
            share=0.98,
            given=Only(POLICY, "policy", "noeviction"),
            page=True,
        ),
    ),
)
EVICTED = Metric(
    "laravel_queue_redis_evicted_keys_total", "Keys thrown away for lack of memory.", ("connection",), "counter"
)


class Server:
    """Two sections of INFO. A job's key has no expiry, so only the policies `allkeys-…` can evict it."""

    name = "server"
    metrics: tuple[Metric, ...] = (MEMORY_USED, MEMORY_MAX, EVICTED, POLICY)

    def __init__(self, session: Session) -> None:
        self.session = session
        self.interval = session.settings.interval

    def fetch(self, deadline: Deadline) -> list[Reply]:
        return self.session.ask(deadline, lambda _: [("INFO", "memory"), ("INFO", "stats")]).replies

    def measure(self, raw: list[Reply], now: float) -> Iterable[Sample]:
        says = dict(chain.from_iterable(info(reply).items() for reply in raw))
        name, policy = self.session.name, says.get("maxmemory_policy")
        used, most, evicted = (number(says.get(each)) for each in ("used_memory", "maxmemory", "evicted_keys"))
        if used is None or most is None or evicted is None or policy is None:
            raise SourceError("malformed", "INFO does not say how much memory is used, may be, and was made free")
        yield MEMORY_USED(used, name)
        if most:
            yield MEMORY_MAX(most, name)
        yield EVICTED(evicted, name)
        yield POLICY(most > 0, name, policy)
