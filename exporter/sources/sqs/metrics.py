"""What is said of SQS and ECS besides the words that all drivers share. Imports no driver."""

from __future__ import annotations

from ...model import Limit, Metric, Only
from ...queues import QUEUE, READY

QUEUE_INFO = Metric(
    "laravel_queue_sqs_queue_info",
    "1, with what kind of queue it is; deduplication_scope and throughput_limit are empty unless it is a FIFO queue.",
    (*QUEUE, "fifo", "deduplication_scope", "throughput_limit"),
)
DEAD_LETTERS = Metric(
    "laravel_queue_sqs_dead_letter_messages",
    "Messages in the dead-letter queue of this queue, in whatever state; absent if it has none that we may look into.",
    QUEUE,
    limit=Limit(0, "{value:dead letter}", "LaravelQueueDeadLettersPresent"),
)
DEAD_LETTER_INFO = Metric(
    "laravel_queue_sqs_dead_letter_info",
    "1 for a queue with a dead-letter queue; foreign says whether that is in another account.",
    (*QUEUE, "dead_letter_queue", "foreign"),
)
SENT = Metric(
    "laravel_queue_sqs_messages_sent_total",
    "Messages sent since the exporter started, as CloudWatch has each minute, one or two minutes after its end.",
    QUEUE,
    "counter",
)
DELETED = Metric(
    "laravel_queue_sqs_messages_deleted_total",
    "Messages deleted since the exporter started: jobs done, or given up; as CloudWatch has each minute, one or two "
    "minutes after its end.",
    QUEUE,
    "counter",
)
REQUESTS = Metric(
    "laravel_queue_aws_requests_total",
    "HTTP requests to AWS by outcome: ok, throttled, denied, not_found, timeout or failed; repetitions included.",
    ("connection", "operation", "outcome"),
    "counter",
)
DESIRED = Metric("laravel_queue_ecs_desired_tasks", "Tasks that ECS tries to have.", QUEUE, column="desired")
PENDING = Metric("laravel_queue_ecs_pending_tasks", "Tasks that are being started.", QUEUE, column="pending")
DEPLOYMENTS = Metric(
    "laravel_queue_ecs_deployments", "Deployments of the service; more than 1 while one replaces another.", QUEUE
)
ACCEPTABLE = Metric(
    "laravel_queue_acceptable_backlog_per_task",
    "Jobs that one task can do in the target wait: target wait / seconds per job.",
    QUEUE,
)
BACKLOG = Metric(
    "laravel_queue_backlog_per_task",
    "Ready jobs for each running task: ready / max(running, 1), so with no task it is all of them.",
    QUEUE,
    limit=Limit(
        ACCEPTABLE, "{value:job} waiting per task, {bound} can be done in time", "LaravelQueueBacklogPerTaskHigh"
    ),
)
IDLE_TASKS = Metric(
    "laravel_queue_ecs_idle_tasks",
    "Tasks without a job at each of the last three polls although more jobs were ready than there are tasks: "
    "of a FIFO queue, too few message groups have messages. Absent until three polls knew all of the service's queues.",
    QUEUE,
    limit=Limit(
        0,
        "{value:task} without a job while jobs are ready",
        "LaravelQueueFifoStuck",
        given=Only(QUEUE_INFO, "fifo", "true"),
    ),
)
RUNNING = Metric(
    "laravel_queue_ecs_running_tasks",
    "Running tasks of the ECS service that works on this queue.",
    QUEUE,
    column="now",
    limit=Limit(
        1,
        "no task runs, {beside:job} waiting",
        "LaravelQueueScaleFromZeroStuck",
        below=True,
        given=READY,
        beside=READY,
        page=True,
    ),
)
PUBLISHED = Metric(
    "laravel_queue_published_backlog_per_task", "The backlog per task that CloudWatch was told last.", QUEUE
)
