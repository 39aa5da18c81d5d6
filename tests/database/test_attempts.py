"""Attempts, as the `jobs` collector counts them: jobs that wait for another try, and the most that one has had."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.status import report

from ..world import poll, value, watched

Db = psycopg.Connection[Any]

INDEXES = (
    "CREATE INDEX ON jobs (queue, available_at) WHERE reserved_at IS NULL;"
    "CREATE INDEX ON jobs (queue, reserved_at) WHERE reserved_at IS NOT NULL;"
)
# Ready, delayed, or held for that many seconds.
READY, DELAYED, HELD, EXPIRED = (None, -10), (None, 600), (5, -10), (500, -600)


def add(db: Db, queue: str, attempts: int, state: tuple[int | None, int]) -> None:
    """A job in one of these states, that has had so many attempts."""
    db.execute(
        "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
        " SELECT %s, '{}', %s, now - %s::int, now + %s, now"
        " FROM (SELECT floor(extract(epoch FROM now()))::int AS now) AS clock",
        (queue, attempts, *state),
    )


def told(app: App, queue: str = "default") -> tuple[float | None, float | None]:
    """Jobs that wait for another try, and the most attempts."""
    return value(app, "retried_jobs", queue=queue), value(app, "attempts_max", queue=queue)


def test_who_waits_for_another_try(dsn: str, db: Db) -> None:
    """Ready and delayed jobs with attempts behind them; one that is held has its try just now."""
    for attempts, state in ((0, READY), (1, READY), (3, READY), (2, DELAYED), (0, DELAYED), (4, HELD), (9, EXPIRED)):
        add(db, "default", attempts, state)
    add(db, "fresh", 0, READY)
    with watched(dsn, queues={"empty": None}) as app:
        poll(app, "jobs")
        assert told(app) == (3, 9)
        assert told(app, "fresh") == (0, 0)
        assert told(app, "empty") == (0, 0)


@pytest.mark.parametrize("most", [255, 32767])
def test_case_39_attempts_at_the_columns_limit(dsn: str, db: Db, most: int) -> None:
    """Case 39: 255 and 32767 are shown as they are, and break neither this nor the look at single jobs."""
    for state in (READY, HELD, EXPIRED):
        add(db, "default", most, state)
    with watched(dsn) as app:
        for _ in range(2):
            poll(app, "jobs", "reservations")
            assert told(app) == (1, most)
            assert value(app, "reservations_repeated_total", queue="default") == 0


def test_a_retry_storm_is_over_its_limit(dsn18: str, db18: Db) -> None:
    """A hundred jobs that wait for another try are not worth a word, and one more is."""
    for _ in range(100):
        add(db18, "default", 1, DELAYED)
    with watched(dsn18) as app:
        poll(app, "jobs")
        assert [finding for finding in report(app.board).findings if "another try" in finding.says] == []
        add(db18, "default", 1, DELAYED)
        poll(app, "jobs")
        assert "101 jobs waiting for another try, limit 100" in [finding.says for finding in report(app.board).findings]


def test_queues_under_one_name_are_counted_together(dsn18: str, db18: Db) -> None:
    """Of the queues that are shown as `other` the retries add up, and the most attempts are those of the worst."""
    for n in range(103):
        add(db18, f"queue-{n:03}", 1 + n % 7, READY)
    with watched(dsn18) as app:
        poll(app, "jobs")
        assert told(app, "other") == (3, max(1 + n % 7 for n in (100, 101, 102)))


def test_by_index_nobody_counts_attempts(dsn18: str, db18: Db) -> None:
    """They are in no index, and unknown is absent: read from the rows they would cost what the indexes spare."""
    db18.execute(INDEXES)
    for state in (READY, HELD):
        add(db18, "default", 7, state)
    db18.execute("VACUUM jobs")
    with watched(dsn18) as app:
        poll(app, "jobs", "reservations")
        assert value(app, "jobs", queue="default", state="ready") == 1
        assert told(app) == (None, None)
        assert value(app, "reservations_repeated_total", queue="default") == 0
