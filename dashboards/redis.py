"""Redis and Horizon: is Horizon alive, does anybody look at each queue, how is the memory."""

from __future__ import annotations

from .board import Board
from .choices import MATCHED, connections
from .grafana import Column, Limit, Query, Row
from .panels import lines, stat, table

QUEUE = "{{connection}}/{{queue}}"
NO_HORIZON = "no Horizon in the settings"
NO_LIMIT = "maxmemory is not set"
SAFE = "no Redis may throw jobs away"
OVERDUE = "max by (connection, queue) (laravel_queue_redis_overdue_jobs unless (laravel_queue_paused == 1))"
EVICTED = (  # as in the alert: with volatile-… only what has a time to live goes, and jobs have none
    "max by (connection) (increase(laravel_queue_redis_evicted_keys_total[15m]) and ignoring (policy)"
    ' (laravel_queue_redis_maxmemory_policy_info{policy=~"allkeys-.+"} == 1))'
)

FIRST = Row(
    "Is Horizon alive, and Redis well?",
    (
        stat(
            "Masters",
            "Horizon masters that are alive, paused ones included, of the connection that has the fewest. Redis forgets"
            " a dead one after 15 s.",
            "one for each machine that runs Horizon.",
            Query(
                "min(sum by (connection) (max by (connection, state) (laravel_queue_horizon_masters)))",
                empty=NO_HORIZON,
            ),
            limits=(Limit("LaravelQueueHorizonInactive", 0, below=True),),
        ),
        stat(
            "Paused",
            "Horizon masters that are alive and take no jobs.",
            "0.",
            Query('sum(max by (connection, state) (laravel_queue_horizon_masters{state="paused"}))', empty=NO_HORIZON),
            limits=(Limit("LaravelQueueHorizonPaused", 0),),
        ),
        stat(
            "Longest wait",
            "How long the oldest job that could be taken has been waiting.",
            "seconds.",
            Query("max(laravel_queue_oldest_job_age_seconds)"),
            unit="s",
            alerts=("LaravelQueueWaitTooLong",),
        ),
        stat(
            "Ready jobs",
            "Jobs that a worker could take now.",
            "it comes back to about 0 after each rush.",
            Query('sum(max by (connection, queue) (laravel_queue_jobs{state="ready"}))'),
        ),
        stat(
            "Overdue jobs",
            "Jobs that were due for ten seconds and were not moved: no worker looks at their queue. Those of paused"
            " queues do not count.",
            "0.",
            Query(f"sum({OVERDUE})"),
            limits=(Limit("LaravelQueueStalled", 0),),
        ),
        stat(
            "Memory used",
            "Share of `maxmemory`; nothing where that is not set. At 98 % with the policy noeviction, which is a page,"
            " no job can be pushed.",
            "below 85 %.",
            Query(
                "max(laravel_queue_redis_memory_used_bytes / (laravel_queue_redis_memory_max_bytes > 0))",
                empty=NO_LIMIT,
            ),
            unit="percentunit",
            limits=(Limit("LaravelQueueRedisMemoryHigh", 0.85),),
            alerts=("LaravelQueueRedisFull",),
            defaults={"decimals": 0},
        ),
        stat(
            "Evicted, 15 min",
            "Keys that Redis threw away within 15 minutes where jobs are among them: its policy is allkeys-….",
            "0, or nothing, as no Redis has such a policy.",
            Query(f"sum({EVICTED})", empty=SAFE),
            limits=(Limit("LaravelQueueRedisEvictions", 0),),
            defaults={"decimals": 0},
        ),
        stat(
            "Last snapshot",
            "Age of Horizon's last snapshot of its metrics; `horizon:snapshot` makes one, usually every 5 minutes.",
            "minutes. Older: the scheduler does not run, and Horizon's own graphs stand still.",
            Query("max(laravel_queue_horizon_snapshot_age_seconds)", empty=NO_HORIZON),
            unit="s",
        ),
    ),
)

QUEUES = Row(
    "Which queue?",
    (
        lines(
            "Oldest job's wait",
            "How long the oldest job that could be taken has been waiting. Dashed: the target, from a fifth of it on.",
            "below the dashed line.",
            Query("max by (connection, queue) (laravel_queue_oldest_job_age_seconds)", QUEUE),
            Query(
                "max by (connection, queue) (laravel_queue_target_wait_seconds"
                " and laravel_queue_oldest_job_age_seconds > 0.2 * laravel_queue_target_wait_seconds)",
                "target of " + QUEUE,
                dashed=True,
                empty="no queue has come to a fifth of its target",
            ),
            unit="s",
            alerts=("LaravelQueueWaitTooLong", "LaravelQueueWaitWithoutTarget"),
        ),
        lines(
            "Ready jobs",
            "Jobs that a worker could take now: in the list, and due ones that were not moved yet.",
            "waves that come back to 0.",
            Query('max by (connection, queue) (laravel_queue_jobs{state="ready"})', QUEUE),
            alerts=("LaravelQueueWaitTooLong",),
        ),
        lines(
            "Overdue jobs",
            "Due or expired for ten seconds and not moved, which each look of a worker does: nobody looks.",
            "0.",
            Query(OVERDUE, QUEUE),
            limits=(Limit("LaravelQueueStalled", 0),),
        ),
        table(
            "Queues",
            "Each queue as it is now, the longest wait first.",
            "nothing coloured.",
            ("connection", "queue"),
            Column("max by (connection, queue) (laravel_queue_oldest_job_age_seconds)", "oldest", unit="s"),
            Column(
                "max by (connection, queue) (laravel_queue_target_wait_seconds)",
                "target",
                unit="s",
                empty="nobody has decided how long a job may wait",
            ),
            Column('max by (connection, queue) (laravel_queue_jobs{state="ready"})', "ready"),
            Column('max by (connection, queue) (laravel_queue_jobs{state="reserved"})', "reserved"),
            Column(
                'max by (connection, queue) (laravel_queue_jobs{state="expired"})',
                "expired",
                limits=(Limit("LaravelQueueReservationsExpired", 0),),
            ),
            Column('max by (connection, queue) (laravel_queue_jobs{state="delayed"})', "delayed"),
            Column(
                "max by (connection, queue) (laravel_queue_horizon_processes)",
                "processes",
                empty=NO_HORIZON,
                limits=(Limit("LaravelQueueHorizonNoProcesses", 0, below=True),),
            ),
            Column(
                "max by (connection, queue) (laravel_queue_paused)",
                "paused",
                empty="no cache and no Horizon in the settings",
                says=(("0", "no", "text"), ("1", "PAUSED", "orange")),
            ),
            worst="oldest",
            width=24,
            height=6,
            alerts=("LaravelQueuePausedWithBacklog",),
        ),
    ),
)

HORIZON = Row(
    "Workers",
    (
        lines(
            "Masters and supervisors",
            "What is alive, by state.",
            "all of them run.",
            Query(
                "max by (connection, state) (laravel_queue_horizon_masters)",
                "masters {{state}}",
                empty=NO_HORIZON,
            ),
            Query(
                "max by (connection, state) (laravel_queue_horizon_supervisors)",
                "supervisors {{state}}",
                empty=NO_HORIZON,
            ),
            alerts=("LaravelQueueHorizonInactive", "LaravelQueueHorizonPaused"),
        ),
        lines(
            "Processes of each queue",
            "Worker processes that Horizon runs; one for several queues counts for each of them.",
            "none is at 0.",
            Query("max by (connection, queue) (laravel_queue_horizon_processes)", QUEUE, empty=NO_HORIZON),
            limits=(Limit("LaravelQueueHorizonNoProcesses", 0, below=True),),
        ),
        lines(
            "Workers and jobs in work",
            "Processes of each supervisor, and jobs that a worker holds.",
            "fewer jobs in work than workers.",
            Query(
                "max by (connection, pool) (laravel_queue_workers)",
                "workers {{connection}}/{{pool}}",
                empty=NO_HORIZON,
            ),
            Query(
                'sum by (connection) (max by (connection, queue) (laravel_queue_jobs{state="reserved"}))',
                "in work {{connection}}",
            ),
            alerts=("LaravelQueueNoWorkers", "LaravelQueueCapacityLow"),
        ),
        lines(
            "Jobs done",
            "Jobs that Horizon has seen through without a failure, per second.",
            "it follows the day.",
            Query(
                "max by (connection, queue) (rate(laravel_queue_horizon_jobs_processed_total[$__rate_interval]))",
                QUEUE,
                empty=NO_HORIZON,
            ),
            unit="ops",
            alerts=("LaravelQueueStalled",),
        ),
        lines(
            "Runtime",
            "Mean runtime of a job since Horizon's last snapshot.",
            "it changes with a release, not by itself.",
            Query(
                "max by (connection, queue) (laravel_queue_horizon_job_runtime_seconds)",
                QUEUE,
                empty="Horizon has done nothing since its snapshot, or there is none",
            ),
            unit="s",
            alerts=("LaravelQueueDurationNearRetryAfter",),
        ),
        lines(
            "Failed for good",
            "Share of what was done within 15 minutes that failed for good, from the recording rules.",
            "below 5 %. The alerts need ten failures besides.",
            Query(
                "max by (connection, queue) (connection_queue:laravel_queue_failures_per_completion:ratio15m)",
                QUEUE,
                empty=NO_HORIZON,
            ),
            unit="percentunit",
            limits=(Limit("LaravelQueueFailureRatioElevated", 0.05), Limit("LaravelQueueFailureRatioHigh", 0.25)),
        ),
    ),
)

MEMORY = Row(
    "Redis",
    (
        lines(
            "Memory",
            "Memory that Redis uses. Dashed: `maxmemory`.",
            "well below the dashed line.",
            Query("max by (connection) (laravel_queue_redis_memory_used_bytes)", "{{connection}}"),
            Query(
                "max by (connection) (laravel_queue_redis_memory_max_bytes)",
                "maxmemory of {{connection}}",
                dashed=True,
                empty=NO_LIMIT,
            ),
            unit="bytes",
            alerts=("LaravelQueueRedisMemoryHigh", "LaravelQueueRedisFull"),
        ),
        lines(
            "Evicted keys",
            "Keys that Redis threw away for want of memory, within 15 minutes.",
            "0, or a cache at work. With a policy allkeys-…, jobs are among them.",
            Query(
                "max by (connection) (increase(laravel_queue_redis_evicted_keys_total[15m]))",
                "{{connection}}",
            ),
            alerts=("LaravelQueueRedisEvictions",),
        ),
        table(
            "What it does when its memory is full",
            "The policy of each Redis: allkeys-… throws jobs away, volatile-… and noeviction refuse new ones.",
            "noeviction.",
            ("connection", "policy"),
            Column(
                "max by (connection, policy) (laravel_queue_redis_maxmemory_policy_info)",
                "has a limit",
                says=(("0", "no limit is set", "text"), ("1", "yes", "text")),
            ),
            worst="policy",
            rising=True,
            alerts=("LaravelQueueRedisEvictionPolicy",),
        ),
    ),
)

BOARD = Board(
    "laravel-queue-redis",
    "Laravel queues / Redis and Horizon",
    connections("redis"),
    MATCHED,
    (FIRST, QUEUES, HORIZON, MEMORY),
)
