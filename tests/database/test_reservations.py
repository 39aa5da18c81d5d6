"""The `reservations` collector on a real table: each number from its rows to the page."""

from __future__ import annotations

import time
from math import inf

from exporter.demo.postgres import Postgres
from exporter.model import Note
from exporter.status import report
from exporter.timing import Deadline

from ..world import HandClock, add_jobs, poll, series, state, value, watched
from .holding import SLOW, Db, grow_older, hand_out_again, hold, lead, long, payload, repeated


def test_a_job_that_is_handed_out_again_is_counted_and_named(dsn: str, db: Db) -> None:
    """A second worker takes the job: counted at its queue, and a note says which job, which no label could."""
    id_ = hold(db, 88)
    with watched(dsn, queues={"mail": None}) as app:
        poll(app)
        assert (repeated(app), repeated(app, "mail")) == (0, 0)
        hand_out_again(db, id_)
        poll(app)
        assert (repeated(app), repeated(app, "mail")) == (1, 0)
        (note,) = state(app, "reservations").notes
        after = note.split(" s or more")[0].rsplit(" ")[-1]
        assert note == f"{SLOW} (id {id_}, queue 'default') was handed out again after {after} s or more, attempt 2"
        assert int(after) in range(88, 95)
        poll(app)
        assert repeated(app) == 1


def test_a_long_reservation_is_counted_once_and_born_at_zero(dsn: str, db: Db) -> None:
    """Who first sees the class when it is already long sees 0 and then 1: increase() would not know of the 1 else."""
    hold(db, 46)
    with watched(dsn) as app:
        poll(app)
        assert (long(app), long(app, job_class="other")) == (0, 0)
        for _ in range(3):
            poll(app, "reservations")
            assert long(app) == 0  # it may be two seconds later, and nobody has scraped the page since
        for _ in range(3):
            poll(app)
            assert long(app) == 1


def test_a_class_that_was_seen_before_counts_at_once(dsn: str, db: Db) -> None:
    """One that grows long is counted by the next look at it, which need not be a pass."""
    hold(db, 35)
    with watched(dsn) as app:
        poll(app)
        poll(app)
        assert long(app) == 0
        grow_older(db, 15)
        poll(app, "reservations")
        assert long(app) == 1


def test_lengths_of_reservations(dsn: str, db: Db) -> None:
    """What has ended is in the histogram with the last age seen, as buckets that add up; what is held is not yet."""
    first, second = hold(db, 7), hold(db, 700)
    hold(db, 20)
    with watched(dsn) as app:
        poll(app)
        assert value(app, "reservation_seconds_count", queue="default") == 0
        db.execute("DELETE FROM jobs WHERE id = ANY(%s)", [[first, second]])
        poll(app)
        page = series(app.exposition.page("text"))
        buckets = {
            dict(labels)["le"]: count
            for (name, labels), count in page.items()
            if name == "laravel_queue_reservation_seconds_bucket"
        }
        counts = (0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2)
        bounds = (
            "1.0",
            "5.0",
            "15.0",
            "30.0",
            "60.0",
            "90.0",
            "120.0",
            "300.0",
            "600.0",
            "1800.0",
            "3600.0",
            "14400.0",
        )
        assert buckets == dict(zip((*bounds, "+Inf"), counts, strict=True))
        assert value(app, "reservation_seconds_count", queue="default") == 2
        assert value(app, "reservation_seconds_sum", queue="default") in range(707, 720)


def test_a_worker_that_should_be_dead(dsn: str, db: Db) -> None:
    """Ten seconds over the job's own timeout or its workers'; the longest of the pools; an expired job is another's."""
    pools = {
        "a": {"application_name": "a-*", "queues": ["default"], "timeout": 20},
        "b": {"application_name": "b-*", "queues": ["default", "mail"], "timeout": 40},
    }
    hold(db, 60)  # over the longest of its pools
    hold(db, 45)  # not over by ten seconds
    hold(db, 60, of=payload(timeout=0))  # may take as long as it likes
    hold(db, 60, of=payload(timeout=5))  # over its own
    hold(db, 95)  # expired
    hold(db, 60, "exports")  # nobody knows
    with watched(dsn, pools=pools, queues={"mail": None}) as app:
        poll(app)
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 2
        assert value(app, "reserved_past_timeout_jobs", queue="mail") == 0
        assert value(app, "reserved_past_timeout_jobs", queue="exports") == 0
        told = [finding.says for finding in report(app.board).findings]
        assert "2 jobs held past the timeout: is the worker dead?" in told


def test_timeouts_from_the_payloads(dsn: str, db: Db) -> None:
    """The largest of a class that is held, +Inf for none at all; where nobody says one there is none."""
    for of in (
        payload(timeout=30),
        payload(timeout=120),
        payload("App\\Jobs\\Endless", 0),
        payload("App\\Jobs\\Plain"),
    ):
        hold(db, of=of)
    with watched(dsn) as app:
        poll(app)
        shown = {
            job_class: value(app, "job_timeout_seconds", queue="default", job_class=job_class)
            for job_class in (SLOW, "App\\Jobs\\Endless", "App\\Jobs\\Plain")
        }
        assert shown == {SLOW: 120, "App\\Jobs\\Endless": inf, "App\\Jobs\\Plain": None}
        told = {finding.where: finding.says for finding in report(app.board).findings}
        assert told[f"database/default/{SLOW}"] == "timeout 2m, not below retry_after 1m 30s"
        assert told["database/default/App\\Jobs\\Endless"] == "timeout none, not below retry_after 1m 30s"


def test_the_newest_reservation(dsn: str, db: Db) -> None:
    """When a job was last taken, though it is done since; of a queue of which none was ever seen, nothing."""
    hold(db, 20)
    with watched(dsn, queues={"mail": None}) as app:
        poll(app)
        db.execute("DELETE FROM jobs")
        poll(app)
        (now,) = db.execute("SELECT extract(epoch FROM now())").fetchone() or (0,)
        assert 20 <= float(now) - (value(app, "last_reservation_timestamp_seconds", queue="default") or 0) < 30
        assert value(app, "last_reservation_timestamp_seconds", queue="mail") is None


def test_jobs_that_nobody_holds_are_none_of_these(dsn: str, db: Db) -> None:
    """Ready and delayed jobs make no reservation; every family of a named queue is there, at 0 or absent."""
    add_jobs(db, ("default", None, 500), ("default", None, -500))
    with watched(dsn, queues={"default": None}) as app:
        poll(app)
        names = ("reservations_repeated_total", "reservation_seconds_count", "reserved_past_timeout_jobs")
        assert [value(app, name, queue="default") for name in names] == [0, 0, 0]
        assert long(app, job_class="other") == 0
        assert lead(app) is None
        assert value(app, "labels_dropped_total", collector="reservations", label="job_class") == 0


def test_case_35_the_same_job_under_two_values_of_retry_after(dsn: str, db: Db) -> None:
    """Case 35: held for 95 s a job is long and expired with 90; with 900 it is neither, and may be late already."""
    hold(db, 95, "short", payload(timeout=60))
    hold(db, 95, "long", payload(timeout=60))
    with watched(dsn, queues={"long": {"retry_after": 900}}) as app:
        poll(app)
        poll(app)
        assert (long(app, "short"), long(app, "long")) == (1, 0)
        assert value(app, "reserved_past_timeout_jobs", queue="short") == 0
        assert value(app, "reserved_past_timeout_jobs", queue="long") == 1


def test_case_37_a_job_that_nobody_will_finish(dsn: str, db: Db) -> None:
    """Case 37: held for an hour by a worker that is gone, it is looked at again and again, and counted once."""
    id_ = hold(db, 3600)
    with watched(dsn) as app:
        for _ in range(4):
            poll(app)
        assert long(app) == 1
        assert repeated(app) == 0
        assert state(app, "reservations").interval == 2
        assert value(app, "last_reservation_timestamp_seconds", queue="default") is not None
        hand_out_again(db, id_)  # somebody has started a worker
        poll(app, "reservations")
        assert repeated(app) == 1
        assert value(app, "reservation_seconds_sum", queue="default") in range(3600, 3610)


def test_a_second_connection_on_the_table_has_its_own_label(dsn: str, db: Db) -> None:
    """A queue of Laravel's second connection carries that connection's name in each of these families."""
    hold(db, 60, "exports", payload(timeout=10))
    with watched(dsn, queues={"exports": {"connection": "database-long", "retry_after": "25m"}}) as app:
        poll(app)
        mine = [s for s in state(app, "reservations").samples if "queue" in s.labelled]
        assert {s.labelled["connection"] for s in mine} == {"database-long"}
        assert {s.metric.name.removeprefix("laravel_queue_") for s in mine} >= {
            "reservations_repeated_total", "long_reservations_total", "reservation_seconds", "job_timeout_seconds",
            "reserved_past_timeout_jobs", "last_reservation_timestamp_seconds", "reserved_at_lead_seconds",
        }  # fmt: skip


def test_a_note_is_told_for_a_quarter_of_an_hour(dsn18: str, db18: Db) -> None:
    """Which job was handed out again is worth a word for as long as somebody may act on it."""
    id_ = hold(db18, 88)
    with watched(dsn18) as app:
        poll(app)
        hand_out_again(db18, id_)
        poll(app)
        collector = app.pollers[0].source.collectors[1]
        raw = collector.fetch(Deadline(time.monotonic() + 5))
        told = {
            later: [said for said in collector.measure(raw._replace(now=raw.now + later), 0) if isinstance(said, Note)]
            for later in (0, 890, 901)
        }
        assert [len(notes) for notes in told.values()] == [1, 1, 0]


def test_numbers_are_the_databases_whatever_our_clock_says(dsn18: str, db18: Db) -> None:
    """An exporter whose own clock is years off tells the same ages, and accuses no worker."""
    hand = HandClock(wall=0.0)
    hold(db18, 46)
    with watched(dsn18, hand.clock) as app:
        poll(app)
        hand.pass_(15)
        grow_older(db18, 15)
        hold(db18, 5)
        poll(app)
        assert long(app) == 1
        assert lead(app) == 0


def test_a_partitioned_table_and_a_view(server: Postgres, dsn: str, db: Db) -> None:
    """Single jobs are found in the parts of a table, and through a view of one."""
    db.execute("DROP TABLE jobs")
    db.execute(
        "CREATE TABLE jobs (id bigserial, queue varchar(255), payload text, attempts smallint, reserved_at int,"
        " available_at int, created_at int, PRIMARY KEY (id, queue)) PARTITION BY LIST (queue);"
        "CREATE TABLE jobs_mail PARTITION OF jobs FOR VALUES IN ('mail');"
        "CREATE TABLE jobs_rest PARTITION OF jobs DEFAULT;"
        "CREATE VIEW seen AS SELECT * FROM jobs"
    )
    ids = [hold(db, 88, "mail"), hold(db, 88)]
    with watched(dsn) as table, watched(dsn, table="seen") as view:
        for app in (table, view):
            poll(app, "jobs", "reservations")
        for id_ in ids:
            hand_out_again(db, id_)
        for app in (table, view):
            poll(app, "jobs", "reservations")
            assert (repeated(app, "mail"), repeated(app)) == (1, 1)
