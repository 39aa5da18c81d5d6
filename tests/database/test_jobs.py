"""The `jobs` collector: states, ages, discovery."""

from __future__ import annotations

from typing import Any

import psycopg

from ..world import add_jobs, poll, value, watched

Db = psycopg.Connection[Any]


def test_reference_example(dsn: str, db: Db) -> None:
    """The reference example of the incidents comes out exactly: two queues, retry_after 90."""
    add_jobs(db, *[("default", None, age) for age in (300, 200, 100, 50, 10)])
    add_jobs(db, ("default", 95, 400), ("default", 30, 400), ("default", 10, 400))
    add_jobs(db, *[("default", None, -later) for later in (60, 600, 6000)])
    add_jobs(db, ("emails", None, 5), ("emails", None, 2))
    with watched(dsn) as app:
        poll(app, "jobs")

        def states(queue: str) -> list[float | None]:
            return [value(app, "jobs", queue=queue, state=s) for s in ("ready", "reserved", "expired", "delayed")]

        assert states("default") == [5, 2, 1, 3]
        assert states("emails") == [2, 0, 0, 0]
        assert value(app, "oldest_job_age_seconds", queue="default") in (300, 301)
        assert value(app, "oldest_job_age_seconds", queue="emails") in (5, 6)
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") in (95, 96)
