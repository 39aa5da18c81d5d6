"""What a look at single jobs costs the database, in pages: a few for each, whatever the table's size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from exporter.app import App

from ..world import poll, state, watched
from .holding import Db, payload
from .test_cost import Log, Node, log, nodes, pages, scans

__all__ = ["log"]  # a fixture: 20,000 rows, 50 of them held since just now, and the server's log

HELD, PER_ROW = 50, 4  # pages: three of the index, one of the table
HALF_OLD = (
    "UPDATE jobs SET reserved_at = reserved_at - 60 WHERE id IN (SELECT id FROM jobs WHERE {} ORDER BY id LIMIT 3)"
)


def looked(app: App, log: Log, *collectors: str) -> Node:
    """The plan of the look at single jobs."""
    poll(app, *collectors, "reservations")
    assert state(app, "reservations").error == ""
    return log.plan()


def test_each_job_is_found_by_its_key(dsn: str, db: Db, log: Log) -> None:
    """Fifty jobs among twenty thousand cost a few pages each: no pass over the table, and one process alone."""
    with watched(dsn) as app:
        plan = looked(app, log, "jobs")
        assert plan["Actual Rows"] == HELD
        assert scans(plan) & {"Index Scan", "Bitmap Heap Scan"}
        assert "Seq Scan" not in scans(plan)
        assert pages(plan) <= PER_ROW * HELD
        assert not {"Gather", "Gather Merge"} & {node["Node Type"] for node in nodes(plan)}


def test_a_look_at_those_that_are_watched(dsn: str, db: Db, log: Log) -> None:
    """Every 2 s only the few that are held for long are read; without any, no page at all."""
    with watched(dsn) as app:
        looked(app, log, "jobs")
        assert pages(looked(app, log)) == 0
        db.execute(HALF_OLD.format("reserved_at IS NOT NULL").encode())
        looked(app, log, "jobs")
        plan = looked(app, log)
        assert plan["Actual Rows"] == 3
        assert pages(plan) <= PER_ROW * 3 + 3


HAPPENINGS: dict[str, Callable[[Db], object]] = {
    "dead rows": lambda db: [db.execute("UPDATE jobs SET attempts = attempts + 1") for _ in range(2)],
    "our indexes": lambda db: [
        db.execute(f"CREATE INDEX ON jobs (queue, {column}) WHERE reserved_at IS {null}".encode())
        for column, null in (("available_at", "NULL"), ("reserved_at", "NOT NULL"))
    ],
    "deleted rows": lambda db: db.execute("DELETE FROM jobs WHERE reserved_at IS NULL"),
    "no statistics": lambda db: db.execute("DELETE FROM pg_statistic WHERE starelid = 'jobs'::regclass"),
}


@pytest.mark.parametrize("happens", HAPPENINGS.values(), ids=HAPPENINGS)
@pytest.mark.parametrize("server", ["wheel"], indirect=True)
def test_whatever_happened_to_the_table(dsn: str, db: Db, log: Log, happens: Callable[[Db], object]) -> None:
    """Dead rows, indexes of ours, or a planner who knows nothing make it no pass over the table."""
    happens(db)
    with watched(dsn) as app:
        plan = looked(app, log, "jobs")
        assert plan["Actual Rows"] == HELD
        assert "Seq Scan" not in scans(plan)
        assert pages(plan) <= 2 * PER_ROW * HELD  # a key may lead to a row's dead versions as well


def test_only_the_beginning_of_a_payload_and_only_once(dsn: str, db: Db, log: Log) -> None:
    """Megabytes of a payload stay where they are; and of a job that is known not even the beginning is read."""
    db.execute("ALTER TABLE jobs ALTER payload SET STORAGE EXTERNAL; TRUNCATE jobs")
    db.execute(
        "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
        " SELECT 'default', %s || repeat('x', 4000000), 1, extract(epoch FROM now())::int, 0, 0"
        "   FROM generate_series(1, 5)",
        [payload()],
    )
    with watched(dsn) as app:
        first = pages(looked(app, log, "jobs"))
        again = pages(looked(app, log, "jobs"))
        assert again <= 5 < first <= (PER_ROW + 8) * 5  # the five rows themselves lie in one page
