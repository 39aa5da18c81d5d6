"""The vocabulary that every queue driver answers in, so that alerts and panels need not know which driver it was."""

from __future__ import annotations

from .model import Limit, Metric, Only

QUEUE = ("connection", "queue")

TARGET_WAIT = Metric(
    "laravel_queue_target_wait_seconds",
    "How long a job of this queue may wait, as somebody decided in the settings.",
    QUEUE,
)
RETRY_AFTER = Metric(
    "laravel_queue_retry_after_seconds", "How long a worker may hold a job before it is handed out again.", QUEUE
)
JOBS = Metric(
    "laravel_queue_jobs",
    "Jobs by state: ready (could be taken now), delayed (not due yet), reserved (held by a worker), "
    "expired (held for retry_after or longer, so it will be handed out again).",
    (*QUEUE, "state"),
    limit=Limit(
        0,
        "{value:job} held past retry_after {beside}",
        "LaravelQueueReservationsExpired",
        where=("state", "expired"),
        beside=RETRY_AFTER,
    ),
)
READY = Only(JOBS, "state", "ready")
OLDEST_JOB_AGE = Metric(
    "laravel_queue_oldest_job_age_seconds",
    "How long the oldest job that could be taken now has been waiting to be taken; 0 when there is none.",
    QUEUE,
    limit=(
        Limit(
            TARGET_WAIT,
            "oldest job {value}, target {bound}",
            "LaravelQueueWaitTooLong",
            unless=("laravel_queue_paused",),
            page=True,
        ),
        Limit(
            900,
            "oldest job {value}, limit {bound} without a target",
            "LaravelQueueWaitWithoutTarget",
            unless=(TARGET_WAIT.name, "laravel_queue_paused"),
        ),
    ),
)
OLDEST_RESERVED_AGE = Metric(
    "laravel_queue_oldest_reserved_job_age_seconds",
    "How long the job that is held longest has been held, expired ones included; 0 when none is held.",
    QUEUE,
)
PAUSED = Metric(
    "laravel_queue_paused",
    "Whether the queue is paused, by itself or with all others: its workers leave its jobs alone.",
    QUEUE,
    limit=Limit(0, "paused, oldest job {beside}", "LaravelQueuePausedWithBacklog", beside=OLDEST_JOB_AGE, given=READY),
)
IMPLAUSIBLE = Metric(
    "laravel_queue_implausible_jobs",
    "Jobs whose times cannot be (before 2005, or over ten years ahead): counted in their state, left out of ages.",
    QUEUE,
)
RETRIED = Metric(
    "laravel_queue_retried_jobs",
    "Jobs that wait for another try: ready or delayed, with attempts behind them.",
    QUEUE,
    limit=Limit(100, "{value:job} waiting for another try, limit {bound}", "LaravelQueueRetryStorm"),
)
ATTEMPTS_MAX = Metric("laravel_queue_attempts_max", "The most attempts that a job of this queue has had.", QUEUE)
FAILED = Metric(
    "laravel_queue_failed_jobs",
    "Failed jobs that are kept, for somebody to retry or forget them. Those in a table are counted now and then.",
    QUEUE,
)
FAILED_TOTAL = Metric(
    "laravel_queue_failed_jobs_total",
    "Jobs that failed for good since the exporter started, by class; a class is 0 at the poll that first finds it.",
    (*QUEUE, "job_class"),
    "counter",
)
QUEUES = Metric("laravel_queue_queues", "Queues watched, named and found.", ("connection",))
CONNECTION_INFO = Metric("laravel_queue_connection_info", "1 for each connection watched.", ("connection", "driver"))
LAST_RESERVATION = Metric(
    "laravel_queue_last_reservation_timestamp_seconds",
    "Unix time of the newest reservation seen, by its worker's clock unless that is ahead. Absent if none was.",
    QUEUE,
)
WORKERS = Metric(
    "laravel_queue_workers",
    "Workers of a pool: its connections to the database, or the processes of Horizon's supervisors of that name.",
    ("connection", "pool"),
    column="now",
    # Workers behind PgBouncer are not counted, but who takes jobs is alive.
    limit=Limit(
        1,
        "no worker in any pool, {beside:job} ready",
        "LaravelQueueNoWorkers",
        below=True,
        total="pool",
        given=READY,
        beside=READY,
        since=(LAST_RESERVATION, 180),
        page=True,
    ),
)
WORKER_TIMEOUT = Metric(
    "laravel_queue_worker_timeout_seconds",
    "The workers' --timeout, from the settings or from Horizon; +Inf for none.",
    ("connection", "pool", "queue"),
    limit=Limit(
        RETRY_AFTER,
        "the workers' timeout {value}, not below retry_after {bound}",
        "LaravelQueueTimeoutExceedsRetryAfter",
        reached=True,
    ),
)

DROPPED = Metric(
    "laravel_queue_labels_dropped_total",
    "How often something was counted under 'other' because its label had too many values already.",
    ("source", "collector", "label"),
    "counter",
)

COUNTING = ("jobs", "queues")  # the collectors that count jobs: whose are silent, is blind
SETTINGS = (TARGET_WAIT, RETRY_AFTER, CONNECTION_INFO)
OTHER = "other"  # what has no name of its own, or came after too many others
STATES = ("ready", "delayed", "reserved", "expired")
EARLIEST = 1_104_537_600  # 2005-01-01, six years before Laravel: a time before it is no time of a job
TEN_YEARS = 315_576_000  # seconds
