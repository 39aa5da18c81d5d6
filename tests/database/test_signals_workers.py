"""The `signals` collector and workers: who began before the restart signal, and who cannot be known to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.sources.cache import NO_TIME, newest, time_of
from exporter.sources.database.metrics import OUTDATED
from exporter.sources.database.signals import HIDDEN
from exporter.status import report
from exporter.terminal import text
from exporter.timing import Deadline

from ..patience import until
from ..world import poll, state, value, watched
from .cached import RESTART, clock, create_cache, forget, put, restart

Db = psycopg.Connection[Any]

POOLS: dict[str, Any] = {
    "default": {"application_name": "worker-*", "queues": ["default"]},
    "bouncer": {"application_name": "pooled-*", "queues": ["mail"], "pooled": True},
    "web": {"application_name": "web-*"},
}


@pytest.fixture
def cache(db18: Db) -> Db:
    """A database with an empty cache table."""
    create_cache(db18)
    return db18


class Workers:
    """Sessions under the names of workers."""

    def __init__(self, dsn: str, stack: ExitStack) -> None:
        self.dsn, self.stack = dsn, stack

    def begin(self, name: str = "worker-1", **params: Any) -> Db:
        """A worker that has just connected."""
        worker = psycopg.connect(self.dsn, application_name=name, autocommit=True, **params)
        self.stack.callback(worker.close)
        return worker


@pytest.fixture
def workers(dsn18: str) -> Iterator[Workers]:
    """Begins workers; they end with the test."""
    with ExitStack() as stack:
        yield Workers(dsn18, stack)


@pytest.fixture
def app(dsn18: str, cache: Db) -> Iterator[App]:
    """An exporter that knows the pools."""
    with watched(dsn18, pools=POOLS) as app:
        yield app


def outdated(app: App, pool: str = "default") -> float | None:
    """The outdated workers of the pool, asked anew."""
    poll(app, "signals")
    assert state(app, "signals").error == ""
    return value(app, "workers_outdated", pool=pool)


def test_nobody_was_told_to_restart(app: App, workers: Workers) -> None:
    """Without any restart signal no worker is outdated; only pools whose workers can be counted say so."""
    for name in ("worker-1", "pooled-1", "web-1"):
        workers.begin(name)
    assert [outdated(app, pool) for pool in POOLS] == [0, None, None]
    assert state(app, "signals").notes == ()


def test_a_signal_that_was_there_before_us(app: App, cache: Db, workers: Workers) -> None:
    """At our first look the signal's own time counts: who began before it is outdated, who began after it is not."""
    workers.begin("worker-old")
    began = clock(cache)
    until(lambda: clock(cache) > began)  # the signal is in whole seconds
    restart(cache)
    workers.begin("worker-new")
    assert outdated(app) == 1
    assert outdated(app) == 1


def test_a_signal_that_came_while_we_looked(app: App, cache: Db, workers: Workers) -> None:
    """Who was there when we last saw the old signal is outdated until he is gone; who came after the signal is not."""
    old = [workers.begin() for _ in range(3)]
    restart(cache, ahead=-3600)
    assert outdated(app) == 0
    restart(cache)
    new = [workers.begin() for _ in range(2)]
    assert outdated(app) == 3
    for left, worker in zip((2, 1, 0), old, strict=True):
        worker.close()
        until(lambda left=left: outdated(app) == left)  # type: ignore[misc]
    restart(cache, ahead=1)
    assert outdated(app) == 2
    for worker in new:
        worker.close()
    until(lambda: outdated(app) == 0)


@pytest.mark.parametrize("ahead", [40, -40])
def test_a_signal_by_a_clock_that_is_wrong(app: App, cache: Db, workers: Workers, ahead: int) -> None:
    """Whatever the clock of whoever called `queue:restart` says, a change that we saw counts by the database's."""
    old = workers.begin()
    assert outdated(app) == 0
    signal = restart(cache, ahead)
    workers.begin()
    assert outdated(app) == 1
    assert value(app, "restart_signal_timestamp_seconds") == signal
    old.close()
    until(lambda: outdated(app) == 0)


def test_a_signal_from_the_future_that_was_there_before_us(app: App, cache: Db, workers: Workers) -> None:
    """Who began after we first saw the signal has heard it, even if the signal's own time is still to come."""
    workers.begin()
    restart(cache, ahead=40)
    assert outdated(app) == 1
    workers.begin()
    assert outdated(app) == 1


def test_who_came_between_our_last_look_and_the_signal_is_not_called_outdated(
    app: App, cache: Db, workers: Workers
) -> None:
    """It is a lower bound: of a worker that began after our last look nobody knows whether he has heard the signal."""
    workers.begin()
    assert outdated(app) == 0
    workers.begin()
    restart(cache)
    assert outdated(app) == 1


def test_a_look_that_failed_is_none(app: App, cache: Db, workers: Workers) -> None:
    """After a failed poll it is the last good one that counts."""
    workers.begin()
    assert outdated(app) == 0
    workers.begin()
    cache.execute("ALTER TABLE cache RENAME TO gone")
    poll(app, "signals")
    assert state(app, "signals").reason == "undefined_table"
    cache.execute("ALTER TABLE gone RENAME TO cache")
    restart(cache)
    assert outdated(app) == 1


def test_a_signal_that_vanishes(app: App, cache: Db, workers: Workers) -> None:
    """After `cache:clear` workers restart as well, so those who do not are outdated; the signal's time is absent."""
    workers.begin()
    restart(cache, ahead=-3600)
    assert outdated(app) == 0
    forget(cache, RESTART)
    workers.begin()
    assert outdated(app) == 1
    assert value(app, "restart_signal_timestamp_seconds") is None
    restart(cache)
    assert outdated(app) == 2


def test_a_signal_that_expires_has_vanished(app: App, cache: Db, workers: Workers) -> None:
    """A signal past its expiration is gone for the workers, who restart, and so it is for us."""
    workers.begin()
    put(cache, RESTART, "i:1700000000;")
    assert outdated(app) == 0
    put(cache, RESTART, "i:1700000000;", seconds=0)
    assert outdated(app) == 1


def test_the_same_signal_again_is_no_signal(app: App, cache: Db, workers: Workers) -> None:
    """No worker restarts when the key is written anew with the value that it had."""
    put(cache, RESTART, "i:1700000000;", seconds=600)
    workers.begin()
    assert outdated(app) == 0
    put(cache, RESTART, "i:1700000000;")
    assert outdated(app) == 0


def test_an_old_prefix_that_is_tidied_up_is_no_signal(app: App, cache: Db, workers: Workers) -> None:
    """A signal under another prefix that is older than the one in force may come and go."""
    put(cache, RESTART, "i:1700000000;")
    workers.begin()
    assert outdated(app) == 0
    put(cache, "laravel_cacheilluminate:queue:restart", "i:1600000000;")
    assert outdated(app) == 0
    forget(cache, "laravel_cacheilluminate:queue:restart")
    assert outdated(app) == 0


def test_a_signal_that_is_no_time_leaves_it_open(app: App, cache: Db, workers: Workers) -> None:
    """With a signal that is no time nobody is called outdated or not, until it is seen to change."""
    workers.begin()
    put(cache, RESTART, "i:0;")
    assert outdated(app) is None
    assert state(app, "signals").notes == (NO_TIME,)
    put(cache, RESTART, "i:1;")
    assert outdated(app) == 1
    restart(cache)
    assert outdated(app) == 1
    assert state(app, "signals").notes == ()


def test_workers_of_this_database_alone(app: App, cache: Db, workers: Workers) -> None:
    """A worker of the same name in another database heeds another cache."""
    workers.begin(dbname="postgres")
    assert outdated(app) == 0
    restart(cache)
    assert outdated(app) == 0


def test_measuring_again_changes_nothing(app: App, cache: Db, workers: Workers) -> None:
    """The old signal travels with the answer: the same answer measured three times counts the same workers."""
    (signals,) = [turn.collector for turn in app.pollers[0].turns if turn.collector.name == "signals"]
    workers.begin()
    assert outdated(app) == 0
    workers.begin()
    restart(cache)
    raw = signals.fetch(Deadline(time.monotonic() + 5))
    first, *others = [list(signals.measure(raw, 0)) for _ in range(3)]
    assert OUTDATED(1, "database", "default") in first
    assert others == [first] * 2
    assert outdated(app) == 1


def test_case_22_what_a_standby_had_seen_is_not_compared(app: App, cache: Db, workers: Workers) -> None:
    """Case 22: after a failover the last look at a primary counts, a standby may have seen an old signal for long."""
    (signals,) = [turn.collector for turn in app.pollers[0].turns if turn.collector.name == "signals"]
    workers.begin()
    assert outdated(app) == 0
    workers.begin()
    raw = signals.fetch(Deadline(time.monotonic() + 5))
    assert list(signals.measure(raw._replace(in_recovery=True), 0)) == []
    restart(cache)
    assert outdated(app) == 1


def test_status_counts_them(app: App, cache: Db, workers: Workers) -> None:
    """`status` names the pool with outdated workers, and has a column for them."""
    workers.begin()
    poll(app)
    restart(cache)
    poll(app)
    found = report(app.board, ("LaravelQueueWorkersOutdated",))
    assert [(f.where, f.says, f.alert) for f in found.findings if "restart" in f.says] == [
        ("database/default", "1 worker begun before the restart signal", "LaravelQueueWorkersOutdated")
    ]
    head = next(line for line in text(found).splitlines() if line.startswith("WORKERS"))
    assert head.split() == ["WORKERS", "now", "outdated"]


@pytest.fixture
def plain(db: Db) -> Iterator[str]:
    """A role that may read the tables, but has no pg_monitor."""
    create_cache(db)
    db.execute("CREATE ROLE plain LOGIN; GRANT SELECT ON jobs, cache TO plain")
    yield "plain"
    db.execute("DROP OWNED BY plain; DROP ROLE plain")


def test_case_20_since_when_others_work_is_hidden(dsn: str, db: Db, plain: str) -> None:
    """Case 20: without pg_monitor outdated workers of another role are absent, with a note, and never 0."""
    pools = {"own": {"role": plain, "queues": ["mail"]}} | POOLS | {"later": POOLS["default"]}
    limited = watched(dsn.replace("postgres@", f"{plain}@"), pools=pools)
    with psycopg.connect(dsn, application_name="worker-1"), limited as app:
        assert outdated(app) is None
        restart(db)
        assert outdated(app) is None
        assert state(app, "signals").notes == (HIDDEN,)
        assert outdated(app, "own") == 1  # the exporter itself: its own role is no secret
        assert outdated(app, "later") == 0  # nobody is there
        assert value(app, "restart_signal_timestamp_seconds") is not None
        db.execute(f"GRANT pg_monitor TO {plain}".encode())
        assert outdated(app) == 1
        assert state(app, "signals").notes == ()


def test_the_newest_of_several_signals() -> None:
    """A signal that is no time counts only where there is no other; of such the choice is always the same."""
    now = 1_800_000_000
    assert newest([], now) is None
    assert newest(["i:0;", "i:1700000000;", "1600000000"], now) == "i:1700000000;"
    assert newest(["", "x"], now) == newest(["x", ""], now)


def test_the_bounds_of_a_time() -> None:
    """From 2005 to ten years ahead, both ends included, a signal is a time."""
    now = 1_800_000_000
    for number, expected in ((1_104_537_599, False), (1_104_537_600, True), (2_115_576_000, True)):
        assert (time_of(f"i:{number};", now) == number) is expected
    assert time_of("i:2115576001;", now) is None
