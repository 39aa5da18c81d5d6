"""SQS and ECS: backlog per task, whether every task has work, scaling, dead letters, what AWS says of our requests."""

from __future__ import annotations

from .board import Board
from .choices import MATCHED, connections
from .grafana import Column, Limit, Query, Row
from .panels import bars, label, lines, stat, table, words

QUEUE = "{{connection}}/{{queue}}"
NO_ECS = "no ECS service in the settings"
NO_CLOUDWATCH = "CloudWatch is switched off, or has no number yet"
NO_DEAD_LETTERS = "no queue has a dead-letter queue"
NO_PUBLISH = "publish is not set"
SPARE = "laravel_queue_backlog_per_task / laravel_queue_acceptable_backlog_per_task"

FIRST = Row(
    "Is anybody waiting, and are there tasks for it?",
    (
        stat(
            "Longest wait",
            "Age of the oldest message, as CloudWatch tells it: an upper bound, some minutes late.",
            "seconds.",
            Query("max(laravel_queue_oldest_job_age_seconds)", empty=NO_CLOUDWATCH),
            unit="s",
            alerts=("LaravelQueueWaitTooLong",),
        ),
        stat(
            "Ready jobs",
            "Messages that a task could take now.",
            "it comes back to about 0 after each rush.",
            Query('sum(max by (connection, queue) (laravel_queue_jobs{state="ready"}))'),
        ),
        stat(
            "Backlog / task",
            "Of the worst queue: messages waiting per task, as a share of what a task can do within the target wait.",
            "below 100 %.",
            Query(f"max({SPARE})", empty=NO_ECS),
            unit="percentunit",
            limits=(Limit("LaravelQueueBacklogPerTaskHigh", 1),),
            defaults={"decimals": 0},
        ),
        stat(
            "Running tasks",
            "ECS tasks that run, of all queues.",
            "as many as ECS wants.",
            Query("sum(max by (connection, queue) (laravel_queue_ecs_running_tasks))", empty=NO_ECS),
            alerts=("LaravelQueueScaleFromZeroStuck",),
        ),
        stat(
            "Missing tasks",
            "Tasks that ECS wants and that do not run.",
            "0, but for a minute after scaling.",
            Query(
                "sum(clamp_min(max by (connection, queue)"
                " (laravel_queue_ecs_desired_tasks - laravel_queue_ecs_running_tasks), 0))",
                empty=NO_ECS,
            ),
            limits=(Limit("LaravelQueueEcsTasksMissing", 0),),
        ),
        stat(
            "Idle tasks",
            "Tasks that have no message although more wait than there are tasks: too few message groups.",
            "0.",
            Query("sum(max by (connection, queue) (laravel_queue_ecs_idle_tasks))", empty=NO_ECS),
            limits=(Limit("LaravelQueueFifoStuck", 0),),
        ),
        stat(
            "Dead letters",
            "Messages that were moved aside after too many tries. Nobody works on them.",
            "0.",
            Query("sum(max by (connection, queue) (laravel_queue_sqs_dead_letter_messages))", empty=NO_DEAD_LETTERS),
            limits=(Limit("LaravelQueueDeadLettersPresent", 0),),
        ),
        stat(
            "Refused, 15 min",
            "Requests to AWS that were throttled, denied or failed within 15 minutes.",
            "0.",
            Query(
                "sum(max by (connection, operation, outcome)"
                ' (increase(laravel_queue_aws_requests_total{outcome!="ok"}[15m])))',
                empty="none ever was",
            ),
            alerts=("LaravelQueueCollectorDown",),
            defaults={"decimals": 0},
        ),
    ),
)

QUEUES = Row(
    "Which queue?",
    (
        bars(
            "Backlog per task, as a share of what is acceptable",
            "Messages waiting per task, divided by what one task can do within the target wait.",
            "below 100 %.",
            Query(f"sort_desc(max by (connection, queue) ({SPARE}))", QUEUE, empty=NO_ECS),
            unit="percentunit",
            limits=(Limit("LaravelQueueBacklogPerTaskHigh", 1),),
            defaults={"max": 2, "decimals": 0},
        ),
        lines(
            "Backlog per task",
            "Messages waiting per task: ready / max(running, 1). Dashed: what one task can do within the target wait.",
            "below the dashed line.",
            Query("max by (connection, queue) (laravel_queue_backlog_per_task)", QUEUE, empty=NO_ECS),
            Query(
                "max by (connection, queue) (laravel_queue_acceptable_backlog_per_task)",
                "acceptable " + QUEUE,
                dashed=True,
                empty="no target wait, or nobody knows how long a job takes",
            ),
            alerts=("LaravelQueueBacklogPerTaskHigh",),
        ),
        lines(
            "Oldest job's wait",
            "Age of the oldest message, as CloudWatch tells it. Dashed: the queue's target, from a fifth of it on.",
            "below the dashed line.",
            Query("max by (connection, queue) (laravel_queue_oldest_job_age_seconds)", QUEUE, empty=NO_CLOUDWATCH),
            Query(
                "max by (connection, queue) (laravel_queue_target_wait_seconds"
                " and laravel_queue_oldest_job_age_seconds > 0.2 * laravel_queue_target_wait_seconds)",
                "target of " + QUEUE,
                dashed=True,
                empty="no queue has come to a fifth of its target",
            ),
            unit="s",
            alerts=("LaravelQueueWaitTooLong",),
        ),
        table(
            "Queues",
            "Each queue as it is now, the largest backlog first.",
            "nothing coloured.",
            ("connection", "queue"),
            Column('max by (connection, queue) (laravel_queue_jobs{state="ready"})', "ready"),
            Column('max by (connection, queue) (laravel_queue_jobs{state="reserved"})', "in flight"),
            Column('max by (connection, queue) (laravel_queue_jobs{state="delayed"})', "delayed"),
            Column("max by (connection, queue) (laravel_queue_ecs_running_tasks)", "tasks", empty=NO_ECS),
            Column(
                "max by (connection, queue) (laravel_queue_ecs_idle_tasks)",
                "idle tasks",
                empty=NO_ECS,
                limits=(Limit("LaravelQueueFifoStuck", 0),),
            ),
            Column("max by (connection, queue) (laravel_queue_backlog_per_task)", "per task", empty=NO_ECS),
            Column(
                "max by (connection, queue) (laravel_queue_acceptable_backlog_per_task)",
                "acceptable",
                empty="no target wait, or nobody knows how long a job takes",
            ),
            Column(
                "max by (connection, queue) (laravel_queue_sqs_dead_letter_messages)",
                "dead letters",
                empty=NO_DEAD_LETTERS,
                limits=(Limit("LaravelQueueDeadLettersPresent", 0),),
            ),
            Column("max by (connection, queue) (laravel_queue_retry_after_seconds)", "visibility", unit="s"),
            worst="ready",
            width=24,
            height=6,
            alerts=("LaravelQueueTimeoutExceedsRetryAfter",),
        ),
    ),
)

TASKS = Row(
    "Arrival, tasks, or message groups?",
    (
        lines(
            "In flight, and tasks",
            "Messages that a task holds, beside the tasks that run. In flight stays at 1 while tasks run and messages"
            " wait: all carry one message group id.",
            "as many in flight as there are tasks, as long as messages wait.",
            Query('max by (connection, queue) (laravel_queue_jobs{state="reserved"})', "in flight " + QUEUE),
            Query("max by (connection, queue) (laravel_queue_ecs_running_tasks)", "tasks " + QUEUE, empty=NO_ECS),
            alerts=("LaravelQueueFifoStuck",),
        ),
        lines(
            "Tasks",
            "Tasks that run, that are being started, and (dashed) that ECS wants.",
            "running comes to the dashed line within minutes. It does not go up and down all the time.",
            Query("max by (connection, queue) (laravel_queue_ecs_running_tasks)", "running " + QUEUE, empty=NO_ECS),
            Query(
                "max by (connection, queue) (laravel_queue_ecs_pending_tasks) > 0",
                "starting " + QUEUE,
                empty="none is being started",
            ),
            Query(
                "max by (connection, queue) (laravel_queue_ecs_desired_tasks)",
                "wanted " + QUEUE,
                dashed=True,
                empty=NO_ECS,
            ),
            alerts=("LaravelQueueEcsTasksMissing", "LaravelQueueEcsTasksFlapping", "LaravelQueueScaleFromZeroStuck"),
        ),
        lines(
            "Sent and deleted",
            "Messages per second, as CloudWatch has them: three minutes late.",
            "deleted follows sent.",
            Query(
                "max by (connection, queue) (rate(laravel_queue_sqs_messages_sent_total[$__rate_interval]))",
                "sent " + QUEUE,
                empty=NO_CLOUDWATCH,
            ),
            Query(
                "max by (connection, queue) (rate(laravel_queue_sqs_messages_deleted_total[$__rate_interval]))",
                "deleted " + QUEUE,
                empty=NO_CLOUDWATCH,
            ),
            unit="ops",
            alerts=("LaravelQueueWaitTooLong",),
        ),
        lines(
            "Ready jobs",
            "Messages that a task could take now.",
            "waves that come back to 0.",
            Query('max by (connection, queue) (laravel_queue_jobs{state="ready"})', QUEUE),
            alerts=("LaravelQueueBacklogPerTaskHigh",),
        ),
        lines(
            "Dead letters",
            "Messages that were moved aside after too many tries.",
            "0.",
            Query(
                "max by (connection, queue) (laravel_queue_sqs_dead_letter_messages)",
                QUEUE,
                empty=NO_DEAD_LETTERS,
            ),
            limits=(Limit("LaravelQueueDeadLettersPresent", 0),),
        ),
        lines(
            "Deployments",
            "Deployments of each service; two while one replaces the other.",
            "1.",
            Query("max by (connection, queue) (laravel_queue_ecs_deployments)", QUEUE, empty=NO_ECS),
            alerts=("LaravelQueueEcsTasksMissing",),
        ),
    ),
)

AWS = Row(
    "AWS and us",
    (
        lines(
            "Requests by outcome",
            "Our own HTTP requests to AWS per second, repetitions included.",
            "all are ok.",
            Query(
                "sum by (connection, outcome) (max by (connection, operation, outcome)"
                " (rate(laravel_queue_aws_requests_total[$__rate_interval])))",
                "{{connection}} {{outcome}}",
            ),
            unit="reqps",
            stacked=True,
            width=12,
            alerts=("LaravelQueueCollectorDown",),
        ),
        lines(
            "Published backlog per task",
            "What CloudWatch was told last, for a scaling that tracks it.",
            "as the backlog per task.",
            Query("max by (connection, queue) (laravel_queue_published_backlog_per_task)", QUEUE, empty=NO_PUBLISH),
            width=12,
            alerts=("LaravelQueueCollectorDown",),
        ),
        table(
            "Kinds of queues",
            "FIFO queues, where they limit their throughput, and whose dead-letter queue each has.",
            "as you made them.",
            ("connection", "queue", "fifo", "deduplication_scope", "throughput_limit", "dead_letter_queue", "foreign"),
            Column(
                "max by (connection, queue, fifo, deduplication_scope, throughput_limit)"
                " (laravel_queue_sqs_queue_info)",
                "is there",
                says=(("1", "yes", "text"),),
            ),
            Column(
                "max by (connection, queue, dead_letter_queue, foreign) (laravel_queue_sqs_dead_letter_info)",
                "has dead letters",
                says=(("1", "yes", "text"),),
                empty=NO_DEAD_LETTERS,
            ),
            worst="queue",
            rising=True,
            width=24,
            height=5,
            columns_of=(label("foreign", *words(("true", "other account", "text"), ("false", "ours", "text"))),),
            alerts=("LaravelQueueFifoStuck", "LaravelQueueDeadLettersPresent"),
        ),
    ),
)

BOARD = Board(
    "laravel-queue-sqs",
    "Laravel queues / SQS and ECS",
    connections("sqs"),
    MATCHED,
    (FIRST, QUEUES, TASKS, AWS),
)
