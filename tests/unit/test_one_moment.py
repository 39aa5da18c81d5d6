"""What can be told at one moment is told as the alerts tell it: with their exceptions, and the page first."""

from __future__ import annotations

import pytest

from exporter import queues, runbooks
from exporter.model import Sample
from exporter.queues import JOBS, LAST_RESERVATION, OLDEST_JOB_AGE, PAUSED, TARGET_WAIT, WORKERS
from exporter.sources.clock.metrics import ERROR, OFFSET
from exporter.sources.database.metrics import USAGE
from exporter.sources.database.sizes import SIZE
from exporter.sources.database.statistics import ENABLED, LIVE
from exporter.sources.redis.horizon import MASTERS, PROCESSES
from exporter.sources.redis.metrics import OVERDUE
from exporter.sources.redis.server import MEMORY_MAX, MEMORY_USED, POLICY
from exporter.sources.sqs.metrics import IDLE_TASKS, QUEUE_INFO, RUNNING

from ..world import HandClock
from .reports import reported

MIB = 1 << 20


def told(*samples: Sample) -> list[tuple[str, str]]:
    """Which alerts the status page names, and how bad each is."""
    found = reported(*samples, runbooks=tuple(runbooks.names())).findings
    return [(finding.alert.removeprefix("LaravelQueue"), finding.weight) for finding in found]


def ready(count: float, connection: str = "database", queue: str = "default") -> Sample:
    """So many jobs are ready."""
    return JOBS(count, connection, queue, "ready")


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (0.71, []),
        (0.8, [("ConnectionsHigh", "near")]),
        (0.95, [("ConnectionsHigh", "over")]),
        (0.97, [("ConnectionsExhausted", "page")]),
    ],
)
def test_connections_are_told_once(share: float, says: list[tuple[str, str]]) -> None:
    """By the worst of their two limits: what pages is not hidden behind the ticket."""
    assert told(USAGE(share, "database")) == says


def test_a_page_is_told_before_a_ticket_that_is_further_over() -> None:
    """At 97 % the connections are a hair over their limit, and somebody is woken up."""
    assert told(USAGE(0.97, "database"), queues.RETRIED(9_000, "database", "mail")) == [
        ("ConnectionsExhausted", "page"),
        ("RetryStorm", "over"),
    ]


def test_nobody_works_and_jobs_wait() -> None:
    """It is said once for all pools, with what waits in all queues; a pool that has a worker is enough, or no job."""
    gone = [WORKERS(0, "database", pool) for pool in ("default", "mail")]
    (finding,) = reported(*gone, ready(500), ready(3, queue="mail"), ready(7, "redis")).findings
    assert (finding.where, finding.says) == ("database", "no worker in any pool, 503 jobs ready")
    assert (finding.over, finding.page) == (True, True)
    assert told(*gone, ready(0)) == []
    assert told(gone[0], WORKERS(1, "database", "mail"), ready(500)) == []


def test_workers_that_nobody_can_count_are_not_missed() -> None:
    """Behind PgBouncer there is no number; and who takes jobs is alive, though the pools that are counted are empty."""
    now = HandClock().wall
    assert told(ready(500)) == []
    gone = [WORKERS(0, "database", "default"), ready(500)]
    assert told(*gone, LAST_RESERVATION(now - 900, "database", "a"), LAST_RESERVATION(now - 179, "database", "b")) == []
    assert told(*gone, LAST_RESERVATION(now - 180, "database", "default")) == [("NoWorkers", "page")]
    assert told(*gone, LAST_RESERVATION(now, "another", "default")) == [("NoWorkers", "page")]


@pytest.mark.parametrize(
    ("age", "beside", "says"),
    [
        (900, [], []),
        (901, [], [("WaitWithoutTarget", "over")]),
        (901, [PAUSED(0, "database", "default")], [("WaitWithoutTarget", "over")]),
        (901, [PAUSED(1, "database", "default"), ready(0)], []),
        (901, [TARGET_WAIT(3600, "database", "default")], []),
        (3601, [TARGET_WAIT(3600, "database", "default")], [("WaitTooLong", "page")]),
        (3601, [TARGET_WAIT(60, "database", "another")], [("WaitWithoutTarget", "over")]),
    ],
)
def test_a_wait_without_a_target(age: float, beside: list[Sample], says: list[tuple[str, str]]) -> None:
    """Where nobody decided how long a job may wait, a quarter of an hour is long; a paused queue is not late."""
    assert told(OLDEST_JOB_AGE(age, "database", "default"), *beside) == says


@pytest.mark.parametrize(
    ("used", "policy", "says"),
    [
        (86, "noeviction", [("RedisMemoryHigh", "over")]),
        (99, "noeviction", [("RedisFull", "page")]),
        (99, "volatile-lru", [("RedisMemoryHigh", "over")]),
    ],
)
def test_a_full_redis(used: float, policy: str, says: list[tuple[str, str]]) -> None:
    """It pages where it is sure to refuse jobs: with another policy it makes room first."""
    assert told(MEMORY_USED(used, "redis"), MEMORY_MAX(100, "redis"), POLICY(1, "redis", policy)) == says


def test_a_dead_horizon_wakes_somebody_up_while_jobs_wait() -> None:
    """With nothing to do it is worth a word, and no page was sent; so is a queue that no process works on."""
    dead = [MASTERS(0, "redis", state) for state in ("running", "paused")]
    idle = PROCESSES(0, "redis", "default")
    assert told(*dead, idle, ready(0, "redis")) == [("HorizonInactive", "over")]
    assert told(*dead, idle, ready(2, "redis")) == [("HorizonInactive", "page"), ("HorizonNoProcesses", "over")]
    assert told(*dead, ready(2, "another")) == [("HorizonInactive", "over")]


def test_a_clock_is_off_by_more_than_its_reading_may_be_wrong() -> None:
    """In either direction; a reading whose error nobody knows says nothing."""
    off = [OFFSET(seconds, name) for name, seconds in (("ntp:a", -1.3), ("ntp:b", 1.1), ("ntp:c", 1.5))]
    errors = [ERROR(0.2, name) for name in ("ntp:a", "ntp:b")]
    (finding,) = reported(*off, *errors).findings
    assert (finding.where, finding.says) == ("ntp:a", "by the exporter's clock, this one is 1s behind")
    assert told(*off, *errors) == [("ClockOffset", "over")]


@pytest.mark.parametrize(
    ("mib", "rows", "says"),
    [
        (255, 1, []),
        (300, 2_000, ["300 MB on disk for 2,000 rows"]),
        (300, 4_000, []),
        (300, 0, ["300 MB on disk for 0 rows"]),
    ],
)
def test_a_table_that_is_large_for_a_few_rows(mib: int, rows: int, says: list[str]) -> None:
    """All of its parts together, and said once; small ones are not worth a word."""
    parts = {"heap": mib - 60, "toast": 50, "indexes": 10}
    sizes = [SIZE(MIB * size, "database", "jobs", part) for part, size in parts.items()]
    found = reported(*sizes, LIVE(rows, "database", "jobs")).findings
    assert [(each.where, each.says) for each in found] == [("database/jobs", said) for said in says]


def test_autovacuum_that_is_switched_off() -> None:
    """Somebody did that, and may have forgotten it."""
    tables = [ENABLED(enabled, "database", f"jobs{enabled:.0f}") for enabled in (0, 1)]
    assert told(*tables) == [("AutovacuumDisabled", "over")]


def test_what_is_excused_in_the_rule_is_excused_here() -> None:
    """Workers leave the due jobs of a paused queue alone; only a FIFO queue has groups; a service that is not needed
    may have no task."""
    at = ("sqs", "mail")
    assert told(OVERDUE(40, *at)) == [("Stalled", "over")]
    assert told(OVERDUE(40, *at), PAUSED(1, *at)) == []
    for fifo, says in (("true", [("FifoStuck", "over")]), ("false", [])):
        assert told(IDLE_TASKS(2, *at), QUEUE_INFO(1, *at, fifo, "", "")) == says
    assert told(RUNNING(0, *at), ready(40, *at)) == [("ScaleFromZeroStuck", "page")]
    assert told(RUNNING(0, *at), ready(0, *at)) == []
