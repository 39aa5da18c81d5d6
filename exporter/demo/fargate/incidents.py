"""The incidents of a world on SQS and Fargate. Read with the command line, so nothing here imports a driver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .plan import Fargate, Service

NOTIFICATIONS = Service("notifications.fifo", tasks=3, per_second=3)
EXPORTS = Service("exports", tasks=1, seconds=2, per_second=0.2, target_wait=300)
FLAPPING: dict[str, Any] = {
    "tasks": 1, "per_second": 0, "seconds": 0.2, "target_wait": 4, "bursts": 120, "most_tasks": 4, "scales_in": True
}  # fmt: skip
HEALTHY = Fargate((NOTIFICATIONS, EXPORTS))


@dataclass(frozen=True, slots=True)
class Incident:
    """What happens, where one sees it, and the world that it happens in."""

    description: str
    look_at: tuple[str, ...]
    plan: Fargate


INCIDENTS = {
    "single-group": Incident(
        "Every message carries the same message group id, so three tasks run and one of them works.",
        (
            "sqs/notifications.fifo: jobs wait, one is reserved, and two tasks have no job",
            'laravel_queue_jobs{state="reserved"} stays at 1, laravel_queue_ecs_running_tasks at 3',
        ),
        Fargate((replace(NOTIFICATIONS, groups=1, backlog=60, oldest=90), EXPORTS)),
    ),
    "scale-from-zero": Incident(
        "The service was scaled in to no task at night; without a task, the backlog per task starts none.",
        (
            "sqs/notifications.fifo: no task runs, jobs wait, and the oldest is over its target",
            "WORKERS: 0 now, 0 desired, and nobody changes that",
        ),
        Fargate((replace(NOTIFICATIONS, tasks=0, per_second=0.5, backlog=40, oldest=600), EXPORTS)),
    ),
    "backlog-per-task": Incident(
        "A campaign leaves more jobs than one task can do in time; the scaling adds one task after the other.",
        (
            "sqs/notifications.fifo: jobs waiting per task above what can be done in time, then falling",
            "laravel_queue_backlog_per_task against laravel_queue_acceptable_backlog_per_task",
        ),
        Fargate((replace(NOTIFICATIONS, tasks=1, per_second=1, backlog=240, oldest=120, most_tasks=4), EXPORTS)),
    ),
    "dead-letters": Incident(
        "A template is broken: every second try throws, and what has thrown three times is put aside.",
        (
            "sqs/notifications.fifo: dead letters, more and more of them, and no row in failed_jobs",
            'laravel_queue_sqs_dead_letter_messages{queue="notifications.fifo"}',
        ),
        Fargate((replace(NOTIFICATIONS, fails=0.5, backlog=30, oldest=20, max_receives=3), EXPORTS)),
    ),
    "more-tasks-than-groups": Incident(
        "Messages carry one of two message group ids, and eight tasks run: six of them are paid for and have no job.",
        (
            "sqs/notifications.fifo: jobs wait, two are reserved, and six tasks have no job",
            "laravel_queue_ecs_idle_tasks: the tasks that could be taken away without anybody waiting longer",
        ),
        Fargate((replace(NOTIFICATIONS, tasks=8, groups=2, per_second=4, backlog=60, oldest=20), EXPORTS)),
    ),
    "redelivery": Incident(
        "Somebody left the VisibilityTimeout at 30 s: a job may take 60 s, and is handed out again.",
        (
            "sqs/notifications.fifo: the workers' timeout is not below retry_after, before anything ran twice",
            "laravel_queue_retry_after_seconds: the queue's own VisibilityTimeout",
        ),
        Fargate((replace(NOTIFICATIONS, visibility_timeout=30), EXPORTS)),
    ),
    "flapping": Incident(
        "The scaling takes all tasks but one away as soon as nothing waits, and starts them again a moment later.",
        (
            "laravel_queue_ecs_desired_tasks: up and down with each campaign",
            "sqs/notifications.fifo: each campaign waits until the tasks are there again",
        ),
        Fargate((replace(NOTIFICATIONS, **FLAPPING), EXPORTS)),
    ),
    "tasks-missing": Incident(
        "The image of the last deployment is not in the registry: four tasks should run, and two do.",
        (
            "laravel_queue_ecs_running_tasks below laravel_queue_ecs_desired_tasks, and no task is pending",
            "aws ecs describe-services: the service's events",
        ),
        Fargate((replace(NOTIFICATIONS, tasks=2, missing=2), EXPORTS)),
    ),
}
