"""The blocks of the runbooks about jobs that wait, run among real workers in the incident that each page is for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from exporter.demo.postgres import Postgres

from ..laravel.conftest import application
from ..laravel.laravel import APP, Laravel
from ..patience import until
from ..world import value
from . import waits
from .alerted import follow_until_resolved
from .blocks import read
from .conftest import Staged
from .followed import ENDING, follow
from .supervised import Supervised

RESOLVED: dict[str, waits.Incident] = {  # a Prometheus says before and after whether the alert's own expression holds
    "LaravelQueueWaitTooLong": waits.flash_sale,
    "LaravelQueueWaitWithoutTarget": waits.undecided,
    "LaravelQueueStalled": waits.dead_consumer,
}
OVER: dict[str, tuple[waits.Incident, Callable[[Supervised], bool]]] = {  # averages of recording rules forget slowly
    "LaravelQueueWaitBudgetBurn": (waits.bursts, lambda now: waits.oldest(now, "default") == 0),
    "LaravelQueueStarved": (waits.starvation, lambda now: waits.oldest(now, "default") == 0),
    "LaravelQueueNoWorkers": (waits.no_workers, lambda now: value(now.watching, "workers", pool="default") == 2),
    "LaravelQueueCapacityLow": (waits.growth, lambda now: waits.busy(now) < 0.8),
}


@pytest.fixture
def laravel(postgres_debian: Postgres, tmp_path: Path) -> Iterator[Laravel]:
    """An application without Supervisor."""
    yield from application(postgres_debian, tmp_path)


@pytest.mark.parametrize("name", RESOLVED)
def test_page_ends_its_alert_among_real_workers(postgres18: Postgres, name: str) -> None:
    """Every command runs and prints what the page promises, and the alert resolves."""
    with RESOLVED[name](postgres18) as now:
        follow_until_resolved(read(name), now.stage)


@pytest.mark.parametrize("name", OVER)
def test_page_ends_its_incident_among_real_workers(postgres18: Postgres, name: str) -> None:
    """Every command runs and prints what the page promises; what the rule averages is as it should be again."""
    incident, over = OVER[name]
    with incident(postgres18) as now:
        assert not over(now)
        follow(read(name), now.stage)
        until(lambda: over(now), ENDING)


def test_paused_queue_is_resumed(staged: Staged) -> None:
    """Real Laravel 8 cannot pause, so this page is followed in the demo's world."""
    stage = staged("paused")
    cache = {"QUEUE": "emails", "CONNECTION": "database", "CACHE_PREFIX": "laravel_cache_"}
    follow_until_resolved(read("LaravelQueuePausedWithBacklog"), replace(stage, variables={**stage.variables, **cache}))


@pytest.mark.parametrize(
    ("options", "status", "held"),
    [("artisan queue:work --memory=1", 12, 0), ("-d memory_limit=64M artisan queue:work", 255, 1)],
)
def test_memory_limits_are_told_apart_by_how_a_worker_ends(
    laravel: Laravel, options: str, status: int, held: int
) -> None:
    """Case 55: over its own limit a worker ends with 12 after the job; over PHP's with 255, and the job stays held."""
    laravel.dispatch(mode="eat:100", seconds=0)
    command = ["timeout", "20", "php", *options.split()]
    ended = subprocess.run(command, cwd=APP, env=laravel.environment, capture_output=True, check=False)
    assert ended.returncode == status
    with psycopg.connect(laravel.dsn) as connection:
        assert connection.execute("SELECT count(reserved_at) FROM jobs").fetchone() == (held,)
    assert f"exit status {status}" in read("LaravelQueueNoWorkers").source


@pytest.mark.parametrize("key", ["`memory_limit` in `config/horizon.php`", "`--memory` of `queue:work`", "`php.ini`"])
def test_each_memory_limit_is_named_with_its_key(key: str) -> None:
    """Case 55: who has workers that restart, or jobs that die, finds all three limits in one table."""
    assert key in read("LaravelQueueNoWorkers").source.partition("### Three memory limits")[2].partition("\n## ")[0]
    assert "(LaravelQueueNoWorkers.md#three-memory-limits)" in read("LaravelQueueOrphanedReservations").source
