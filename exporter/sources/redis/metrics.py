"""What Redis and Horizon say besides what every driver says. Imports no driver."""

from __future__ import annotations

from ...model import Limit, Metric
from ...queues import QUEUE

OVERDUE = Metric(
    "laravel_queue_redis_overdue_jobs",
    "Jobs due or expired for 10 s and not moved to the queue, which each look of a worker does: nobody looks. "
    "0 while a job is held and not expired: its worker is busy, and looks when it is done.",
    QUEUE,
    limit=Limit(
        0,
        "{value:job} due and not moved: no worker has looked at this queue",
        "LaravelQueueStalled",
        unless=("laravel_queue_paused",),
    ),
)
