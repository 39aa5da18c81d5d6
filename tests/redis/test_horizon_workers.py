"""Who works for which queue under Horizon, and what is said where nobody does."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from exporter import queues, status
from exporter.app import App
from exporter.demo.redis import Redis
from exporter.sources.redis.fleet import Fleet, supervisor

from ..world import HandClock, value
from .dumps import put_back
from .test_cost import asked
from .test_horizon_dumps import VERSIONS, named
from .test_throughput import HORIZON, fail
from .world import look, now, payload, push, reserve, state_of, watched

SETTINGS: dict[str, Any] = {"horizon": {"prefix": HORIZON}}


def supervise(client: redis.Redis, name: str = "vm-a:s1", processes: str = "{}", **options: Any) -> None:
    """Let a supervisor of Horizon be alive that has these options."""
    client.zadd(f"{HORIZON}supervisors", {name: 1})
    given = json.dumps({"connection": "redis", "queue": "default"} | options)
    client.hset(f"{HORIZON}supervisor:{name}", mapping={"status": "running", "processes": processes, "options": given})


def over(app: App) -> list[str]:
    """What is over its limit, after a poll of everything."""
    look(app)
    return [f"{finding.where} {finding.says}" for finding in status.report(app.board).findings if finding.over]


@VERSIONS
def test_nothing_of_a_healthy_horizon_is_over_its_limit(server: Redis, client: redis.Redis, version: int) -> None:
    """Whatever jobs failed of which nobody knows the queue: not even at the second look."""
    put_back(version, "A", client)
    with watched(server.url(), **named(version)) as app:
        for _ in range(2):
            assert not [line for line in over(app) if "ImportCsv timeout" not in line]  # which is longer in there
        assert (value(app, "failed_jobs", queue="other") or 0) > 0
        assert value(app, "horizon_processes", queue="other") is None


def test_a_queue_that_was_retired_needs_no_worker(server: Redis, client: redis.Redis) -> None:
    """Horizon never forgets a queue that it measured, nor its failed jobs for a week: that is no missing worker."""
    supervise(client, processes='{"redis:default":1}')
    client.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:retired")
    fail(client, "id-1", now(client), queue="retired")
    with watched(server.url(), **SETTINGS) as app:
        assert not [line for line in over(app) if "runs no worker" in line]
        assert value(app, "horizon_jobs_processed_total", queue="retired") == 0
        assert value(app, "failed_jobs", queue="retired") == 1


def test_a_queue_that_lost_its_supervisor_needs_one(server: Redis, client: redis.Redis) -> None:
    """Named or not: who had workers within the last hour has none now, and after that hour it is a retired one."""
    hand = HandClock()
    supervise(client, processes='{"redis:reports":1}', queue="reports")
    with watched(server.url(), hand.clock, **SETTINGS) as app:
        assert value_of(app, "reports") == 1
        client.delete(f"{HORIZON}supervisor:vm-a:s1")
        assert value_of(app, "reports") == 0
        hand.pass_(3601)
        assert value_of(app, "reports") is None
        assert value_of(app, "default") == 0


def value_of(app: App, queue: str) -> float | None:
    """The number of a queue's processes, after a poll."""
    look(app, "horizon")
    return value(app, "horizon_processes", queue=queue)


def test_a_queue_that_only_horizon_names(server: Redis, client: redis.Redis) -> None:
    """Its workers' timeout is compared with retry_after, and a note says that nobody counts its jobs."""
    supervise(client, queue="reports", timeout="120", processes='{"redis:reports":1}')
    supervise(client, "vm-a:s2", queue="far", timeout="120", processes='{"elsewhere:far":1}', connection="elsewhere")
    with watched(server.url(), **SETTINGS) as app:
        said = over(app)
        assert "redis/s1/reports the workers' timeout 2m, not below retry_after 1m 30s" in said
        assert not [line for line in said if "far" in line and "retry_after" in line]  # nobody knows that one's
        (note,) = (note for note in state_of(app, "horizon").notes if "named" in note)
        assert note.endswith(": 'reports'")
    with watched(server.url(), **SETTINGS, queues={"reports": None}) as app:
        look(app)
        assert not [note for note in state_of(app, "horizon").notes if "named" in note]


def test_with_discover_one_collector_tells_of_retry_after(server: Redis, client: redis.Redis) -> None:
    """What was found has it from there: no series is told twice."""
    supervise(client, queue="reports", timeout="120")
    push(client, payload(), queue="reports")
    with watched(server.url(), **SETTINGS, discover=True) as app:
        for _ in range(3):
            look(app)
        told = [sample for state in app.board.read().values() for sample in state.samples]
        assert [sample.value for sample in told if sample[:2] == (queues.RETRY_AFTER, ("redis", "reports"))] == [90]


def test_the_longest_timeout_counts(server: Redis, client: redis.Redis) -> None:
    """Of two supervisors of one name on two hosts that work for one queue, whichever comes first."""
    for name, timeout in (("vm-a:s1", 300), ("vm-b:s1", 60), ("vm-c:s2", 10), ("vm-d:s2", 20)):
        supervise(client, name, timeout=timeout)
    with watched(server.url(), **SETTINGS) as app:
        look(app)
        assert value(app, "worker_timeout_seconds", pool="s1", queue="default") == 300
        assert value(app, "worker_timeout_seconds", pool="s2", queue="default") == 20


@pytest.mark.parametrize(
    ("name", "master", "pool"),
    [
        ("vm-nn9G:supervisor-1", "vm-nn9G", "supervisor-1"),
        ("vm-nn9G:eu:mail", "vm-nn9G", "eu:mail"),
        ("eu:vm-nn9G:mail", "eu:vm-nn9G", "mail"),
        ("vm-nn9G:eu:mail", None, "eu:mail"),
        ("alone", None, "alone"),
    ],
)
def test_a_pool_is_a_supervisor_without_its_master(name: str, master: str | None, pool: str) -> None:
    """The master's name is cut off, and nothing else: two supervisors with a colon in their names stay two."""
    assert supervisor(name, "running", master, "{}", "{}").pool == pool


def test_pools_beyond_a_hundred_are_counted(server: Redis, client: redis.Redis) -> None:
    """They are `other`, and it is told how often one was: a number that only rises."""
    for n in range(103):
        supervise(client, f"vm-a:s{n}", f'{{"redis:default":{1000 - n}}}')
    with watched(server.url(), **SETTINGS) as app:
        for polls in (1, 2):
            look(app, "horizon")
            assert value(app, "labels_dropped_total", collector="horizon", label="pool") == 3 * polls
        assert value(app, "workers", pool="other") == 1000 - 100 + 1000 - 101 + 1000 - 102


def test_queues_and_classes_beyond_a_hundred_are_counted(server: Redis, client: redis.Redis) -> None:
    """So is each poll that folds a queue, and each failed job whose class is folded."""
    client.sadd(f"{HORIZON}measured_queues", *(f"{HORIZON}queue:q{n:03}" for n in range(102)))
    for n in range(104):
        fail(client, f"id-{n}", now(client), "q000", f"App\\Jobs\\J{n}")
    with watched(server.url(), **SETTINGS) as app:
        for _ in range(2):
            look(app, "horizon")
        assert value(app, "labels_dropped_total", collector="horizon", label="queue") == 2 * 2
        assert value(app, "labels_dropped_total", collector="horizon", label="job_class") == 4


def test_a_timeout_that_comes_after_the_job(server: Redis, client: redis.Redis) -> None:
    """A job that was held before Horizon was asked is judged by its workers' timeout as soon as that is known."""
    reserve(client, payload(attempts=1), now(client) - 80 + 90)
    with watched(server.url(), **SETTINGS) as app:
        supervise(client, timeout="60")
        look(app, "reservations")
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 0
        look(app, "horizon", "reservations")
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 1
        assert value(app, "job_timeout_seconds", queue="default", job_class="App\\Jobs\\SendInvoice") == 60


def test_one_look_is_enough(server: Redis, client: redis.Redis) -> None:
    """Also for a command that polls once: Horizon is asked before those who need to know its timeouts and pauses."""
    reserve(client, payload(attempts=1), now(client) - 80 + 90)
    supervise(client, timeout="60")
    client.hset(f"{HORIZON}supervisor:vm-a:s1", "status", "paused")
    with watched(server.url(), once=True, **SETTINGS) as app:
        look(app)
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 1
        assert value(app, "paused", queue="default") == 1


def test_what_was_told_of_horizon_is_not_believed_for_ever(server: Redis, client: redis.Redis) -> None:
    """When `horizon` has had no answer for as long as a number is believed, its timeouts and pauses are not known."""
    hand = HandClock()
    supervise(client, timeout="60")
    client.hset(f"{HORIZON}supervisor:vm-a:s1", "status", "paused")
    with watched(server.url(), hand.clock, **SETTINGS) as app:
        look(app, "horizon", "signals")
        assert value(app, "paused", queue="default") == 1
        hand.pass_(60)
        look(app, "signals")
        assert value(app, "paused", queue="default") is None


def test_a_timeout_in_the_settings(server: Redis) -> None:
    """Is shown as on SQS, under the pool `workers`, and compared with retry_after."""
    with watched(server.url(), queues={"exports": {"timeout": "120s"}}) as app:
        assert value(app, "worker_timeout_seconds", pool="workers", queue="exports") == 120
        assert "redis/workers/exports the workers' timeout 2m, not below retry_after 1m 30s" in over(app)


def test_a_queue_without_workers_has_no_timeout() -> None:
    """Nobody said how long a job may take there."""
    assert Fleet({}, ()).timeout_of("default") is None


def test_a_bounded_number_of_queues_is_asked_about(server: Redis, client: redis.Redis) -> None:
    """A thousand of those that Horizon ever measured; the others are told to be too many."""
    client.sadd(f"{HORIZON}measured_queues", *(f"{HORIZON}queue:q{n:04}" for n in range(1003)))
    with watched(server.url(), **SETTINGS) as app:
        commands = asked(server, app, "horizon")
        assert sum(command[0] == "HMGET" for command in commands) == 1000
        assert value(app, "labels_dropped_total", collector="horizon", label="queue") == 2 * (1003 - 100)


def test_snapshots_are_read_before_what_was_done_since(server: Redis, client: redis.Redis) -> None:
    """The other way round a snapshot that is taken between the two would be counted twice."""
    client.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:default")
    with watched(server.url(), **SETTINGS) as app:
        commands = asked(server, app, "horizon")
    order = [command[1] for command in commands if len(command) > 1 and command[1].endswith("queue:default")]
    assert order == [f"{HORIZON}snapshot:queue:default", f"{HORIZON}queue:default"]


def test_queues_that_are_too_many_have_no_processes_together(server: Redis, client: redis.Redis) -> None:
    """A sum over queues says nothing of whether one of them has no worker."""
    supervise(client, queue=",".join(f"q{n:03}" for n in range(102)), processes='{"redis:q000,q101":2}')
    with watched(server.url(), **SETTINGS) as app:
        look(app, "horizon")
        assert value(app, "horizon_processes", queue="q000") == 2
        assert value(app, "horizon_processes", queue="other") is None
