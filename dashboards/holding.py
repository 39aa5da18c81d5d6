"""The rows of the PostgreSQL board on workers and what they hold, and on how everything is now."""

from __future__ import annotations

from .grafana import Column, Limit, Query, Row
from .panels import label, lines, table

QUEUE = "{{connection}}/{{queue}}"
TABLE = "{{connection}}/{{table}}"
POOL = "{{connection}}/{{pool}}"
WORKING = "the table has no jobs in work"

WORK = Row(
    "Workers, and what they hold",
    (
        lines(
            "Outdated workers",
            "Workers that began before the last `queue:restart`, so they run the old code.",
            "0 as soon as the job in hand is done.",
            Query(
                "max by (connection, pool) (laravel_queue_workers_outdated)",
                POOL,
                empty="no restart was signalled",
            ),
            limits=(Limit("LaravelQueueWorkersOutdated", 0),),
        ),
        lines(
            "Worker's clock ahead",
            "How far `reserved_at` is ahead of the database's clock, or behind it: at least so much is a worker's clock"
            " off.",
            "within 2 s.",
            Query("max by (connection, queue) (laravel_queue_reserved_at_lead_seconds)", QUEUE, empty=WORKING),
            unit="s",
            limits=(Limit("LaravelQueueWorkerClockAhead", 2, either_way=True),),
            signed=True,
        ),
        lines(
            "Longest held job",
            "How long the job that is held longest has been held. Dashed: `retry_after`, after which it is handed out"
            " again, whether or not its worker still runs it; from a fifth of it on.",
            "below half of the dashed line.",
            Query("max by (connection, queue) (laravel_queue_oldest_reserved_job_age_seconds)", QUEUE),
            Query(
                "max by (connection, queue) (laravel_queue_retry_after_seconds"
                " and laravel_queue_oldest_reserved_job_age_seconds > 0.2 * laravel_queue_retry_after_seconds)",
                "retry_after of " + QUEUE,
                dashed=True,
                empty="no job has been held for a fifth of retry_after",
            ),
            unit="s",
            alerts=("LaravelQueueDurationNearRetryAfter", "LaravelQueueReservationsExpired"),
        ),
        lines(
            "Handed out again",
            "Jobs that were given to a second worker, within 15 minutes, and those whose worker seems dead.",
            "0.",
            Query(
                "max by (connection, queue) (increase(laravel_queue_reservations_repeated_total[15m]))",
                "again, " + QUEUE,
            ),
            Query("max by (connection, queue) (laravel_queue_reserved_past_timeout_jobs)", "worker dead, " + QUEUE),
            limits=(Limit("LaravelQueueJobsReservedTwice", 0),),
            alerts=("LaravelQueueJobsRerun", "LaravelQueueOrphanedReservations"),
        ),
        lines(
            "Jobs that take long",
            "Reservations within an hour that outlasted half of `retry_after`, by class: what takes all of it runs"
            " twice.",
            "0.",
            Query(
                "max by (connection, queue, job_class) (increase(laravel_queue_long_reservations_total[1h]))",
                QUEUE + " {{job_class}}",
            ),
            limits=(Limit("LaravelQueueDurationNearRetryAfter", 3, reached=True),),
        ),
        lines(
            "Lengths of reservations",
            "Half and nine tenths of the reservations were shorter, as seen from outside: below one interval a biased"
            " sample, so a guide and no figure to rule by.",
            "far below `retry_after`.",
            Query(
                "histogram_quantile(0.5, max by (connection, queue, le)"
                " (rate(laravel_queue_reservation_seconds_bucket[$__rate_interval])))",
                "half, " + QUEUE,
            ),
            Query(
                "histogram_quantile(0.9, max by (connection, queue, le)"
                " (rate(laravel_queue_reservation_seconds_bucket[$__rate_interval])))",
                "nine tenths, " + QUEUE,
            ),
            unit="s",
            alerts=("LaravelQueueDurationNearRetryAfter",),
        ),
    ),
)

NOW = Row(
    "As it is now",
    (
        table(
            "Tables",
            "Each table as it is now.",
            "autovacuum is on, and there was a vacuum within the day.",
            ("connection", "table"),
            Column("max by (connection, table) (laravel_queue_table_live_tuples)", "live rows"),
            Column(
                "max by (connection, table) (laravel_queue_table_dead_tuples)",
                "dead rows",
            ),
            Column(
                "sum by (connection, table) (max by (connection, table, part) (laravel_queue_table_size_bytes))",
                "size",
                unit="bytes",
            ),
            Column(
                "max by (connection, table) (laravel_queue_table_autovacuum_enabled)",
                "autovacuum",
                says=(("0", "OFF", "orange"), ("1", "on", "text")),
            ),
            Column(
                "max by (connection, table) (laravel_queue_table_last_vacuum_timestamp_seconds) * 1000",
                "last vacuum",
                empty="no vacuum has been here yet",
                unit="dateTimeFromNow",
            ),
            worst="dead rows",
            width=16,
            height=5,
            alerts=("LaravelQueueAutovacuumDisabled", "LaravelQueueAutovacuumNotRunning"),
        ),
        table(
            "Databases",
            "Whether it is the primary, and its limits. Of a standby only the jobs and its lag are shown.",
            "a primary, or a standby without lag.",
            ("connection",),
            Column(
                "max by (connection) (laravel_queue_database_in_recovery)",
                "is a",
                says=(("0", "primary", "text"), ("1", "STANDBY", "orange")),
            ),
            Column("max by (connection) (laravel_queue_database_replay_lag_seconds)", "lag", unit="s"),
            Column("max by (connection) (laravel_queue_database_connections_max)", "max"),
            Column("max by (connection) (laravel_queue_database_connections_reserved)", "reserved"),
            worst="lag",
            height=5,
            alerts=("LaravelQueueSourceDown",),
        ),
        table(
            "Timeouts and retry_after",
            "Each timeout must be below `retry_after`, or jobs run twice. ∞: there is none.",
            "nothing coloured.",
            ("connection", "queue", "pool", "job_class"),
            Column(
                "max by (connection, queue, job_class) (laravel_queue_job_timeout_seconds)"
                " or max by (connection, queue, pool) (laravel_queue_worker_timeout_seconds)",
                "timeout",
                unit="s",
                empty="no pool and no job says one",
            ),
            Column(
                "max by (connection, queue, job_class) (laravel_queue_job_timeout_seconds"
                " / ignoring (job_class) group_left laravel_queue_retry_after_seconds)"
                " or max by (connection, queue, pool) (laravel_queue_worker_timeout_seconds"
                " / ignoring (pool) group_left laravel_queue_retry_after_seconds)",
                "of retry_after",
                unit="percentunit",
                limits=(Limit("LaravelQueueTimeoutExceedsRetryAfter", 1, reached=True),),
                empty="no pool and no job says one",
            ),
            worst="of retry_after",
            columns_of=(label("job_class", width=200),),
            width=14,
        ),
        table(
            "Oddities",
            "Queues with jobs whose times cannot be, or that were tried often; and when a job was last taken.",
            "nothing implausible.",
            ("connection", "queue"),
            Column("max by (connection, queue) (laravel_queue_attempts_max)", "most attempts"),
            Column("max by (connection, queue) (laravel_queue_implausible_jobs)", "implausible"),
            Column(
                "max by (connection, queue) (laravel_queue_last_reservation_timestamp_seconds) * 1000",
                "last taken",
                unit="dateTimeFromNow",
                width=140,
                empty="nobody has taken a job yet",
            ),
            worst="most attempts",
            width=10,
            alerts=("LaravelQueueRetryStorm", "LaravelQueueStalled"),
        ),
    ),
)
