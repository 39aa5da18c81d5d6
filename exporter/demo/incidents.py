"""
The incidents that can be rehearsed: each is a few numbers changed in a world that is healthy.

Read when the command line is parsed, so nothing here imports a driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .plan import Arrivals, Backlog, Horizon, Job, Plan, Pool

INVOICE = Job("App\\Jobs\\SendInvoice", (0.05, 0.25), tries=3, backoff=(1, 5, 10), fails=0.02)
WELCOME = Job("App\\Mail\\WelcomeMail", (0.2, 0.6), timeout=30)
REPORT = Job("App\\Jobs\\BuildReport", (1.0, 4.0), timeout=50, tries=1, fails=0.01)
REMINDER = Job("App\\Notifications\\CartReminder")
ORDER = Job("App\\Jobs\\ConfirmOrder", (0.5, 1.5))
PAYMENT = Job("App\\Jobs\\CapturePayment", (0.4, 0.6))

HEALTHY = Plan(
    targets={"default": 60, "emails": 60, "reports": 600},
    pools=(
        Pool("default", ("default",), workers=4),
        Pool("emails", ("emails",), workers=3),
        Pool("reports", ("reports",), workers=2),
    ),
    arrivals=(
        Arrivals("default", INVOICE, per_second=4),
        Arrivals("emails", WELCOME, per_second=2),
        Arrivals("reports", REPORT, per_second=0.2),
        Arrivals("default", REMINDER, per_second=0.2, delay=120),
    ),
)


@dataclass(frozen=True, slots=True)
class Incident:
    """What happens, where one sees it, and the world that it happens in."""

    description: str
    look_at: tuple[str, ...]
    plan: Plan


INCIDENTS = {
    "bloat": Incident(
        "A report keeps a transaction open, so no vacuum can remove the rows of finished jobs.",
        (
            "database/jobs: dead tuples above the number at which vacuum comes, and growing; hardly a job in the table",
            "database/idle_in_transaction: a transaction open for longer and longer, over its limit after 15m",
            'laravel_queue_table_size_bytes{part="heap"}: megabytes for a few dozen rows',
        ),
        replace(
            HEALTHY,
            open_transactions=("nightly-report",),
            dead_rows=20_000,
            arrivals=(*HEALTHY.arrivals, Arrivals("default", INVOICE, per_second=10)),
        ),
    ),
    "flash-sale": Incident(
        "A sale leaves a backlog; somebody raises the workers, and the web application gets no connection any more.",
        (
            "database: connections in use, and CONNECTIONS: which pool has them",
            "database/default: the oldest job against its target, and thousands of ready jobs",
        ),
        replace(
            HEALTHY,
            pools=(Pool("default", ("default",), workers=14), *HEALTHY.pools[1:]),
            backlogs=(Backlog("default", ORDER, 20_000, oldest=1500),),
            web_sessions=13,
            server={"max_connections": "40"},
        ),
    ),
    "starvation": Incident(
        "Workers run with --queue=high,default, and high never empties: default stands still.",
        (
            "database/default: the oldest job grows one second a second; nothing of it is reserved",
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
            "database/emials: ready jobs, none ever reserved, the oldest over its target",
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
    "horizon-down": Incident(
        "Horizon was killed. Its dashboard is silent with it, and its sorted set still names the dead master.",
        (
            "redis: no Horizon master is running; redis/default: Horizon runs no worker",
            "redis/default: the oldest job over its target, and growing; the jobs that were held expire",
        ),
        replace(HEALTHY, horizon=Horizon(state="down", backlog=600)),
    ),
    "horizon-paused": Incident(
        "Somebody paused Horizon for a migration and went home: everything is up, and nothing is done.",
        (
            "redis/default: paused, and the oldest job over its target",
            "SOURCES, redis/horizon: who is paused",
        ),
        replace(HEALTHY, horizon=Horizon(state="paused", backlog=300)),
    ),
    "overdue": Incident(
        "A supervisor for the queue 'exports' was never deployed: its delayed jobs are due, and nobody moves them.",
        (
            "redis/exports: jobs due and not moved, and no worker of Horizon",
            "redis/default: all is well, as Horizon itself says of everything",
        ),
        replace(HEALTHY, horizon=Horizon(due={"exports": 40})),
    ),
    "redis-memory": Incident(
        "Sessions fill the Redis that the queue shares with the cache, and its policy throws away whatever it likes.",
        (
            "redis/allkeys-random: jobs may be thrown away; redis: how full the memory is",
            "laravel_queue_redis_evicted_keys_total: rising, jobs among them",
        ),
        replace(
            HEALTHY,
            horizon=Horizon(sessions=6000, server={"maxmemory": "12mb", "maxmemory-policy": "allkeys-random"}),
        ),
    ),
}
