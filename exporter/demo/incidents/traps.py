"""The traps: what is easy to do with this driver, and what it looks like from outside."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Arrivals, Backlog, Job, Pool
from .healthy import HEALTHY, INVOICE, ORDER, REMINDER, WELCOME, Incident

CATALOGUE = Job("App\\Jobs\\ImportCatalogue", (20, 40), timeout=120, tries=1)
ALBUM = Job("App\\Mail\\PhotoAlbum", (1, 2), timeout=30, kills=0.2)
EXPORT = Job("App\\Jobs\\ExportOrders", (8, 12))
VISIT = Job("App\\Jobs\\CountVisit", (0.02, 0.05))
ROW = Job("App\\Jobs\\ImportRow", (0.2, 0.4))
PARTNER = Job("App\\Jobs\\SyncWithPartner", (0.3, 0.8), tries=5, backoff=(10, 30, 60), fails=0.9)
PAYMENT = Job("App\\Jobs\\CapturePayment", (0.4, 0.6))

SLOW_COMMITS = {"fsync": "on", "commit_delay": "50000", "commit_siblings": "0"}  # microseconds

INCIDENTS = {
    "short-retry-after": Incident(
        "Somebody gave a job a $timeout of 120 s, and retry_after is 90 s. Nothing has run twice yet.",
        (
            'database/reports/App\\Jobs\\ImportCatalogue: "timeout 2m, not below retry_after 1m 30s"',
            "laravel_queue_job_timeout_seconds: of each class, from its payloads",
            "laravel_queue_reservations_repeated_total: still 0",
        ),
        replace(
            HEALTHY,
            arrivals=(*HEALTHY.arrivals, Arrivals("reports", CATALOGUE, per_second=0.02)),
            backlogs=(Backlog("reports", CATALOGUE, 1, oldest=5),),
        ),
    ),
    "sigkill": Incident(
        "The kernel kills workers in the middle of a job, for want of memory. Supervisor starts them again,"
        " but has given one of three up.",
        (
            'database/emails: "held past the timeout: is the worker dead?"',
            "after 90 s they are expired and handed out again; SOURCES says which job it was",
            "WORKERS: database/emails has 2 instead of 3",
            "laravel_queue_reserved_past_timeout_jobs",
        ),
        replace(
            HEALTHY,
            pools=(HEALTHY.pools[0], Pool("emails", ("emails",), workers=2), HEALTHY.pools[2]),
            arrivals=(*HEALTHY.arrivals, Arrivals("emails", ALBUM, per_second=0.4)),
            backlogs=(
                Backlog("emails", ALBUM, 2, oldest=60, reserved=45, attempts=1),
                Backlog("emails", ALBUM, 1, oldest=30, reserved=15, attempts=1),
            ),
        ),
    ),
    "clock-skew": Incident(
        "The clock of the machine vm-b is 40 s ahead: it takes over jobs after 50 s instead of 90 s,"
        " and runs delayed jobs early.",
        (
            'database/default: "reserved_at is", nearly 40 s ahead: the longer a job is held, the less is seen',
            'SOURCES: "ExportOrders" "was handed out again after" some 50 s, too soon for a retry_after of 90 s',
            "laravel_queue_reserved_at_lead_seconds",
        ),
        replace(
            HEALTHY,
            targets={"default": 60},
            pools=(Pool("vm-a", ("default",), workers=3), Pool("vm-b", ("default",), workers=3, ahead=40)),
            arrivals=(Arrivals("default", ORDER, per_second=4.5), Arrivals("default", REMINDER, 0.5, delay=120)),
            backlogs=(Backlog("default", EXPORT, 1, oldest=60, reserved=46, attempts=1),),
        ),
    ),
    "no-skip-locked": Incident(
        "A proxy hides the database's version, so Laravel locks without SKIP LOCKED: while a worker takes a job, all"
        " others wait for it. A commit takes 50 ms here, as one that waits for a standby does.",
        (
            'database/jobs: "waiting for a lock on the table", at every look nearly all workers that have no job',
            "laravel_queue_table_lock_waiters; laravel_queue_table_longest_lock_wait_seconds stays below a second",
            "laravel_queue_table_rows_deleted_total: a third of what these workers could do",
        ),
        replace(
            HEALTHY,
            targets={"default": 600},
            pools=(Pool("default", ("default",), workers=12, skip_locked=False),),
            arrivals=(Arrivals("default", INVOICE, per_second=20),),
            backlogs=(Backlog("default", INVOICE, 20_000, oldest=20),),
            server=SLOW_COMMITS,
        ),
    ),
    "database-bound": Incident(
        "Somebody has raised the workers to sixteen, and the database can do no more: each pop has to pass 60,000 jobs"
        " of another queue, and with more workers it only takes longer. (PostgreSQL has one core and 8 MB of memory"
        " here, so that sixteen are enough for that, and the rest of the machine stays free.)",
        (
            'database/default: "a pop takes", over its limit of 100ms; with one worker it took a tenth of that',
            "laravel_queue_database_waiting_backends: always some; CONNECTIONS: most of them workers",
            "laravel_queue_table_rows_deleted_total: flat, whatever the number of workers",
            "SOURCES: the exporter asks less often, so that it does not add to it",
        ),
        replace(
            HEALTHY,
            targets={"default": 60, "imports": 7200},
            pools=(Pool("default", ("default",), workers=16), Pool("imports", ("imports",), workers=1)),
            arrivals=(Arrivals("default", VISIT, per_second=40),),
            backlogs=(Backlog("imports", ROW, 60_000, oldest=600), Backlog("default", VISIT, 4_000, oldest=30)),
            server={"shared_buffers": "8MB"},
            cores=1,
        ),
    ),
    "dead-head": Incident(
        "The head of the table is dead: 100,000 finished jobs, which each pop has to pass. A report that has been"
        " running for a while may still see them, and autovacuum does not come before there are 200,000.",
        (
            'database/default: "a pop touches", thousands of pages instead of a handful; hardly a job in the table',
            "laravel_queue_table_dead_tuples: below laravel_queue_table_autovacuum_trigger_tuples, so it says nothing",
            "laravel_queue_pop_skipped_rows: a handful, for the dead are none",
        ),
        replace(
            HEALTHY,
            pools=tuple(replace(pool, sleep=3.0) for pool in HEALTHY.pools),
            open_transactions=("monthly-report",),
            dead_rows=100_000,
            autovacuum_threshold=200_000,
        ),
    ),
    "delayed-head": Incident(
        "The queue is used as a calendar: 100,000 delayed jobs lie at the head of the table, and each pop has to step"
        " over them. No vacuum helps.",
        (
            'database/default: "a pop steps over 100,0", and takes as long as that needs',
            "laravel_queue_pop_skipped_rows, laravel_queue_pop_duration_seconds",
            "QUEUES: 100,000 delayed, and nobody waits yet",
        ),
        replace(
            HEALTHY,
            targets={"default": 60},
            pools=(Pool("default", ("default",), workers=3, sleep=3.0),),
            arrivals=(Arrivals("default", INVOICE, per_second=1),),
            backlogs=(Backlog("default", REMINDER, 100_000, oldest=-3_600, newest=-90_000),),
        ),
    ),
    "retry-storm": Incident(
        "A partner answers 429: jobs fail, wait for another try, and come back among the new ones.",
        (
            'database/default: "waiting for another try, limit 100", and more of them all the time',
            "laravel_queue_failed_jobs_total of SyncWithPartner: growing",
            "laravel_queue_attempts_max: near the five tries that they have",
        ),
        replace(
            HEALTHY,
            arrivals=(*HEALTHY.arrivals, Arrivals("default", PARTNER, per_second=3)),
            backlogs=(
                Backlog("default", PARTNER, 30, oldest=5, attempts=4),
                Backlog("default", PARTNER, 200, oldest=0, newest=-60, attempts=2),
            ),
        ),
    ),
    "starvation": Incident(
        "Workers run with --queue=high,default, and high never empties: default stands still.",
        (
            'database/default: "oldest job 15m", and it grows one second a second; nothing of it is reserved',
            "database/high: always ready jobs, always some reserved, never late",
        ),
        replace(
            HEALTHY,
            targets={"high": 300, "default": 60},
            pools=(Pool("default", ("high", "default"), workers=4),),
            backlogs=(Backlog("high", PAYMENT, 240, oldest=30), Backlog("default", INVOICE, 400, oldest=900)),
            arrivals=(Arrivals("high", PAYMENT, per_second=8.4), Arrivals("default", INVOICE, per_second=0.5)),
        ),
    ),
    "dead-consumer": Incident(
        "A typo: jobs are dispatched to the queue 'emials', and nobody listens there.",
        (
            'database/emials: "oldest job 15m", ready jobs, none ever reserved',
            "database/emails: empty and idle, as if nobody wrote any mail",
        ),
        replace(
            HEALTHY,
            backlogs=(Backlog("emials", WELCOME, 1800, oldest=900),),
            arrivals=tuple(
                replace(some, queue="emials") if some.queue == "emails" else some for some in HEALTHY.arrivals
            ),
        ),
    ),
    "paused": Incident(
        "Somebody called queue:pause for the queue emails and forgot it; its workers are there and leave it alone.",
        (
            'database/emails: "paused, oldest job 15m"',
            "WORKERS: database/emails has its 3; none of its jobs is reserved",
            "laravel_queue_paused",
        ),
        replace(
            HEALTHY,
            paused=("emails",),
            backlogs=(Backlog("emails", WELCOME, 900, oldest=900),),
        ),
    ),
}
