"""The database driver: connections, the jobs table and its vacuum, what a pop costs, workers and what they hold."""

from __future__ import annotations

from .board import Board
from .causes import seen
from .choices import MATCHED, connections
from .grafana import Limit, Query, Row
from .holding import NOW, POOL, QUEUE, TABLE, WORK
from .panels import lines, stat

FIRST = Row(
    "Is it the database?",
    (
        stat(
            "Connections",
            "Share of the connections that an application can get.",
            "below 80 %.",
            Query("max(laravel_queue_database_connection_usage_ratio)"),
            unit="percentunit",
            limits=(Limit("LaravelQueueConnectionsHigh", 0.8), Limit("LaravelQueueConnectionsExhausted", 0.95)),
            defaults={"decimals": 0},
        ),
        stat(
            "Waiting",
            "Sessions that work and wait for something other than their client.",
            "0, or a few.",
            Query("sum(max by (connection, wait_event_type) (laravel_queue_database_waiting_backends))"),
            alerts=("LaravelQueuePopSlow",),
        ),
        stat(
            "Oldest trans.",
            "Age of what keeps vacuum from removing dead rows: a transaction, a replication slot, a standby.",
            "seconds.",
            Query("max(laravel_queue_database_oldest_transaction_age_seconds)"),
            unit="s",
            limits=(Limit("LaravelQueueXminHeld", 900),),
        ),
        stat(
            "Dead rows",
            "Rows that no vacuum has removed yet, as a share of those that autovacuum waits for (10,000 at least).",
            "below 100 %.",
            Query(
                "max(laravel_queue_table_dead_tuples / clamp_min(laravel_queue_table_autovacuum_trigger_tuples, 10000))"
            ),
            unit="percentunit",
            defaults={"decimals": 0},
            limits=(Limit("LaravelQueueDeadTuplesHigh", 1),),
        ),
        stat(
            "Pop: pages",
            "Pages that a worker's search for the next job touches, of the dearest queue. Missing if the search takes"
            " too long: see its duration.",
            "a handful.",
            Query("max(laravel_queue_pop_buffers)"),
            limits=(Limit("LaravelQueuePopSlow", 1000),),
        ),
        stat(
            "Pop: time",
            "How long a worker's search for the next job takes, of the dearest queue; 250 ms means at least that.",
            "below a millisecond or two.",
            Query("max(laravel_queue_pop_duration_seconds)"),
            unit="s",
            limits=(Limit("LaravelQueuePopSlow", 0.1, reached=True),),
        ),
        stat(
            "Lock waiters",
            "Sessions that wait for a lock on the jobs table or on a row of it.",
            "0.",
            Query("sum(max by (connection, table) (laravel_queue_table_lock_waiters))"),
            limits=(Limit("LaravelQueueLockWaits", 0),),
        ),
        stat(
            "Old workers",
            "Workers that run the code from before the last `queue:restart`.",
            "0, or some for as long as a job takes.",
            Query(
                "sum(max by (connection, pool) (laravel_queue_workers_outdated))",
                empty="no restart was signalled",
            ),
            limits=(Limit("LaravelQueueWorkersOutdated", 0),),
        ),
    ),
)

TABLES = Row(
    "The jobs table and its vacuum",
    (
        lines(
            "Dead rows",
            "Rows that no vacuum has removed yet: each pop has to pass those at the head of the table. Dashed: where"
            " autovacuum starts.",
            "they fall soon after they have come to the dashed line.",
            Query("max by (connection, table) (laravel_queue_table_dead_tuples)", "dead, " + TABLE),
            Query(
                "max by (connection, table) (laravel_queue_table_autovacuum_trigger_tuples)",
                "autovacuum starts, " + TABLE,
                dashed=True,
            ),
            alerts=("LaravelQueueDeadTuplesHigh", "LaravelQueueAutovacuumNotRunning"),
        ),
        lines(
            "What keeps dead rows",
            "Age of the oldest transaction by holder: while it is open, no row that it may see is removed.",
            "minutes at most.",
            Query(
                "max by (connection, holder) (laravel_queue_database_oldest_transaction_age_seconds)",
                "{{connection}} {{holder}}",
            ),
            unit="s",
            limits=(Limit("LaravelQueueXminHeld", 900),),
        ),
        lines(
            "Size on disk",
            "Bytes of the table by part. Only VACUUM FULL or pg_repack make it smaller.",
            "it stays where the highest wave of jobs has left it.",
            Query(
                "max by (connection, table, part) (laravel_queue_table_size_bytes)",
                TABLE + " {{part}}",
            ),
            unit="bytes",
            stacked=True,
            alerts=("LaravelQueueTableBloated",),
        ),
        lines(
            "A pop: pages",
            "Pages that a worker's search for the next job touches. Thousands: dead rows or delayed jobs at the head.",
            "a handful.",
            Query("max by (connection, queue) (laravel_queue_pop_buffers)", QUEUE),
            limits=(Limit("LaravelQueuePopSlow", 1000),),
        ),
        lines(
            "A pop: time",
            "How long this search takes, without its lock; 250 ms means at least that.",
            "below a millisecond or two.",
            Query("max by (connection, queue) (laravel_queue_pop_duration_seconds)", QUEUE),
            unit="s",
            limits=(Limit("LaravelQueuePopSlow", 0.1, reached=True),),
        ),
        lines(
            "A pop: rows stepped over",
            "Rows that it looks at in vain: delayed or reserved jobs, and those of other queues. Dead rows are none.",
            "a handful.",
            Query("max by (connection, queue) (laravel_queue_pop_skipped_rows)", QUEUE),
            limits=(Limit("LaravelQueuePopSlow", 1000),),
        ),
        lines(
            "Rows in, taken, out",
            "Rows inserted (pushed, released), updated (reserved) and deleted (done, released, failed) per second.",
            "all three are about the same.",
            Query(
                "max by (connection, table) (rate(laravel_queue_table_rows_inserted_total[$__rate_interval]))",
                "in, " + TABLE,
            ),
            Query(
                "max by (connection, table) (rate(laravel_queue_table_rows_updated_total[$__rate_interval]))",
                "taken, " + TABLE,
            ),
            Query(
                "max by (connection, table) (rate(laravel_queue_table_rows_deleted_total[$__rate_interval]))",
                "out, " + TABLE,
            ),
            unit="ops",
            width=6,
            alerts=("LaravelQueueWaitTooLong",),
        ),
        lines(
            "Jobs by state",
            "Ready: a worker could take it now. Delayed: not due yet. Reserved: in work. Expired: held for longer than"
            " `retry_after`.",
            "none expired; ready ones come and go.",
            Query(
                "sum by (state) (max by (connection, queue, state) (laravel_queue_jobs))",
                "{{state}}",
            ),
            stacked=True,
            width=6,
            alerts=("LaravelQueueReservationsExpired",),
        ),
        lines(
            "Failed for good, by class",
            "Jobs that failed for good, per minute.",
            "few, and always of about the same classes.",
            Query(
                "60 * sum by (job_class) (max by (connection, queue, job_class)"
                " (rate(laravel_queue_failed_jobs_total[$__rate_interval])))",
                "{{job_class}}",
            ),
            stacked=True,
            defaults={"decimals": 1},
            width=6,
            alerts=("LaravelQueueFailureRatioHigh", "LaravelQueueFailureRatioElevated"),
        ),
        lines(
            "Share that failed",
            "Share of what was done within 15 minutes that failed for good, from the recording rules.",
            "below 5 %. The alerts need ten failures besides.",
            Query(seen("connection:laravel_queue_failures_per_completion:ratio15m"), "{{connection}}"),
            unit="percentunit",
            limits=(Limit("LaravelQueueFailureRatioElevated", 0.05), Limit("LaravelQueueFailureRatioHigh", 0.25)),
            width=6,
        ),
    ),
)

SESSIONS = Row(
    "Connections and locks",
    (
        lines(
            "Connections by pool",
            "Connections of the whole server, and those of each pool; `other` belongs to no pool. Dashed: what an"
            " application can get.",
            "all of them well below the dashed line.",
            Query(
                "sum by (connection) (max by (connection, pool, state) (laravel_queue_database_connections))",
                "all of {{connection}}",
            ),
            Query(
                "sum by (connection, pool) (max by (connection, pool, state) (laravel_queue_database_connections))",
                POOL,
            ),
            Query(
                "max by (connection)"
                " (laravel_queue_database_connections_max - laravel_queue_database_connections_reserved)",
                "limit of {{connection}}",
                dashed=True,
            ),
            alerts=("LaravelQueueConnectionsHigh", "LaravelQueueConnectionsExhausted"),
        ),
        lines(
            "Connections by state",
            "What they do. A worker that runs a job is idle here: its job does not ask the database all the time.",
            "mostly idle; hardly any idle in a transaction.",
            Query(
                "sum by (connection, state)"
                " (max by (connection, pool, state) (laravel_queue_database_connections)) > 0",
                "{{connection}} {{state}}",
            ),
            stacked=True,
            alerts=("LaravelQueueXminHeld",),
        ),
        lines(
            "What sessions wait for",
            "Sessions that work and wait, by the kind of what they wait for. The more workers, the more of these: then"
            " the database is what is slow, and more workers make it slower.",
            "0, or a few.",
            Query(
                "max by (connection, wait_event_type) (laravel_queue_database_waiting_backends) > 0",
                "{{connection}} {{wait_event_type}}",
                empty="nobody waits",
            ),
            stacked=True,
            alerts=("LaravelQueueConnectionsExhausted",),
        ),
        lines(
            "Lock waiters",
            "Sessions that wait for a lock on the table or on a row of it. Workers with SKIP LOCKED wait for none.",
            "0.",
            Query("max by (connection, table) (laravel_queue_table_lock_waiters)", TABLE),
            limits=(Limit("LaravelQueueLockWaits", 0),),
        ),
        lines(
            "Longest lock wait",
            "How long the one that waits longest has been waiting.",
            "0.",
            Query("max by (connection, table) (laravel_queue_table_longest_lock_wait_seconds)", TABLE),
            unit="s",
            limits=(Limit("LaravelQueueLockWaits", 5),),
        ),
        lines(
            "Workers",
            "Connections of each worker pool. Not counted behind PgBouncer.",
            "as many as Supervisor was told to start.",
            Query("max by (connection, pool) (laravel_queue_workers)", POOL, empty="no pool is in the settings"),
            alerts=("LaravelQueueNoWorkers",),
        ),
    ),
)

BOARD = Board(
    "laravel-queue-postgresql",
    "Laravel queues / PostgreSQL",
    connections("database"),
    MATCHED,
    (FIRST, TABLES, SESSIONS, WORK, NOW),
)
