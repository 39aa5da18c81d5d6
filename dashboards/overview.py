"""All drivers: is anybody waiting, which queue, is it arrival or workers or the database, what changed."""

from __future__ import annotations

from .board import Board
from .causes import QUEUE, WHY, jobs, seen, worst
from .choices import MATCHED, connections
from .grafana import RUNBOOKS, Column, Limit, Query, Row
from .panels import bars, label, lines, stat, table, words

BY = ("connection", "queue")

FIRING = """
min by (severity, alertname, where) (label_join(
    ALERTS_FOR_STATE and ignoring (alertstate) ALERTS{alertstate="firing", severity=~"critical|warning"},
    "where", " ", "connection", "collector", "queue", "pool", "job_class", "table", "holder", "reference"
)) * 1000
"""
RUNBOOK = {
    "id": "links",
    "value": [{"title": "Runbook", "url": RUNBOOKS + "${__value.raw}", "targetBlank": True}],
}
WAIT = "max by (connection, queue) (laravel_queue_oldest_job_age_seconds)"
LATE = "(laravel_queue_oldest_job_age_seconds > bool laravel_queue_target_wait_seconds)"
TARGET = "max by (connection, queue) (laravel_queue_target_wait_seconds)"


ANYBODY = Row(
    "Is anybody waiting?",
    (
        stat(
            "Blind sources",
            "Sources whose jobs an exporter cannot see, and exporters that Prometheus cannot scrape: what they alone"
            " watch is in no number here.",
            "0.",
            Query(
                'sum(max by (instance, source) (laravel_queue_source_fresh{collector=~"jobs|queues"} == bool 0)'
                " or max by (instance) (up == bool 0))"
            ),
            limits=(Limit("LaravelQueueSourceDown", 0),),
            alerts=("LaravelQueueExporterDown",),
        ),
        stat(
            "Queues too late",
            "Queues whose oldest job waits longer than somebody decided that it may, of those that are seen. A paused"
            " queue may wait.",
            "0.",
            Query(f"sum(max by (connection, queue) ({LATE} unless (laravel_queue_paused == 1) or 0 * {LATE}))"),
            limits=(Limit("LaravelQueueWaitTooLong", 0),),
        ),
        stat(
            "Longest wait",
            "How long the oldest job that could be taken has been waiting, whatever its queue's target.",
            "seconds, or what the slowest queue may take.",
            Query("max(laravel_queue_oldest_job_age_seconds)"),
            unit="s",
            alerts=("LaravelQueueWaitWithoutTarget",),
        ),
        stat(
            "Ready jobs",
            "Jobs that a worker could take now.",
            "it comes back to about 0 after each rush.",
            Query(f"sum({jobs('ready')})"),
        ),
        stat(
            "Failed, 15 min",
            "Jobs that failed for good within 15 minutes. SQS does not tell.",
            "few, and always about as many.",
            Query(
                "sum(max by (connection, queue, job_class) (increase(laravel_queue_failed_jobs_total[15m])))",
                empty="only SQS, which does not tell",
            ),
            defaults={"decimals": 0},
            alerts=("LaravelQueueFailureRatioHigh",),
        ),
        stat(
            "Workers",
            "Live workers: connections to the database, processes of Horizon, running ECS tasks (once for each queue of"
            " their service).",
            "as many as were started.",
            Query(
                "sum(max by (connection, pool) (laravel_queue_workers)"
                " or max by (connection, queue) (laravel_queue_ecs_running_tasks))"
            ),
            alerts=("LaravelQueueNoWorkers", "LaravelQueueScaleFromZeroStuck"),
        ),
        stat(
            "Workers busy",
            "Share of the last 30 minutes in which the workers had a job, of the busiest connection.",
            "below 60 %. Above 80 % waits grow steeply.",
            Query(
                f"max({seen('connection:laravel_queue_busy_workers_per_worker:ratio30m')})",
                empty="only SQS: what in flight and idle tasks say is on its board",
            ),
            unit="percentunit",
            limits=(Limit("LaravelQueueCapacityLow", 0.8),),
            defaults={"decimals": 0},
        ),
        stat(
            "Connections",
            "Share of the connections that an application can get from the database.",
            "below 80 %.",
            Query(
                "max(laravel_queue_database_connection_usage_ratio)",
                empty="no connection of the driver database",
            ),
            unit="percentunit",
            limits=(Limit("LaravelQueueConnectionsHigh", 0.8), Limit("LaravelQueueConnectionsExhausted", 0.95)),
            defaults={"decimals": 0},
        ),
        table(
            "Firing alerts",
            "What fires now, pages first. The name opens its runbook.",
            "empty.",
            ("severity", "alertname", "where"),
            Column(FIRING, "since", empty="nothing fires", unit="dateTimeFromNow", width=125),
            worst="severity",
            rising=True,
            columns_of=(
                label("severity", *words(("critical", "PAGE", "red"), ("warning", "ticket", "orange")), width=70),
                label("alertname", RUNBOOK, width=300),
            ),
            width=14,
            height=7,
        ),
        bars(
            "Wait, as a share of what is allowed",
            "The oldest job's wait divided by the queue's target wait. A paused queue may wait: see the table below.",
            "below 100 %.",
            Query(
                "sort_desc(max by (connection, queue) ("
                "laravel_queue_oldest_job_age_seconds / laravel_queue_target_wait_seconds"
                " unless (laravel_queue_paused == 1)))",
                QUEUE,
                empty="all queues are paused",
            ),
            unit="percentunit",
            limits=(Limit("LaravelQueueWaitTooLong", 1),),
            defaults={"max": 2, "decimals": 0},
            width=10,
            height=7,
        ),
    ),
)

WHICH = Row(
    "Which queue?",
    (
        lines(
            "Oldest job's wait",
            "How long the oldest job that could be taken has been waiting, in the ten slowest queues. A slope of one"
            " second a second: nobody takes any. Dashed: the queue's target, from a fifth of it on.",
            "below the dashed line.",
            Query(worst("laravel_queue_oldest_job_age_seconds"), QUEUE),
            Query(
                "max by (connection, queue) (laravel_queue_target_wait_seconds"
                " and laravel_queue_oldest_job_age_seconds > 0.2 * laravel_queue_target_wait_seconds)",
                "target of " + QUEUE,
                dashed=True,
                empty="no queue has come to a fifth of its target",
            ),
            unit="s",
            alerts=("LaravelQueueWaitTooLong", "LaravelQueueStalled", "LaravelQueueStarved"),
        ),
        lines(
            "Ready jobs",
            "Jobs that a worker could take now, in the ten fullest queues.",
            "waves that come back to 0.",
            Query(worst('laravel_queue_jobs{state="ready"}'), QUEUE),
            alerts=("LaravelQueueWaitTooLong",),
        ),
        lines(
            "Jobs in work",
            "Jobs that a worker holds, in the ten busiest queues. None, while others are ready: nobody listens to that"
            " queue.",
            "never above the number of workers.",
            Query(worst('laravel_queue_jobs{state="reserved"}'), QUEUE),
            alerts=("LaravelQueueStalled", "LaravelQueueNoWorkers"),
        ),
    ),
)

NOW = Row(
    "Queues now",
    (
        table(
            "Queues",
            "Each queue as it is now, with its limits, the longest wait first.",
            "nothing coloured.",
            BY,
            Column(WAIT, "oldest", unit="s"),
            Column(TARGET, "target", unit="s", empty="nobody has decided how long a job may wait"),
            Column(jobs("ready"), "ready"),
            Column(jobs("reserved"), "reserved"),
            Column(
                jobs("expired"),
                "expired",
                empty="SQS has no such state",
                limits=(Limit("LaravelQueueReservationsExpired", 0),),
            ),
            Column(jobs("delayed"), "delayed"),
            Column(
                "max by (connection, queue) (laravel_queue_retried_jobs)",
                "to be retried",
                empty="Redis and SQS do not tell",
                limits=(Limit("LaravelQueueRetryStorm", 100),),
            ),
            Column("max by (connection, queue) (laravel_queue_failed_jobs)", "failed", empty="SQS does not tell"),
            Column("max by (connection, queue) (laravel_queue_retry_after_seconds)", "retry_after", unit="s"),
            Column(
                "max by (connection, queue) (laravel_queue_paused)",
                "paused",
                empty="SQS does not tell",
                says=(("0", "no", "text"), ("1", "PAUSED", "orange")),
            ),
            worst="oldest",
            width=24,
            height=9,
            alerts=("LaravelQueuePausedWithBacklog",),
        ),
    ),
)

BOARD = Board(
    "laravel-queue-overview",
    "Laravel queues / Overview",
    connections(),
    MATCHED,
    (ANYBODY, WHICH, WHY, NOW),
)
