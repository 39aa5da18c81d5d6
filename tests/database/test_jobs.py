"""The `jobs` collector: states, ages, and whose numbers they are."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.queues import EARLIEST, STATES

from ..patience import until
from ..world import add_jobs, poll, state, value, watched

Db = psycopg.Connection[Any]

INDEXES = (
    "CREATE INDEX ON jobs (queue, available_at) WHERE reserved_at IS NULL;"
    "CREATE INDEX ON jobs (queue, reserved_at) WHERE reserved_at IS NOT NULL;"
)


@pytest.fixture(params=["one pass", "indexes"])
def jobs(request: pytest.FixtureRequest, db: Db) -> Db:
    """An empty jobs table, without and with the two partial indexes."""
    if request.param == "indexes":
        db.execute(INDEXES)
    return db


def by_state(app: App, queue: str) -> dict[str, float | None]:
    """The numbers of jobs of a queue."""
    return {s: value(app, "jobs", queue=queue, state=s) for s in STATES}


def counts(ready: int = 0, delayed: int = 0, reserved: int = 0, expired: int = 0) -> dict[str, float | None]:
    """The same, as expected."""
    return {"ready": ready, "delayed": delayed, "reserved": reserved, "expired": expired}


def test_reference_example(dsn: str, jobs: Db) -> None:
    """The reference example of the incidents comes out exactly: two queues, retry_after 90."""
    add_jobs(jobs, *[("default", None, age) for age in (300, 200, 100, 50, 10)])
    add_jobs(jobs, ("default", 95, 400), ("default", 30, 400), ("default", 10, 400))
    add_jobs(jobs, *[("default", None, -later) for later in (60, 600, 6000)])
    add_jobs(jobs, ("emails", None, 5), ("emails", None, 2))
    jobs.execute("VACUUM jobs")  # before it the indexes are not used
    with watched(dsn) as app:
        poll(app, "jobs")
        assert by_state(app, "default") == counts(ready=5, reserved=2, expired=1, delayed=3)
        assert by_state(app, "emails") == counts(ready=2)
        assert value(app, "oldest_job_age_seconds", queue="default") in (300, 301)
        assert value(app, "oldest_job_age_seconds", queue="emails") in (5, 6)
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") in (95, 96)
        assert value(app, "oldest_reserved_job_age_seconds", queue="emails") == 0
        assert value(app, "retry_after_seconds", queue="emails") == 90
        assert value(app, "queues", connection="database") == 2


def test_case_13_a_queue_that_lost_its_rows_says_zero(dsn: str, db: Db) -> None:
    """Case 13: a queue whose rows are gone says zero in every state, never the old number."""
    add_jobs(db, ("a", None, 5), ("b", None, 500), ("b", 200, 500))
    with watched(dsn) as app:
        poll(app, "jobs")
        db.execute("DELETE FROM jobs WHERE queue = 'b'")
        poll(app, "jobs")
        assert by_state(app, "b") == counts()
        assert value(app, "oldest_job_age_seconds", queue="b") == 0
        assert value(app, "oldest_reserved_job_age_seconds", queue="b") == 0
        assert by_state(app, "a") == counts(ready=1)


def test_case_33_delayed_jobs_are_no_backlog(dsn: str, db: Db) -> None:
    """Case 33: a hundred delayed jobs are delayed, not ready, and have no age."""
    add_jobs(db, *[("default", None, -1000)] * 100)
    with watched(dsn) as app:
        poll(app, "jobs")
        assert by_state(app, "default") == counts(delayed=100)
        assert value(app, "oldest_job_age_seconds", queue="default") == 0


def test_case_34_states_stand_apart(dsn: str, db: Db) -> None:
    """Case 34: ready, delayed and reserved jobs are told apart, and there is no sum of them under any name."""
    add_jobs(db, *[("default", None, 1)] * 3, *[("default", None, -50)] * 5, *[("default", 1, 1)] * 2)
    with watched(dsn) as app:
        poll(app, "jobs")
        assert by_state(app, "default") == counts(ready=3, delayed=5, reserved=2)
        assert 10 not in [sample.value for sample in state(app, "jobs").samples]


def test_case_35_retry_after_decides_what_is_expired(dsn: str, db: Db) -> None:
    """Case 35: a job held for 95 s is expired with retry_after 90 and merely reserved with 900, queue by queue."""
    add_jobs(db, ("short", 95, 95), ("long", 95, 95))
    with watched(dsn, queues={"long": {"retry_after": "15m"}}) as app:
        poll(app, "jobs")
        assert by_state(app, "short") == counts(expired=1)
        assert value(app, "oldest_job_age_seconds", queue="short") in (5, 6)  # takeable since it expired
        assert by_state(app, "long") == counts(reserved=1)
        assert value(app, "oldest_job_age_seconds", queue="long") == 0
        assert value(app, "oldest_reserved_job_age_seconds", queue="long") in (95, 96)
        assert value(app, "retry_after_seconds", queue="long") == 900


def test_case_40_clocks_that_are_ahead(dsn: str, db: Db) -> None:
    """Case 40: a job from a host whose clock is ahead is delayed until the database's clock says so; no age is ever
    negative."""
    add_jobs(db, ("default", None, -1), ("default", -30, 5))
    with watched(dsn) as app:
        poll(app, "jobs")
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") == 0
        assert value(app, "oldest_job_age_seconds", queue="default") in (0, 1)

        def due() -> bool:
            poll(app, "jobs")
            return by_state(app, "default") == counts(ready=1, reserved=1)

        until(due, within=5)
        assert value(app, "oldest_job_age_seconds", queue="default") in (0, 1)


def test_case_44_named_queues_say_zero_from_the_first_poll(dsn: str, db: Db) -> None:
    """Case 44: on an empty table each queue in the settings says zero in each state, from the first poll on."""
    with watched(dsn, queues={"default": {}, "mail": {"target_wait": 30}}) as app:
        assert value(app, "target_wait_seconds", queue="mail") == 30  # known before anything was asked
        assert by_state(app, "default") == dict.fromkeys(STATES)
        poll(app, "jobs")
        for queue in ("default", "mail"):
            assert by_state(app, queue) == counts()
            assert value(app, "oldest_job_age_seconds", queue=queue) == 0
        assert value(app, "target_wait_seconds", queue="default") is None  # nobody decided


def test_times_that_cannot_be_are_counted_and_left_out_of_ages(dsn: str, jobs: Db) -> None:
    """Rows with impossible times are counted in their state and as implausible, and make no age; 2038 is no limit."""
    add_jobs(jobs, ("default", None, 7), ("default", 3, 9))
    rows = [(None, 0), (None, EARLIEST - 1), (None, 2**31 - 1), (0, 0), (2**31 - 1, 0)]
    jobs.cursor().executemany(
        "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
        " VALUES ('default', '{}', 0, %s, %s, 0)",
        rows,
    )
    jobs.execute("VACUUM jobs")
    with watched(dsn) as app:
        poll(app, "jobs")
        assert by_state(app, "default") == counts(ready=3, delayed=1, expired=1, reserved=2)
        assert value(app, "implausible_jobs", queue="default") == 5
        assert value(app, "oldest_job_age_seconds", queue="default") in (7, 8)
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") in (3, 4)


def test_a_second_connection_on_the_table_has_its_own_label(dsn: str, db: Db) -> None:
    """A queue of Laravel's second connection carries that connection's name wherever it is told of, found ones the
    first's."""
    add_jobs(db, ("exports", 1000, 1000), ("found", None, 1))
    exports = {"connection": "database-long", "retry_after": "25m", "target_wait": "15m"}
    pools = {"long": {"application_name": "long-*", "queues": ["exports"], "timeout": "20m"}}
    with watched(dsn, queues={"exports": exports, "default": {}}, pools=pools) as app:
        poll(app)
        samples = [*app.board.constants, *state(app, "jobs").samples]
        of = {
            queue: {s.labelled["connection"] for s in samples if s.labelled.get("queue") == queue}
            for queue in ("exports", "default", "found")
        }
        assert of == {"exports": {"database-long"}, "default": {"database"}, "found": {"database"}}
        assert value(app, "jobs", queue="exports", state="reserved") == 1
        assert value(app, "worker_timeout_seconds", pool="long") == 1200
        assert value(app, "queues", connection="database-long") == 1
        assert value(app, "queues", connection="database") == 2
        for connection in ("database", "database-long"):
            assert value(app, "connection_info", connection=connection, driver="database") == 1


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Apia", "UTC"])
def test_the_time_zone_of_sessions_changes_nothing(dsn: str, db: Db, zone: str) -> None:
    """Ages are seconds since 1970 on both sides, so a database in a zone with daylight saving tells the same."""
    half_a_year = 180 * 86400  # the zone's offset is another one then
    add_jobs(db, ("default", None, half_a_year), ("default", None, -half_a_year), ("held", half_a_year, half_a_year))
    db.execute(f"ALTER DATABASE {db.info.dbname} SET timezone = '{zone}'")
    with watched(dsn) as app:
        poll(app, "jobs")
        assert by_state(app, "default") == counts(ready=1, delayed=1)
        assert value(app, "oldest_job_age_seconds", queue="default") in (half_a_year, half_a_year + 1)
        assert value(app, "oldest_reserved_job_age_seconds", queue="held") in (half_a_year, half_a_year + 1)
