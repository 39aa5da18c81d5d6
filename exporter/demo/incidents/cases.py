"""The four cases: what brought somebody's application down, or its customers the same mail twice."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Arrivals, Backlog, Job, Pool
from .healthy import HEALTHY, INVOICE, ORDER, Incident

NEWSLETTER = Job("App\\Mail\\Newsletter", (13, 15), timeout=30)

INCIDENTS = {
    "flash-sale": Incident(
        "A sale leaves a backlog; somebody raises the workers, and the web application gets no connection any more.",
        (
            'database: "89 % of the connections in use", and CONNECTIONS: which pool has them',
            'database/default: "oldest job 2", far over its target, and thousands of ready jobs',
        ),
        replace(
            HEALTHY,
            pools=(Pool("default", ("default",), workers=14), *HEALTHY.pools[1:]),
            backlogs=(Backlog("default", ORDER, 20_000, oldest=1500),),
            web_sessions=13,
            server={"max_connections": "40"},
        ),
    ),
    "double-run": Incident(
        "A mail that took 2 s takes 14 s now, and retry_after is 6 s (all faster than in life): it is given to a second"
        " worker while the first one still sends it. Customers get it twice, and no exception is logged.",
        (
            'database/emails: "held past retry_after 6s", at about every other look',
            'SOURCES: "was handed out again after", and which job it was',
            'database/emails/App\\Mail\\Newsletter: "timeout 30s, not below retry_after 6s" let it happen',
            "laravel_queue_reservations_repeated_total and laravel_queue_long_reservations_total: growing",
            "laravel_queue_attempts_max: 2 and more, though hardly anything fails",
        ),
        replace(
            HEALTHY,
            targets={"default": 60, "emails": 600},
            retry_after=6,
            pools=(Pool("default", ("default",), workers=4, timeout=5), Pool("emails", ("emails",), 4, timeout=5)),
            arrivals=(Arrivals("default", INVOICE, per_second=4), Arrivals("emails", NEWSLETTER, 0.12, delay=20)),
            backlogs=(Backlog("emails", NEWSLETTER, 3, oldest=10),),
        ),
    ),
    "stale-code": Incident(
        "Two seconds after the start a deploy calls queue:restart, and the machine vm-b does not hear of it: its cache"
        " store is one of its own, so its workers go on with the old code.",
        (
            'database/vm-b: "3 workers begun before the restart signal"; WORKERS: vm-a has none outdated',
            "laravel_queue_restart_signal_timestamp_seconds: when that was",
        ),
        replace(
            HEALTHY,
            targets={"default": 60},
            pools=(Pool("vm-a", ("default",), workers=3), Pool("vm-b", ("default",), workers=3, own_cache=True)),
            arrivals=(Arrivals("default", INVOICE, per_second=6),),
            restart_after=2.0,
        ),
    ),
    "bloat": Incident(
        "A report keeps a transaction open, so no vacuum can remove the rows of finished jobs.",
        (
            'database/jobs: "dead tuples, vacuum at 5,000", and growing; hardly a job in the table',
            'database/default: "a pop touches", for each pop reads all of them',
            "laravel_queue_database_oldest_transaction_age_seconds of idle_in_transaction: why; in status after 15m",
            "laravel_queue_table_size_bytes of the heap: megabytes for a few dozen rows",
        ),
        replace(
            HEALTHY,
            open_transactions=("nightly-report",),
            dead_rows=20_000,
            arrivals=(*HEALTHY.arrivals, Arrivals("default", INVOICE, per_second=10)),
        ),
    ),
}
