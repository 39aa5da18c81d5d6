"""Alerts on SQS and ECS, on Redis and Horizon, on clocks, and on the exporter itself."""

from __future__ import annotations

from exporter import exposition
from exporter.sources.clock import metrics as clock
from exporter.sources.redis import horizon, server
from exporter.sources.sqs import metrics as sqs

from .case import MAIL, ON_REDIS, Case
from .worlds import BEGINS, JOB, LONG, UP, of, step

AT = ("sqs", "mail.fifo")
REDIS = {"connection": "redis"}
EVICTING = f"_x{BEGINS - 1} 1x{LONG}"
UP_AND_DOWN = " ".join(["4x3 8x3"] * (LONG // 8))  # every four minutes

SQS = [
    Case(
        "ScaleFromZeroStuck", "sqs", 5, MAIL,
        "4 messages are ready in sqs/mail.fifo, and its service has had no running task for 5 minutes.",
        {of(sqs.RUNNING, *AT): step(4, 0), of(sqs.DESIRED, *AT): step(4, 0)},
    ),
    Case(
        "BacklogPerTaskHigh", "sqs", 10, MAIL,
        "240 messages wait for each task of sqs/mail.fifo, more than one can do within the target wait.",
        {of(sqs.BACKLOG, *AT): step(1, 240)},
    ),
    Case(
        "FifoStuck", "sqs", 16, MAIL,
        "3 tasks or more of sqs/mail.fifo have had no message for 10 minutes,"
        " although more messages wait than there are tasks.",
        {of(sqs.IDLE_TASKS, *AT): step(0, 3), of(sqs.IDLE_TASKS, "sqs", "exports"): step(0, 3)},
    ),
    Case(
        "DeadLettersPresent", "sqs", 5, MAIL,
        "2 messages of sqs/mail.fifo lie in its dead-letter queue, where nobody works on them.",
        {of(sqs.DEAD_LETTERS, *AT): step(0, 2)},
    ),
    Case(
        "EcsTasksMissing", "sqs", 15, MAIL,
        "2 tasks run for sqs/mail.fifo, fewer than ECS has tried to have for 15 minutes.",
        {of(sqs.RUNNING, *AT): step(4, 2)},
    ),
    Case(
        "EcsTasksFlapping", "sqs", 23, MAIL,
        "The desired tasks of sqs/mail.fifo were lowered 5 times within the last hour, and raised as often:"
        " it scales in too eagerly.",
        {of(sqs.DESIRED, *AT): UP_AND_DOWN, of(sqs.RUNNING, *AT): UP_AND_DOWN},
    ),
]  # fmt: skip

ON_HORIZON = [
    Case(
        "RedisMemoryHigh", "redis", 10, REDIS,
        "90% of the memory that the Redis of redis may have is used; when it is full, no job can be pushed.",
        {of(server.MEMORY_USED, "redis"): step(1e8, 9e8)},
    ),
    Case(
        "RedisFull", "redis", 2, REDIS,
        "99% of the memory that the Redis of redis may have is used, and its maxmemory-policy is noeviction:"
        " a dispatch fails, and what it was to do is lost.",
        {of(server.MEMORY_USED, "redis"): step(1e8, 9.9e8)},
    ),
    Case(
        "RedisEvictionPolicy", "redis", 15, {**REDIS, "policy": "allkeys-lru"},
        "The Redis of redis has the maxmemory-policy allkeys-lru:"
        " when its memory is full it evicts jobs like any other key.",
        {of(server.POLICY, "redis", "allkeys-lru"): EVICTING},
    ),
    Case(
        "RedisEvictions", "redis", 2, REDIS,
        "The Redis of redis evicted about 3 keys within 15 minutes, and its policy does not spare jobs.",
        {of(server.EVICTED, "redis"): step(0, 3), of(server.POLICY, "redis", "allkeys-lru"): EVICTING},
    ),
    Case(
        "HorizonInactive", "redis", 3, REDIS,
        "No Horizon master is alive on redis, and 6 jobs are ready.",
        {of(horizon.MASTERS, "redis", "running"): step(1, 0)},
    ),
    Case(
        "HorizonPaused", "redis", 30, REDIS,
        "1 Horizon masters of redis have been paused for 30 minutes.",
        {of(horizon.MASTERS, "redis", "running"): step(1, 0), of(horizon.MASTERS, "redis", "paused"): step(0, 1)},
    ),
    Case(
        "HorizonNoProcesses", "redis", 5, ON_REDIS,
        "3 jobs are ready in redis/default, and Horizon runs no process for it.",
        {of(horizon.PROCESSES, *ON_REDIS.values()): step(3, 0)},
    ),
]  # fmt: skip

EXPORTER = [
    Case(
        "ClockOffset", "any", 5, {"reference": "ntp:time1.internal"},
        "The clock of ntp:time1.internal and that of the exporter differ by at least 2.498s.",
        {of(clock.OFFSET, "ntp:time1.internal"): step(0.01, -2.5)},
    ),
    Case(
        "ExporterDown", "any", 5, {},
        "Prometheus has had no answer from exporter-1:10087 for 5 minutes.",
        {UP: step(1, 0)},
    ),
    Case(
        "ExporterAbsent", "any", 16, {"job": JOB},
        "No target of the scrape job laravel-queue-exporter has existed for 15 minutes.",
        {UP: f"1x{BEGINS - 1} stale"},
    ),
    *(
        Case(
            "SourceDown", driver, 5, {"connection": driver, "source": driver, "collector": collector},
            f"The exporter exporter-1:10087 has no answer from {driver} that may be believed,"
            " so nothing is known of its jobs.",
            {of(exposition.FRESH, driver, collector): step(1, 0), of(exposition.UP, driver, collector): step(1, 0)},
        )
        for driver, collector in (("database", "jobs"), ("redis", "queues"), ("sqs", "queues"))
    ),
    Case(
        "CollectorDown", "any", 15, {"connection": "clock", "source": "clock", "collector": "ntp"},
        "The exporter exporter-1:10087 has no answer from the collector ntp of clock that may be believed.",
        {of(exposition.FRESH, "clock", "ntp"): step(1, 0)},
    ),
    Case(
        "PollSlow", "any", 30, {"connection": "clock", "source": "clock", "collector": "ntp"},
        "The exporter exporter-1:10087 asks for ntp of clock only every 1m 0s, less than half as often as configured.",
        {of(exposition.INTERVAL, "clock", "ntp"): step(15, 60)},
    ),
]  # fmt: skip

CASES = [*SQS, *ON_HORIZON, *EXPORTER]
