"""The `failed_jobs` collector: every failure is counted once, by class, and the rows that are kept now and then."""

from __future__ import annotations

import time

import psycopg
import pytest

from exporter.queues import OTHER
from exporter.sources.database.failed_jobs import FIRST, LATE, MOST_READ, SLOWER
from exporter.sources.payloads import READ
from exporter.timing import Deadline

from ..world import HandClock, poll, state, states, value, watched
from .failures import TABLES, UUIDS, Db, collector, counted, create, dropped, fail, insert, kept, payload, shown

DEFAULT = ("database", "default")


@pytest.mark.parametrize("version", TABLES)
def test_failures_are_counted_by_class(dsn: str, db: Db, version: str) -> None:
    """On the tables of all of Laravel's versions: what failed before is known by its class, what fails later counts."""
    create(db, version)
    fail(db, "Old", "Old")
    with watched(dsn, queues={"default": None}) as app:
        poll(app, "failed_jobs")
        assert shown(app) == {(*DEFAULT, "Old"): 0, (*DEFAULT, OTHER): 0}
        assert kept(app) == {DEFAULT: 2}
        fail(db, "Old", "New", "New")
        fail(db, "New", queue="mail")
        poll(app, "failed_jobs")
        assert counted(app) == {(*DEFAULT, "Old"): 1, (*DEFAULT, "New"): 2, ("database", "mail", "New"): 1}
        assert shown(app)["database", "mail", OTHER] == 0
        assert state(app, "failed_jobs").notes == ()


def test_no_counter_is_born_at_one(dsn18: str, db18: Db) -> None:
    """A class that was never seen is shown as 0 once, so that `increase` sees its first failure a poll later."""
    create(db18)
    with watched(dsn18) as app:
        poll(app, "failed_jobs")
        assert shown(app) == {}
        fail(db18, "New")
        assert counted(app) == {}
        assert shown(app) == {(*DEFAULT, "New"): 0, (*DEFAULT, OTHER): 0}
        fail(db18, "New")
        assert counted(app) == {(*DEFAULT, "New"): 2}


def test_an_empty_table_says_zero(dsn18: str, db18: Db) -> None:
    """Case 44. A named queue has its rows and its counter at 0 before anything failed, under its own connection."""
    create(db18)
    with watched(dsn18, queues={"default": None, "exports": {"connection": "database-long"}}) as app:
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 0, ("database-long", "exports"): 0}
        assert shown(app) == {(*DEFAULT, OTHER): 0, ("database-long", "exports", OTHER): 0}


def test_rows_that_go_take_nothing_back(dsn: str, db: Db) -> None:
    """`queue:retry` and `queue:prune-failed` delete rows: the counter stays, and goes on at the next failure."""
    create(db)
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        fail(db, *["A"] * 5)
        poll(app, "failed_jobs")
        for condition in ("id = 5", "id < 3", "true"):
            db.execute(f"DELETE FROM failed_jobs WHERE {condition}")
            assert counted(app) == {(*DEFAULT, "A"): 5}
        fail(db, "A")
        assert counted(app) == {(*DEFAULT, "A"): 6}
        assert counted(app) == {(*DEFAULT, "A"): 6}


def test_ids_that_begin_again_are_counted_on(dsn: str, db: Db) -> None:
    """After TRUNCATE … RESTART IDENTITY a poll notices that the highest id has fallen, and counts from there."""
    create(db)
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        fail(db, *["A"] * 50)
        poll(app, "failed_jobs")
        db.execute("TRUNCATE failed_jobs RESTART IDENTITY")
        assert counted(app) == {(*DEFAULT, "A"): 50}
        assert fail(db, "A", "A") == [1, 2]
        assert counted(app) == {(*DEFAULT, "A"): 52}
        db.execute("TRUNCATE failed_jobs RESTART IDENTITY")
        assert fail(db, "A") == [1]  # before anybody looked: who sees a 1 cannot tell that it is another one
        assert counted(app) == {(*DEFAULT, "A"): 52}
        fail(db, "A")
        assert counted(app) == {(*DEFAULT, "A"): 53}


def test_a_storm_loses_nothing(dsn: str, db: Db) -> None:
    """Of more failures than a poll reads, the next ones read the rest, and a note says so in the meantime."""
    create(db)
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        fail(db, *["A"] * (2 * MOST_READ + 500))
        poll(app, "failed_jobs")
        assert str(MOST_READ) in state(app, "failed_jobs").notes[0]
        assert counted(app) == {(*DEFAULT, "A"): 2 * MOST_READ}
        assert counted(app) == {(*DEFAULT, "A"): 2 * MOST_READ + 500}
        assert state(app, "failed_jobs").notes == ()


def test_a_row_that_is_committed_late(dsn: str, db: Db) -> None:
    """A row whose transaction ends after that of higher ones is counted when it comes, within a minute, and once."""
    create(db)
    hand = HandClock()
    with watched(dsn, hand.clock) as app, psycopg.connect(dsn) as late, psycopg.connect(dsn) as too_late:
        fail(db, "A")
        poll(app, "failed_jobs")
        assert fail(late, "Late") == [2]
        assert fail(too_late, "Late") == [3]
        assert fail(db, "A") == [4]
        assert counted(app) == {(*DEFAULT, "A"): 1}
        hand.pass_(LATE - 1)
        late.commit()
        poll(app, "failed_jobs")
        assert counted(app) == {(*DEFAULT, "A"): 1, (*DEFAULT, "Late"): 1}
        hand.pass_(1)
        poll(app, "failed_jobs")
        too_late.commit()
        poll(app, "failed_jobs")
        assert counted(app) == {(*DEFAULT, "A"): 1, (*DEFAULT, "Late"): 1}


def test_a_late_row_counts_once_when_all_others_are_gone(dsn18: str, db18: Db) -> None:
    """A row that comes late is the highest of all where the others were retried meanwhile; still it is one row."""
    create(db18)
    with watched(dsn18) as app, psycopg.connect(dsn18) as late:
        poll(app, "failed_jobs")
        fail(late, "Late")
        fail(db18, "A")
        poll(app, "failed_jobs")
        db18.execute("DELETE FROM failed_jobs")
        poll(app, "failed_jobs")
        late.commit()
        poll(app, "failed_jobs")
        assert counted(app) == {(*DEFAULT, "A"): 1, (*DEFAULT, "Late"): 1}


def test_what_was_under_way_at_the_first_poll_counts(dsn18: str, db18: Db) -> None:
    """A row that is committed after the first poll failed after it, even if a higher id was there already."""
    create(db18)
    with watched(dsn18) as app, psycopg.connect(dsn18) as late:
        fail(late, "Late")
        fail(db18, "A")
        poll(app, "failed_jobs")
        late.commit()
        poll(app, "failed_jobs")
        assert counted(app) == {(*DEFAULT, "Late"): 1}


def test_classes_of_the_last_rows_are_known_from_the_start(dsn18: str, db18: Db) -> None:
    """Of a table with a long past only the last few hundred rows are read."""
    create(db18)
    fail(db18, "Ancient", *["Old"] * FIRST)
    with watched(dsn18) as app:
        poll(app, "failed_jobs")
        assert shown(app) == {(*DEFAULT, "Old"): 0, (*DEFAULT, OTHER): 0}


def test_a_poll_that_was_too_late_is_made_up_for(dsn18: str, db18: Db) -> None:
    """An answer that nobody measured counts nothing; the next one has its rows again. Measured twice it counts once."""
    create(db18)
    with watched(dsn18) as app:
        poll(app, "failed_jobs")
        fail(db18, "A", "B")
        failed_jobs = collector(app)
        for _ in range(2):
            raw = failed_jobs.fetch(Deadline(time.monotonic() + 5))
        measured = [list(failed_jobs.measure(raw, time.time())) for _ in range(2)]
        assert measured[0] == measured[1]
        assert counted(app) == {(*DEFAULT, "A"): 1, (*DEFAULT, "B"): 1}


def test_without_an_id_only_the_rows_are_counted(dsn: str, db: Db) -> None:
    """With a uuid for a key nothing tells which rows are new: the rows are shown, no counter, and a note says so."""
    db.execute("DROP TABLE failed_jobs")
    db.execute(UUIDS)
    db.execute("INSERT INTO failed_jobs SELECT gen_random_uuid(), 'database', 'default', '{}', 'it failed'")
    with watched(dsn, queues={"mail": None}) as app:
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 1, ("database", "mail"): 0}
        assert shown(app) == {}
        assert "no id" in state(app, "failed_jobs").notes[0]


def test_without_payloads_everything_is_other(dsn: str, db: Db) -> None:
    """Where there is no payload, or none of Laravel's in it, failures are counted without a class."""
    create(db)
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        insert(db, [(*DEFAULT, text) for text in ("broken json", '{"not":"laravel"}', "", payload("Send an invoice"))])
        assert counted(app) == {}
        assert counted(app) == {(*DEFAULT, OTHER): 4}
        assert dropped(app, "job_class") == 0
        db.execute("ALTER TABLE failed_jobs DROP COLUMN payload")
        db.execute(
            "INSERT INTO failed_jobs (uuid, connection, queue, exception) VALUES ('1', 'database', 'default', '')"
        )
        assert counted(app) == {(*DEFAULT, OTHER): 5}
        assert "payloads cannot be read" in state(app, "failed_jobs").notes[0]


def test_a_payload_that_redis_wrote_anew(dsn: str, db: Db) -> None:
    """A job that Redis had put back has its members in any order: it is read further than others, to find its class."""
    create(db)
    reordered = payload("App\\Jobs\\A", command="O:18:" + "x" * 2 * READ)
    reordered = '{"data":' + reordered.split('"data": ')[1][:-1] + ',"displayName":"App\\\\Jobs\\\\A","uuid":"1"}'
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        insert(db, [("redis", "default", reordered)])
        poll(app, "failed_jobs")
        assert counted(app) == {("redis", "default", "A"): 1}


def test_queues_of_sqs_have_their_short_name(dsn18: str, db18: Db) -> None:
    """Laravel writes the whole URL of an SQS queue into the row: its last part is shown, as a slash alone is no URL."""
    create(db18)
    url = "https://sqs.ap-southeast-1.amazonaws.com/123456789012/emails-production.fifo"
    with watched(dsn18) as app:
        fail(db18, "A", connection="sqs", queue=url)
        fail(db18, "A", connection="sqs", queue=f"{url}/")
        fail(db18, "A", connection="redis", queue="a/b")
        poll(app, "failed_jobs")
        assert kept(app) == {("sqs", "emails-production.fifo"): 2, ("redis", "a/b"): 1}


def test_rows_are_counted_now_and_then(dsn18: str, db18: Db) -> None:
    """Every row is read for it, so it is done once in twenty intervals; in between the last count stands."""
    create(db18)
    hand = HandClock()
    with watched(dsn18, hand.clock, queues={"default": None}) as app:
        poll(app, "failed_jobs")
        fail(db18, "A")
        hand.pass_(SLOWER * 15 - 1)
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 0}
        hand.pass_(1)
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 1}
        db18.execute("TRUNCATE failed_jobs")
        hand.pass_(SLOWER * 15)
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 0}


def test_case_25_a_table_that_comes_later(dsn: str, db: Db) -> None:
    """Case 25. Without its table `failed_jobs` alone is down by `undefined_table`; it heals when the table comes."""
    with watched(dsn, failed_table="app_failed_jobs") as app:
        poll(app)
        assert state(app, "failed_jobs").reason == "undefined_table"
        assert state(app, "failed_jobs").error == "there is no table public.app_failed_jobs"
        assert state(app, "jobs").up
        assert kept(app) == {}
        create(db)
        db.execute("ALTER TABLE failed_jobs RENAME TO app_failed_jobs")
        poll(app, "failed_jobs")
        assert state(app, "failed_jobs").up


def test_a_table_set_to_null_is_not_down(dsn18: str, db18: Db) -> None:
    """An application that keeps its failures elsewhere has no such collector, and nothing says that it is down."""
    with watched(dsn18, failed_table=None) as app:
        assert "failed_jobs" not in states(app)
        assert value(app, "source_up", collector="failed_jobs") is None
