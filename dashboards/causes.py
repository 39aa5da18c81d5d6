"""The overview's row of causes: arrival, workers, or the database."""

from __future__ import annotations

from .grafana import Query, Row
from .panels import lines

QUEUE = "{{connection}}/{{queue}}"


def jobs(state: str) -> str:
    """Jobs in a state, of each queue; two exporters that count the same ones say it once."""
    return f'max by (connection, queue) (laravel_queue_jobs{{state="{state}"}})'


def seen(rule: str) -> str:
    """What a rule says of a connection, while its jobs are seen: a mean over 30 minutes outlives its source."""
    return f"max by (connection) ({rule} and on (job, instance, connection) laravel_queue_jobs)"


def worst(metric: str) -> str:
    """A gauge of each queue, of the ten with the highest values in the whole span: more lines nobody can read."""
    highest = metric.replace("}", "}[$__range]") if "}" in metric else f"{metric}[$__range]"
    return (
        f"max by (connection, queue) ({metric})"
        f" and topk(10, max by (connection, queue) (max_over_time({highest} @ end())))"
    )


WHY = Row(
    "Arrival, workers, or the database?",
    (
        lines(
            "Jobs in and out",
            "Jobs that arrive and that are done, per second over 5 minutes, from the recording rules. A released job is"
            " both. Horizon counts no arrivals; SQS tells three minutes late.",
            "out follows in.",
            Query(seen("connection:laravel_queue_arrivals:rate5m"), "in {{connection}}"),
            Query(seen("connection:laravel_queue_completions:rate5m"), "out {{connection}}"),
            unit="ops",
            alerts=("LaravelQueueWaitTooLong",),
        ),
        lines(
            "Workers, and how many work",
            "Workers that are alive, and jobs in work. Dashed: how many workers keep waits short (the load, and twice"
            " its root), from the recording rules; a delayed job counts when it is pushed, so many at once seem to need"
            " many. The tasks of an ECS service count once for each of its queues.",
            "workers above the dashed line, jobs in work below both.",
            Query(
                "sum by (connection) (max by (connection, pool) (laravel_queue_workers)"
                " or max by (connection, queue) (laravel_queue_ecs_running_tasks))",
                "workers {{connection}}",
            ),
            Query(f"sum by (connection) ({jobs('reserved')})", "at work {{connection}}"),
            Query(
                seen("connection:laravel_queue_workers_needed:ceil30m"),
                "needed {{connection}}",
                dashed=True,
                empty="only Horizon, which counts no arrivals",
            ),
            alerts=("LaravelQueueNoWorkers", "LaravelQueueCapacityLow", "LaravelQueueHorizonInactive"),
        ),
        lines(
            "Database connections",
            "Connections of the whole server; the driver's board tells pools apart. Dashed: what an application"
            " can get.",
            "well below the dashed line.",
            Query(
                "sum by (connection) (max by (connection, pool, state) (laravel_queue_database_connections))",
                "{{connection}}",
                empty="no connection of the driver database",
            ),
            Query(
                "max by (connection)"
                " (laravel_queue_database_connections_max - laravel_queue_database_connections_reserved)",
                "limit of {{connection}}",
                dashed=True,
                empty="no connection of the driver database",
            ),
            alerts=("LaravelQueueConnectionsHigh", "LaravelQueueConnectionsExhausted"),
        ),
        lines(
            "Failed for good",
            "Jobs that failed for good, per minute. The driver's board says of which class. SQS does not tell.",
            "few, and always about as many.",
            Query(
                "60 * sum by (connection, queue) (max by (connection, queue, job_class)"
                " (rate(laravel_queue_failed_jobs_total[$__rate_interval])))",
                QUEUE,
                empty="only SQS, which does not tell",
            ),
            alerts=("LaravelQueueFailureRatioHigh", "LaravelQueueFailureRatioElevated"),
            defaults={"decimals": 1},
        ),
        lines(
            "Run or held twice",
            "Jobs handed out again within 15 minutes, jobs held past `retry_after`, jobs whose worker seems dead, and"
            " jobs that wait for another try.",
            "0.",
            Query(
                "max by (connection, queue) (increase(laravel_queue_reservations_repeated_total[15m])) > 0",
                "again " + QUEUE,
                empty="nothing was handed out twice",
            ),
            Query(f"{jobs('expired')} > 0", "expired " + QUEUE, empty="nothing is held too long"),
            Query(
                "max by (connection, queue) (laravel_queue_reserved_past_timeout_jobs) > 0",
                "worker dead " + QUEUE,
                empty="nothing is held past its timeout",
            ),
            Query(
                "max by (connection, queue) (laravel_queue_retried_jobs) > 0",
                "to be retried " + QUEUE,
                empty="nothing is retried",
            ),
            alerts=(
                "LaravelQueueJobsReservedTwice",
                "LaravelQueueReservationsExpired",
                "LaravelQueueOrphanedReservations",
                "LaravelQueueRetryStorm",
            ),
        ),
        lines(
            "How long a job takes",
            "Mean over 30 minutes by Little's law, from the recording rules: of a table, of a queue of Horizon or SQS.",
            "it changes with a release, not by itself.",
            Query(seen("connection:laravel_queue_job_duration_seconds:mean30m"), "{{connection}}"),
            unit="s",
            alerts=("LaravelQueueDurationNearRetryAfter",),
        ),
    ),
)
