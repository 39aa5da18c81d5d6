"""What the exporter shows of each trap, and what makes it this one and no other."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from exporter.demo import laravel
from exporter.demo.incidents import INCIDENTS

from ..patience import until
from ..world import poll, series, value
from .conftest import Rehearse
from .rehearsal import Rehearsal

WITHIN = 20.0  # seconds; only a slow machine needs them
LOOKS = 5


def test_short_retry_after(rehearse: Rehearse) -> None:
    """A job's own timeout that is not below retry_after is told while nothing has run twice yet."""
    with rehearse(INCIDENTS["short-retry-after"].plan) as now:
        now.watch("short-retry-after")
        catalogue = "database/reports/App\\Jobs\\ImportCatalogue"
        assert now.findings() == [f"{catalogue}: timeout 2m, not below retry_after 1m 30s"]
        assert now.shown("job_timeout_seconds", queue="reports", job_class="App\\Jobs\\ImportCatalogue") == 120
        assert now.shown("worker_timeout_seconds", queue="reports") == 60  # the workers' own is well below
        assert now.shown("reservations_repeated_total", queue="reports") == 0
        assert now.jobs("reports", "expired") == 0


def test_sigkill(rehearse: Rehearse) -> None:
    """Jobs held for longer than any worker may hold them, not expired yet: their workers are gone, one for good."""
    plan = INCIDENTS["sigkill"].plan
    with rehearse(plan) as now:
        now.watch("sigkill")
        assert now.findings() == ["database/emails: 2 jobs held past the timeout: is the worker dead?"]
        assert now.shown("reserved_past_timeout_jobs", queue="emails") == 2
        assert 45 <= now.shown("oldest_reserved_job_age_seconds", queue="emails") < plan.retry_after
        assert now.jobs("emails", "expired") == 0
        assert now.shown("reservations_repeated_total", queue="emails") == 0
        assert now.shown("workers", pool="emails") == 2


def test_clock_skew(rehearse: Rehearse) -> None:
    """A worker's clock is seen to be 40 s ahead of the database's, and takes a job over 40 s too soon."""
    with rehearse(INCIDENTS["clock-skew"].plan) as now:
        found = now.watch("clock-skew")
        assert re.fullmatch(
            r"database/default: by the database's clock, reserved_at is (3[0-9]|4[01])s ahead", found[0]
        )
        taken_over = re.search(r"ExportOrders \(id 1, .* was handed out again after (\d+) s", now.page)
        assert taken_over
        assert 46 <= int(taken_over[1]) <= 51
        assert now.shown("reservations_repeated_total", queue="default") == 1
        poll(now.watching, source="clock")
        offset = value(now.watching, "clock_offset_seconds", reference="database:database")
        assert offset is not None
        assert abs(offset) < 1


def lock_waiters(now: Rehearsal) -> list[float]:
    """How many sessions wait for a lock, at a few looks."""
    seen = []
    for _ in range(LOOKS):
        now.findings()
        seen.append(now.shown("table_lock_waiters", table="jobs"))
    return seen


def test_no_skip_locked(rehearse: Rehearse) -> None:
    """Without SKIP LOCKED workers are seen waiting for each other at every look; with it, the same ones never are."""
    plan = INCIDENTS["no-skip-locked"].plan
    (pool,) = plan.pools
    with rehearse(plan) as now:
        now.watch("no-skip-locked")
        assert re.fullmatch("database/jobs: [0-9]+ sessions waiting for a lock on the table", now.findings()[0])
        assert min(waiters := lock_waiters(now)) >= 1
        assert sum(waiters) > 3 * LOOKS
        assert 0 < now.shown("table_longest_lock_wait_seconds", table="jobs") < 5  # nobody has it for long
        assert now.shown("database_waiting_backends", wait_event_type="Lock") >= 2
        assert now.shown("pop_buffers", queue="default") < 1_000  # the search itself costs nothing
        slow = now.finished_per_second()
        with now.under(replace(plan, pools=(replace(pool, skip_locked=True),))):
            assert now.finished_per_second() > 1.5 * slow
            assert lock_waiters(now) == [0] * LOOKS


def waiting(now: Rehearsal) -> float:
    """How many sessions wait, for whatever it is."""
    page = series(now.watching.exposition.page("text"))
    return sum(number for (name, _), number in page.items() if name == "laravel_queue_database_waiting_backends")


def test_database_bound(rehearse: Rehearse) -> None:
    """On a database at its end pops take long, backends wait, and twice the workers do not do twice the work."""
    plan = INCIDENTS["database-bound"].plan
    pool, other = plan.pools
    with rehearse(plan) as now:
        now.watch("database-bound")
        assert now.shown("pop_duration_seconds", queue="default") > 0.1
        until(lambda: now.findings() and waiting(now) > 1, WITHIN)
        assert now.shown("workers", pool="default") == pool.workers == 16
        worker = now.dba("SELECT min(pid) FROM pg_stat_activity WHERE application_name = 'worker-default'")
        assert len(os.sched_getaffinity(worker)) == plan.cores == 1
        most = now.finished_per_second()
        with now.under(replace(plan, pools=(replace(pool, workers=2 * pool.workers), other))):
            assert now.finished_per_second() < 2 * most


def pop_of_default(now: Rehearsal, what: str) -> float:
    """What a pop of `default` costs from now on: asked anew of each queue, until it ends within its time."""
    for _ in now.world.plan.targets:
        now.findings()
    until(lambda: now.findings() is not None and value(now.watching, f"pop_{what}", queue="default") is not None)
    return now.shown(f"pop_{what}", queue="default")


def test_dead_head(rehearse: Rehearse) -> None:
    """A pop passes 100,000 dead rows, and autovacuum is not due; a handful of pages is left once they may go."""
    with rehearse(INCIDENTS["dead-head"].plan) as now:
        now.watch("dead-head")
        assert re.fullmatch(r"database/\w+: a pop touches 1\d,\d+ pages, limit 1,000", now.findings()[0])
        assert now.shown("pop_buffers", queue="default") > 7_000
        assert now.shown("pop_skipped_rows", queue="default") < 100
        dead, due = (now.shown(f"table_{name}_tuples", table="jobs") for name in ("dead", "autovacuum_trigger"))
        assert 100_000 <= dead < 0.8 * due
        now.dba("VACUUM jobs")
        assert pop_of_default(now, "buffers") > 7_000  # the report may still see them
        (report,) = now.world.held
        report.close()
        now.dba("VACUUM jobs")
        assert pop_of_default(now, "buffers") < 50
        until(lambda: now.findings() == [], WITHIN)


def test_delayed_head(rehearse: Rehearse) -> None:
    """A pop steps over 100,000 delayed jobs that nobody waits for, and no vacuum helps."""
    with rehearse(INCIDENTS["delayed-head"].plan) as now:
        found = now.watch("delayed-head")
        assert re.match("database/default: a pop steps over 100,0[0-9]+ rows, limit 1,000", found[0])
        now.findings()
        assert now.jobs("default", "delayed") >= 100_000
        assert now.shown("oldest_job_age_seconds", queue="default") < 30
        assert now.shown("table_dead_tuples", table="jobs") < 1_000
        now.dba("VACUUM jobs")
        assert pop_of_default(now, "skipped_rows") >= 100_000
        now.dba("DELETE FROM jobs WHERE available_at > extract(epoch FROM now()) + 600")
        assert pop_of_default(now, "skipped_rows") < 100


def test_retry_storm(rehearse: Rehearse) -> None:
    """Jobs that fail and come back are counted while they wait, and by class once they have failed for good."""
    with rehearse(INCIDENTS["retry-storm"].plan) as now:
        now.watch("retry-storm")
        assert re.fullmatch("database/default: [0-9]+ jobs waiting for another try, limit 100", now.findings()[0])
        assert now.shown("attempts_max", queue="default") >= 4
        partner = {"queue": "default", "job_class": "App\\Jobs\\SyncWithPartner"}
        until(lambda: now.findings() and (value(now.watching, "failed_jobs_total", **partner) or 0) >= 5, WITHIN)
        assert now.jobs("default", "expired") == 0
        assert now.shown("reservations_repeated_total", queue="default") == 0  # a release is no double run


def test_starvation(rehearse: Rehearse) -> None:
    """With --queue=high,default and a `high` that never empties, jobs are done while `default` gets older and older."""
    with rehearse(INCIDENTS["starvation"].plan) as now:
        now.watch("starvation")
        assert [line.split(":")[0] for line in now.findings()] == ["database/default"]
        age, ready = now.shown("oldest_job_age_seconds", queue="default"), now.jobs("default", "ready")
        done = now.shown("table_rows_deleted_total", table="jobs")
        until(lambda: now.findings() and now.shown("table_rows_deleted_total", table="jobs") > done + 10, WITHIN)
        assert now.shown("oldest_job_age_seconds", queue="default") > age > 900 - 1
        assert now.jobs("default", "ready") >= ready
        assert now.jobs("default", "reserved") == 0
        assert now.jobs("high", "reserved") >= 1


def test_dead_consumer(rehearse: Rehearse) -> None:
    """A misspelt queue is found: its jobs wait longer than any may, none is ever held, and more arrive."""
    with rehearse(INCIDENTS["dead-consumer"].plan) as now:
        now.watch("dead-consumer")
        late = now.findings()[0]
        assert late.startswith("database/emials: oldest job 15m")
        until(lambda: now.findings() and now.jobs("emials", "ready") > 1800, WITHIN)
        assert now.jobs("emials", "reserved") == 0
        assert now.shown("target_wait_seconds", queue="emials") == 60


def test_paused(rehearse: Rehearse) -> None:
    """A paused queue is told from a dead one: its workers are there, and go on when it is resumed."""
    with rehearse(INCIDENTS["paused"].plan) as now:
        now.watch("paused")
        (paused,) = now.findings()
        assert paused.startswith("database/emails: paused, oldest job 15m")
        assert now.shown("paused", queue="emails") == 1
        assert now.shown("paused", queue="default") == 0
        assert now.shown("workers", pool="emails") == 3
        assert now.jobs("emails", "reserved") == 0
        with now.world.connect("artisan") as connection:
            laravel.resume(connection, "emails")
        until(lambda: "paused" not in "".join(now.findings()) and now.jobs("emails", "reserved") == 3, WITHIN)
