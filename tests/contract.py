"""
The metrics that rules, dashboards and other people's alerts rely on: names and labels.

Written once more on purpose, and by hand: a name that changes in the code has to be changed
here as well, by somebody who knows what it breaks.
"""

from __future__ import annotations

QUEUE, TABLE, DATABASE, COLLECTOR = "connection queue", "connection table", "connection", "source collector"

BY_LABELS = {
    # every driver
    QUEUE: """
        oldest_job_age_seconds oldest_reserved_job_age_seconds target_wait_seconds retry_after_seconds paused
        retried_jobs attempts_max implausible_jobs failed_jobs reservations_repeated_total
        reserved_past_timeout_jobs reservation_seconds last_reservation_timestamp_seconds
        pop_duration_seconds pop_buffers pop_skipped_rows reserved_at_lead_seconds
        ecs_running_tasks ecs_desired_tasks ecs_pending_tasks ecs_deployments ecs_idle_tasks
        backlog_per_task acceptable_backlog_per_task published_backlog_per_task
        sqs_dead_letter_messages sqs_messages_sent_total sqs_messages_deleted_total
        redis_overdue_jobs horizon_processes horizon_jobs_processed_total
        horizon_job_runtime_seconds""",
    f"{QUEUE} state": "jobs",
    f"{QUEUE} job_class": "failed_jobs_total long_reservations_total job_timeout_seconds",
    "connection driver": "connection_info",
    # PostgreSQL
    DATABASE: """
        queues database_connections_max database_connections_reserved database_connection_usage_ratio
        restart_signal_timestamp_seconds database_in_recovery database_replay_lag_seconds
        redis_memory_used_bytes redis_memory_max_bytes redis_evicted_keys_total horizon_snapshot_age_seconds""",
    TABLE: """
        table_live_tuples table_dead_tuples table_autovacuum_trigger_tuples table_autovacuum_enabled
        table_last_vacuum_timestamp_seconds table_rows_inserted_total table_rows_updated_total
        table_rows_deleted_total table_lock_waiters table_longest_lock_wait_seconds""",
    f"{TABLE} part": "table_size_bytes",
    f"{DATABASE} pool state": "database_connections",
    f"{DATABASE} wait_event_type": "database_waiting_backends",
    f"{DATABASE} holder": "database_oldest_transaction_age_seconds",
    f"{DATABASE} pool": "workers workers_outdated",
    f"{DATABASE} pool queue": "worker_timeout_seconds",
    # SQS, Redis, Horizon
    f"{QUEUE} fifo deduplication_scope throughput_limit": "sqs_queue_info",
    f"{QUEUE} dead_letter_queue foreign": "sqs_dead_letter_info",
    f"{DATABASE} operation outcome": "aws_requests_total",
    f"{DATABASE} policy": "redis_maxmemory_policy_info",
    f"{DATABASE} state": "horizon_masters horizon_supervisors",
    # clocks
    "reference": "clock_offset_seconds clock_offset_error_seconds",
    # the exporter
    COLLECTOR: """
        source_up source_fresh source_last_success_timestamp_seconds source_poll_interval_seconds
        source_configured_interval_seconds source_poll_duration_seconds source_polls_total
        source_busy_seconds_total""",
    f"{COLLECTOR} reason": "source_errors_total",
    f"{COLLECTOR} label": "labels_dropped_total",
    "version": "exporter_build_info",
}

LABELS = {
    f"laravel_queue_{name}": tuple(labels.split()) for labels, names in BY_LABELS.items() for name in names.split()
}

REASONS = (
    "timeout", "lock_timeout", "connect", "dns", "refused", "tls", "auth", "too_many_connections", "permission",
    "undefined_table", "not_found", "throttled", "loading", "wrong_type", "kod", "unsynchronised", "malformed",
    "unexpected",
)  # fmt: skip

COLLECTORS = {
    "database": {
        "jobs", "reservations", "failed_jobs", "statistics", "sizes", "activity", "locks", "pop", "signals",
    },
    "redis": {"queues", "reservations", "signals", "server", "horizon"},
    "sqs": {"queues", "cloudwatch", "ecs", "publish"},
    "clock": {"databases", "ntp"},
}  # fmt: skip
