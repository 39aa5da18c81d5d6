"""Workers at work and workers killed: what the jobs table and pg_stat_activity say of them."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from ..patience import until
from ..world import poll, state, value, watched
from .laravel import Laravel
from .shown import counts, longest_held, oldest, workers

POOLS = {
    "vm-a": {"application_name": "vm-a", "queues": ["default"]},
    "vm-b": {"application_name": "vm-b*", "queues": ["mail"]},
}
RETRY_AFTER = 3


def test_killed_worker_leaves_its_job_reserved_then_expired_then_taken_over(laravel: Laravel) -> None:
    """SIGKILL in mid-job: one connection less, the job stays reserved, expires after retry_after, is taken over."""
    laravel.work("mail", retry_after=RETRY_AFTER)
    laravel.dispatch(seconds=2)
    with watched(laravel.dsn, retry_after=RETRY_AFTER, pools=POOLS) as app:
        killed = laravel.work(retry_after=RETRY_AFTER)
        laravel.truth.wait_for("started")
        assert workers(app, "vm-a") == 2
        laravel.kill(killed)
        until(lambda: workers(app, "vm-a") == 1)
        assert counts(app) == {"reserved": 1}
        while (found := counts(app)) == {"reserved": 1}:
            assert longest_held(app) < RETRY_AFTER
            assert oldest(app) == 0
            time.sleep(0.05)
        assert found == {"expired": 1}
        assert oldest(app) == longest_held(app) - RETRY_AFTER >= 0

        laravel.work(retry_after=RETRY_AFTER, tries=2)
        second = laravel.truth.wait_for("started", 2)[-1]
        assert counts(app) == {"reserved": 1}
        assert oldest(app) == 0
        laravel.truth.wait_for("processed")
        assert counts(app) == {}
    first = laravel.truth.events("started")[0]
    assert first.id == second.id
    assert (first.pid, first.facts["attempts"], second.facts["attempts"]) == (killed.pid, 1, 2)


def test_busy_worker_looks_idle_to_postgresql(laravel: Laravel) -> None:
    """In mid-job a worker's session is idle: only the reservation tells that it is busy."""
    laravel.dispatch(seconds=30)
    laravel.work()
    laravel.truth.wait_for("started")
    with watched(laravel.dsn, pools=POOLS) as app:
        assert counts(app) == {"reserved": 1}
        assert workers(app, "vm-a") == 1
        states = ("active", "idle", "idle_in_transaction")
        assert [value(app, "database_connections", pool="vm-a", state=s) for s in states] == [0, 1, 0]


def test_workers_are_counted_without_pg_monitor(laravel: Laravel) -> None:
    """A role that may only read the jobs table still counts the workers of each pool, and shows no state of theirs."""
    with psycopg.connect(laravel.dsn, autocommit=True) as connection:
        role = least_privileged(connection)
    for pool in ("vm-a", "vm-a", "vm-b-1"):
        laravel.work(pool=pool)
    with watched(laravel.dsn.replace("postgres@", f"{role}@"), pools=POOLS) as app:
        until(lambda: (workers(app, "vm-a"), workers(app, "vm-b")) == (2, 1))
        assert value(app, "database_connections", pool="vm-a", state="idle") is None
        assert "pg_monitor" in " ".join(state(app, "activity").notes)
        poll(app, "jobs")
        assert state(app, "jobs").up
        laravel.stop()
        until(lambda: (workers(app, "vm-a"), workers(app, "vm-b")) == (0, 0))


def least_privileged(connection: psycopg.Connection[Any]) -> str:
    """A role that may log in and read the jobs table, and nothing else."""
    name = "only_reads_jobs"
    if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone():
        connection.execute(f"CREATE ROLE {name} LOGIN")
    connection.execute(f"GRANT SELECT ON jobs TO {name}")
    return name
