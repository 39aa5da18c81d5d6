"""What the exporter shows of a world in which nothing is wrong, and of the four cases."""

from __future__ import annotations

import re

import pytest

from exporter.demo.incidents import HEALTHY, INCIDENTS

from ..patience import until
from ..readme.tables import METRICS
from .conftest import Rehearse
from .rehearsal import quoted

WITHIN = 20.0  # seconds; only a slow machine needs them


def test_healthy_world_is_quiet(rehearse: Rehearse) -> None:
    """In a healthy world jobs come and go, and nothing is over, or near, any limit."""
    with rehearse(HEALTHY) as now:
        assert now.findings() == []
        until(lambda: now.findings() == [] and now.shown("table_rows_deleted_total", table="jobs") > 10, WITHIN)
        states = {key.collector: state for key, state in now.watching.board.read().items() if key.source == "database"}
        assert [name for name, state in states.items() if not state.up or state.notes] == []  # its few rights will do
        assert {queue: now.shown("pop_buffers", queue=queue) < 100 for queue in HEALTHY.targets} == dict.fromkeys(
            HEALTHY.targets, True
        )
        pools = {pool.name: now.shown("workers", pool=pool.name) for pool in HEALTHY.pools}
        assert pools == {pool.name: pool.workers for pool in HEALTHY.pools}
        assert now.shown("database_connections", pool="web", state="idle") == HEALTHY.web_sessions
        assert now.page.startswith("NOTHING IS OVER ITS LIMIT")


def test_flash_sale(rehearse: Rehearse) -> None:
    """A backlog and raised workers: connections near the limit, by pool, and the oldest job over its target."""
    with rehearse(INCIDENTS["flash-sale"].plan) as now:
        now.watch("flash-sale")
        late, full = now.findings()[:2]
        assert re.match("database/default: oldest job 2[45]m", late)
        assert full.startswith("database: 89 % of the connections in use")
        assert now.jobs("default", "ready") > 19_000
        until(lambda: now.findings() and now.jobs("default", "reserved") == 14, WITHIN)
        assert now.shown("workers", pool="default") == 14
        assert now.shown("database_connections", pool="web", state="idle") == 13
        assert now.shown("pop_buffers", queue="default") < 100  # the database itself is well


def test_double_run(rehearse: Rehearse) -> None:
    """Jobs that outlast retry_after are handed out again while all workers live and nothing fails."""
    plan = INCIDENTS["double-run"].plan
    with rehearse(plan) as now:
        found = now.watch("double-run", after=plan.retry_after)
        assert re.match("database/emails: [1-4] jobs? held past retry_after 6s", found[0])
        assert re.search(r"App\\Mail\\Newsletter \(id \d+, queue 'emails'\) was handed out again", now.page)
        now.findings()
        assert now.shown("reservations_repeated_total", queue="emails") >= 1
        assert now.shown("attempts_max", queue="emails") >= 2
        assert now.shown("long_reservations_total", queue="emails", job_class="App\\Mail\\Newsletter") >= 2
        assert now.shown("reservations_repeated_total", queue="default") == 0
        assert now.shown("reserved_past_timeout_jobs", queue="emails") == 0  # so its worker may live
        assert now.shown("workers", pool="emails") == 4  # and does
        assert now.shown("failed_jobs_total", queue="emails", job_class="other") == 0


def test_stale_code(rehearse: Rehearse) -> None:
    """After a restart signal that one machine did not hear, its workers are outdated until they are restarted."""
    plan = INCIDENTS["stale-code"].plan
    with rehearse(plan) as now:
        now.watch("stale-code", after=plan.restart_after or 0)
        until(lambda: now.findings() == ["database/vm-b: 3 workers begun before the restart signal"])
        assert now.shown("workers_outdated", pool="vm-a") == 0
        assert [now.shown("workers", pool=pool) for pool in ("vm-a", "vm-b")] == [3, 3]
        assert abs(now.shown("restart_signal_timestamp_seconds") - now.world.wall()) < 30
        now.dba("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'worker-vm-b'")
        until(lambda: now.findings() == [] and now.shown("workers", pool="vm-b") == 3)


def test_bloat(rehearse: Rehearse) -> None:
    """A transaction left open: dead rows above the trigger in a big table of few rows, and no vacuum helps."""
    with rehearse(INCIDENTS["bloat"].plan) as now:
        now.watch("bloat")
        assert re.match("database/jobs: 20,[0-9]+ dead tuples, vacuum at 5,000", now.findings()[0])
        assert now.shown("table_size_bytes", table="jobs", part="heap") > 10_000_000
        assert now.shown("pop_buffers", queue="default") > 1_000
        now.dba("VACUUM jobs")
        assert now.findings()[0].endswith("dead tuples, vacuum at 5,000")
        held = now.shown("database_oldest_transaction_age_seconds", holder="idle_in_transaction")
        until(
            lambda: (
                now.findings()
                and now.shown("database_oldest_transaction_age_seconds", holder="idle_in_transaction") > held + 1
            )
        )
        assert sum(now.jobs("default", state) for state in ("ready", "reserved")) < 100


@pytest.mark.parametrize("name", INCIDENTS)
def test_incident_says_where_to_look(name: str) -> None:
    """Each incident says what happens, quotes the status page, and names only metrics that there are."""
    incident = INCIDENTS[name]
    assert incident.description.endswith((".", ".)"))
    assert quoted(name)
    assert all(line.isprintable() and line.count('"') % 2 == 0 for line in incident.look_at)
    named = re.findall("laravel_queue_[a-z_]+", " ".join((incident.description, *incident.look_at)))
    assert {*named} <= {metric.name for metric in METRICS}
