"""What goes wrong in a Redis, and with Horizon."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Horizon
from .healthy import HEALTHY, Incident

WITH_EXPORTS = {"default": 4.0, "mails": 2.0, "exports": 1.0}

INCIDENTS = {
    "horizon-down": Incident(
        "Horizon was killed. Its dashboard is silent with it, and its sorted set still names the dead master.",
        (
            'redis: "no Horizon master is alive"; redis/default: "Horizon runs no worker for this queue"',
            'redis/default: "oldest job" over its target, and growing; the jobs that were held expire',
        ),
        replace(HEALTHY, horizon=Horizon(state="down", backlog=600)),
    ),
    "horizon-paused": Incident(
        "Somebody paused Horizon for a migration and went home: everything is up, and nothing is done.",
        (
            'redis/default: "paused, oldest job"; redis: "1 Horizon master paused"; no word of its target',
            'SOURCES, redis/horizon: "paused in Horizon: web-1-Qx7t"',
        ),
        replace(HEALTHY, horizon=Horizon(state="paused", backlog=300)),
    ),
    "no-processes": Incident(
        "Jobs are sent to a new queue, 'exports', and no supervisor in config/horizon.php lists it.",
        (
            'redis/exports: "Horizon runs no worker for this queue"; redis/default: all is well',
            "redis/exports: the oldest job over its target after a minute; Horizon itself shows no such queue",
        ),
        replace(HEALTHY, horizon=Horizon(per_second=WITH_EXPORTS)),
    ),
    "overdue": Incident(
        "A supervisor for the queue 'exports' was never deployed: its delayed jobs are due, and nobody moves them.",
        (
            'redis/exports: "jobs due and not moved: no worker has looked at this queue"',
            "redis/default: all is well, as Horizon itself says of everything",
        ),
        replace(HEALTHY, horizon=Horizon(due={"exports": 40})),
    ),
    "redis-full": Incident(
        "Sessions fill the Redis that the queue shares with the cache, and its policy refuses: no job can be pushed.",
        (
            'redis: "no job can be pushed", and "no Horizon master is alive", as Horizon cannot write either',
            "laravel_queue_jobs: no job comes any more, while customers see errors",
        ),
        replace(
            HEALTHY,
            horizon=Horizon(sessions=6000, server={"maxmemory": "12mb", "maxmemory-policy": "noeviction"}),
        ),
    ),
    "redis-memory": Incident(
        "Sessions fill the Redis that the queue shares with the cache, and its policy throws away whatever it likes.",
        (
            'redis/allkeys-random: "Redis may throw jobs away"; redis: "no job can be pushed" once it is full',
            "laravel_queue_redis_evicted_keys_total: rising, jobs among them",
        ),
        replace(
            HEALTHY,
            horizon=Horizon(sessions=6000, server={"maxmemory": "12mb", "maxmemory-policy": "allkeys-random"}),
        ),
    ),
}
