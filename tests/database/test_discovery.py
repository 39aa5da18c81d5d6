"""Which queues are shown: those in the settings always, found ones for an hour, a hundred of them at most."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any
from uuid import UUID

import psycopg
import pytest

from exporter.app import App
from exporter.queues import DROPPED, STATES
from exporter.timing import Deadline

from ..world import HandClock, add_jobs, poll, state, value, watched

Db = psycopg.Connection[Any]

INDEXES = (
    "CREATE INDEX ON jobs (queue, available_at) WHERE reserved_at IS NULL;"
    "CREATE INDEX ON jobs (queue, reserved_at) WHERE reserved_at IS NOT NULL;"
)


def shown(app: App) -> set[str]:
    """The queues that have numbers."""
    return {
        sample.labelled["queue"]
        for sample in state(app, "jobs").samples
        if sample.metric.name == "laravel_queue_oldest_job_age_seconds"
    }


def total(app: App, of: str | None = None) -> float:
    """All jobs that are shown, or those in one state."""
    return sum(
        sample.value
        for sample in state(app, "jobs").samples
        if sample.metric.name == "laravel_queue_jobs" and of in (None, sample.labelled["state"])
    )


def numbered(first: int, after: int) -> list[str]:
    """Names like those of an application that makes a queue per customer."""
    return [str(UUID(int=number << 64)) for number in range(first, after)]


def replace_jobs(db: Db, names: list[str]) -> None:
    """One ready job in each of these queues, and no other."""
    with db.transaction():
        db.execute("TRUNCATE jobs")
        db.execute(
            "INSERT INTO jobs (queue, payload, attempts, available_at, created_at)"
            " SELECT name, '{}', 0, 1700000000, 0 FROM unnest(%s::text[]) AS name",
            [names],
        )


def test_found_queues_are_kept_for_an_hour(dsn18: str, db18: Db) -> None:
    """A found queue says zero for an hour after it was last seen with jobs, then it is gone; a named one stays."""
    hand = HandClock()
    add_jobs(db18, ("found", None, 1), ("named", None, 1))
    with watched(dsn18, hand.clock, queues={"named": {}}) as app:
        poll(app, "jobs")
        hand.pass_(1800)
        poll(app, "jobs")  # seen again: the hour begins anew
        db18.execute("TRUNCATE jobs")
        hand.pass_(3599)
        poll(app, "jobs")
        assert value(app, "jobs", queue="found", state="ready") == 0
        hand.pass_(1)
        poll(app, "jobs")
        assert shown(app) == {"named"}
        assert value(app, "retry_after_seconds", queue="found") is None
        assert value(app, "queues") == 1
        assert value(app, "jobs", queue="named", state="ready") == 0


@pytest.mark.parametrize("indexes", ["", INDEXES], ids=["one pass", "indexes"])
def test_without_discovery_the_named_queues_alone_are_watched(dsn18: str, db18: Db, indexes: str) -> None:
    """With `discover: false` only queues in the settings are counted, in every state; without any there are none."""
    db18.execute(f"SELECT 1; {indexes}")
    add_jobs(db18, ("named", None, 1), ("named", 5, 9), ("found", None, 1), ("found", 5, 9))
    db18.execute("VACUUM jobs")  # before it the indexes are not used
    with watched(dsn18, discover=False, queues={"named": {}, "empty": {}}) as app:
        poll(app, "jobs")
        assert shown(app) == {"named", "empty"}
        assert (total(app, "ready"), total(app, "reserved")) == (1, 1)
    with watched(dsn18, discover=False) as app:
        poll(app, "jobs")
        assert shown(app) == set()
        assert value(app, "queues", connection="database") == 0


@pytest.mark.parametrize("indexes", ["", INDEXES], ids=["one pass", "indexes"])
def test_case_77_ten_thousand_queues(dsn: str, db: Db, indexes: str) -> None:
    """Case 77: of 10,000 found queues a hundred are shown, the largest; the rest are `other`, the totals are right."""
    db.execute(f"SELECT 1; {indexes}")
    replace_jobs(db, numbered(0, 10_000))
    add_jobs(db, *[("large", None, 500)] * 3, ("named", None, 1), (numbered(0, 10_000)[-1], 200, 300))
    db.execute("VACUUM jobs")
    with watched(dsn, queues={"named": {}}) as app:
        poll(app, "jobs")
        assert len(shown(app)) == 102  # a hundred, the named one and `other`
        assert {"large", "named", "other", numbered(0, 10_000)[-1]} <= shown(app)
        assert total(app) == 10_005
        assert value(app, "jobs", queue="other", state="ready") == 10_001 - 100
        assert value(app, "queues") == 102
        assert value(app, "labels_dropped_total", collector="jobs", label="queue") == 9_901
        poll(app, "jobs")
        assert value(app, "labels_dropped_total", collector="jobs", label="queue") == 2 * 9_901


def test_measuring_again_drops_nothing_twice(dsn18: str, db18: Db) -> None:
    """What is counted under `other` is counted once for each answer, however often that is measured."""
    replace_jobs(db18, numbered(0, 150))
    with watched(dsn18) as app:
        jobs = app.pollers[0].source.collectors[0]
        for polls in (1, 2):
            raw = jobs.fetch(Deadline(time.monotonic() + 5))
            measured = [list(jobs.measure(raw, 0)) for _ in range(2)]
            assert measured[0] == measured[1]
            assert DROPPED(polls * 50, "database", "jobs", "queue") in measured[0]


def test_other_says_zero_when_there_is_room_again(dsn18: str, db18: Db) -> None:
    """`other` is remembered like a queue of its own: when it has lost its jobs, it says zero and not nothing."""
    replace_jobs(db18, numbered(0, 101))
    with watched(dsn18) as app:
        poll(app, "jobs")
        replace_jobs(db18, [])
        poll(app, "jobs")
        assert value(app, "jobs", queue="other", state="ready") == 0


def test_case_77_memory_stays_flat(dsn18: str, db18: Db) -> None:
    """Case 77: however many new names each poll brings, what is remembered and what is shown stay bounded."""
    hand, held = HandClock(), []
    tracemalloc.start()
    with watched(dsn18, hand.clock) as app:
        for turn in range(30):
            replace_jobs(db18, numbered(turn * 500, turn * 500 + 500))
            poll(app, "jobs")
            hand.pass_(600)
            assert len(shown(app)) == 101
            assert total(app) == 500
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(held[20:]) < max(held[10:20]) + 100_000, "bytes"


def test_a_queue_called_other_is_not_counted_twice(dsn18: str, db18: Db) -> None:
    """A queue whose own name is `other` is shown together with the rest."""
    replace_jobs(db18, [*numbered(0, 150), "other", "other"])
    with watched(dsn18) as app:
        poll(app, "jobs")
        assert total(app) == 152
        assert value(app, "jobs", queue="other", state="ready") == 2 + 150 - 100


def test_a_remembered_queue_keeps_its_place(dsn18: str, db18: Db) -> None:
    """A queue that is shown stays shown while a hundred larger ones come, so its series has no gap."""
    replace_jobs(db18, ["small"])
    with watched(dsn18) as app:
        poll(app, "jobs")
        replace_jobs(db18, ["small", *numbered(0, 200), *numbered(0, 200)])
        poll(app, "jobs")
        assert value(app, "jobs", queue="small", state="ready") == 1
        assert total(app) == 401
        assert {value(app, "jobs", queue="small", state=s) for s in STATES} == {0, 1}
