"""The `pop` collector: which queues it asks of, in which order, how long an answer is believed, hostile names."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from exporter import app as exporter
from exporter.app import App
from exporter.demo.postgres import Postgres

from ..world import HandClock, add_jobs, close, create_jobs, poll, series, settings, state, value, watched
from .test_cost import Log
from .test_jobs_names import encoded

Db = psycopg.Connection[Any]

NAMES = (
    "", "default", "a'b", 'a"b', "a\\b", "\\'", "a\nb", "%", "%s%(x)s%%", "{}", "{jobs}", "{queue}", "$1", ":x", "?",
    "';DROP TABLE jobs;--", "/*", "$$", "очередь-🚀", " ", "q" * 255,
)  # fmt: skip
PARTITIONED = """
CREATE TABLE parts (LIKE jobs) PARTITION BY LIST (queue);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM jobs;
"""


@pytest.fixture
def log(postgres18: Postgres, db18: Db) -> Log:
    """The log of all that is asked of `db18`."""
    for name, setting in {"log_statement": "all", "log_min_messages": "log"}.items():
        db18.execute(f"ALTER DATABASE {db18.info.dbname} SET {name} = '{setting}'".encode())
    return Log(postgres18.log)


def without(db: Db, *ways: str) -> None:
    """New sessions go none of these ways, as the planner calls them."""
    for way in ways:
        db.execute(f"ALTER DATABASE {db.info.dbname} SET enable_{way} = off".encode())


def without_indexes(db: Db) -> None:
    """From now on the table is read from one end to the other, so a pop skips all but the jobs that it may take."""
    without(db, "indexscan", "bitmapscan")


def asked(log: Log) -> list[str]:
    """The queues whose pop was explained since the log was last looked at."""
    return re.findall(r"EXPLAIN .*?WHERE queue = '([^']*)'", log.new(), re.DOTALL)


def shown(app: App) -> set[str]:
    """The queues that have numbers on the page."""
    page = series(app.exposition.page("text"))
    return {dict(labels)["queue"] for name, labels in page if name == "laravel_queue_pop_duration_seconds"}


def skipped(app: App, queue: str) -> float | None:
    """The rows that a pop of this queue looks at in vain."""
    return value(app, "pop_skipped_rows", queue=queue)


def polled(dsn: str, **changes: Any) -> App:
    """An exporter that has counted the jobs and asked for the pop of each queue, once."""
    app = exporter.build(settings(dsn, **changes), once=True)
    poll(app, "jobs", "pop")
    close(app)
    assert state(app, "pop").error == ""
    return app


def test_one_question_a_poll(dsn18: str, db18: Db, log: Log) -> None:
    """Each poll asks of one queue, of each in its turn; a queue that comes later takes its turn after the others."""
    add_jobs(db18, ("found", None, 5))
    with watched(dsn18, queues={"b": {}, "a": {}}) as app:
        poll(app, "jobs")
        for expected in ("b", "a", "found", "b", "a", "found", "b"):
            poll(app, "pop")
            assert asked(log) == [expected]
        add_jobs(db18, ("aaa", None, 5))
        poll(app, "jobs")
        for expected in ("a", "found", "b", "aaa", "a"):
            poll(app, "pop")
            assert asked(log) == [expected]
        assert shown(app) == {"a", "b", "found", "aaa"}


def test_before_the_first_pass(dsn18: str, db18: Db, log: Log) -> None:
    """While nobody knows which queues there are, the named ones are asked of; without any none is, and that is fine."""
    add_jobs(db18, ("found", None, 5))
    with watched(dsn18, queues={"named": {}}) as app:
        for _ in range(2):
            poll(app, "pop")
            assert asked(log) == ["named"]
    with watched(dsn18) as app:
        poll(app, "pop")
        assert asked(log) == []
        assert state(app, "pop").error == ""


def test_a_failure_does_not_hold_up_the_line(dsn18: str, db18: Db, log: Log) -> None:
    """A queue whose question fails is not asked of again until all others were."""
    db18.execute(
        "CREATE VIEW odd AS SELECT id, queue, available_at, reserved_at FROM jobs"
        " WHERE id / CASE queue WHEN 'broken' THEN 0 ELSE 1 END > 0"
    )
    add_jobs(db18, ("fine", None, 5), ("broken", None, 5))
    with watched(dsn18, table="odd", queues={"broken": {}, "fine": {}}) as app:
        for expected in ("broken", "fine", "broken", "fine"):
            poll(app, "pop")
            assert asked(log) == [expected]
            assert state(app, "pop").up == (expected == "fine")


def test_once_asks_of_all(dsn18: str, db18: Db, log: Log) -> None:
    """Where nobody will ask again, one poll has the numbers of all queues."""
    add_jobs(db18, *[(f"queue-{number}", None, 5) for number in range(20)])
    app = polled(dsn18, queues={"named": {}})
    queues = {"named", *(f"queue-{number}" for number in range(20))}
    assert shown(app) == queues
    assert sorted(asked(log)) == sorted(queues)


def test_numbers_that_are_not_renewed_go(dsn18: str, db18: Db) -> None:
    """A number is shown for three and a half rounds, as long as they really are, and no longer after a silence."""
    hand = HandClock()
    with watched(dsn18, hand.clock, queues={"a": {}, "b": {}}) as app:  # a round takes 30 s
        for _ in range(4):
            poll(app, "pop")
            hand.pass_(15)
        assert shown(app) == {"a", "b"}
        hand.pass_(3.5 * 30 - 15)
        poll(app, "pop")
        assert shown(app) == {"a", "b"}
        hand.pass_(3.5 * 30 + 1)
        poll(app, "pop")
        assert shown(app) == {"b"}
        for _ in range(6):  # the duty asks for less
            hand.pass_(300)
            poll(app, "pop")
        assert shown(app) == {"a", "b"}
        hand.pass_(3.5 * 600 + 1)
        poll(app, "pop")
        assert len(shown(app)) == 1


def test_a_queue_that_is_not_shown_any_more(dsn18: str, db18: Db) -> None:
    """With its queue a number goes at once, however young it is."""
    hand = HandClock()
    add_jobs(db18, ("a", None, 5), ("b", None, 5))
    with watched(dsn18, hand.clock) as app:
        poll(app, "jobs")
        db18.execute("DELETE FROM jobs WHERE queue = 'b'")
        hand.pass_(3595)
        for _ in range(2):
            poll(app, "pop")
        assert shown(app) == {"a", "b"}
        hand.pass_(10)
        poll(app, "jobs", "pop")
        assert shown(app) == {"a"}


def test_too_many_queues(dsn18: str, db18: Db) -> None:
    """Of queues that are counted together nobody is asked, as there is no queue `other`."""
    add_jobs(db18, *[(f"queue-{number}", None, 5) for number in range(103)])
    app = polled(dsn18, queues={"named": {}})
    assert value(app, "jobs", queue="other", state="ready") == 3
    assert len(shown(app)) == 101
    assert "other" not in shown(app)


def test_case_29_hostile_names(dsn18: str, db18: Db) -> None:
    """Case 29: whatever a queue is called, its own jobs are searched for, and the name is shown as it is."""
    without_indexes(db18)
    for number, name in enumerate(NAMES, start=1):
        add_jobs(db18, *[(name, None, 5)] * number)
    rows = sum(range(len(NAMES) + 1))
    app = polled(dsn18, queues={"default": {}})
    assert shown(app) == {*NAMES}
    for number, name in enumerate(NAMES, start=1):
        assert skipped(app, name) == rows - number, name


def test_case_27_bytes_that_are_no_text(server: Postgres) -> None:
    """Case 27: a queue whose name is no text is not asked of under another; all else has its numbers, in any bytes."""
    with encoded(server, "SQL_ASCII") as (dsn, db):
        db.execute(rb"""DO $$ BEGIN EXECUTE E'ALTER INDEX jobs_pkey RENAME TO "\xff"'; END $$""")
        without(db, "sort", "bitmapscan")  # so that this index is used, and stands in the plan
        for name in (rb"\xff\xfeA", "очередь-🚀".encode()):
            db.execute(
                b"INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (E'%b', '', 0, 0, 0)"
                % name
            )
        app = polled(dsn, queues={"named": {}})
        assert value(app, "jobs", queue="\ufffd\ufffdA", state="ready") == 1
        assert shown(app) == {"named", "очередь-🚀"}
        assert skipped(app, "очередь-🚀") == 1


def test_a_database_in_another_encoding(server: Postgres) -> None:
    """A name means the same letters whatever the database stores them as."""
    with encoded(server, "LATIN1") as (dsn, db):
        without_indexes(db)
        add_jobs(db, *[("été", None, 1)] * 2, *[("autre", None, 1)] * 3)
        assert skipped(polled(dsn), "été") == 3


def test_a_view_and_partitions(dsn: str, db: Db) -> None:
    """A pop from a view or a partitioned table has its numbers, over all that it is made of."""
    without_indexes(db)
    create_jobs(db, "more_jobs")
    add_jobs(db, ("a", None, 5), ("b", None, 5), ("b", None, -5))
    db.execute(PARTITIONED)
    db.execute("CREATE VIEW every_job AS SELECT * FROM jobs UNION ALL SELECT * FROM parts")
    app = polled(dsn, table="every_job")
    assert (skipped(app, "a"), skipped(app, "b")) == (2 + 0, 2 + 1)
    assert value(app, "pop_buffers", queue="b") == 2
    app = polled(dsn, table="parts")
    assert (skipped(app, "a"), skipped(app, "b")) == (0, 1)


def test_a_part_of_a_plan_that_is_run_again(dsn18: str, db18: Db) -> None:
    """Rows that were passed over are counted each time: to find the first, second and third of three, 0 + 1 + 2."""
    without_indexes(db18)
    add_jobs(db18, *[("a", None, 5)] * 3)
    db18.execute(
        "CREATE VIEW again AS SELECT * FROM jobs WHERE EXISTS"
        " (SELECT FROM jobs AS other WHERE other.id = jobs.id OFFSET 0)"
    )
    assert skipped(polled(dsn18, table="again"), "a") == 3


def test_the_settings_of_a_queue(dsn18: str, db18: Db) -> None:
    """What may be taken depends on the queue's own `retry_after`, and its connection has the name that Laravel uses."""
    without_indexes(db18)
    add_jobs(db18, ("long", 95, 95), ("short", 95, 95))
    app = polled(dsn18, queues={"long": {"retry_after": "25m", "connection": "database-long"}})
    assert value(app, "pop_skipped_rows", connection="database-long", queue="long") == 2
    assert value(app, "pop_skipped_rows", connection="database", queue="short") == 1


def test_case_25_a_table_that_comes_and_goes(dsn18: str, db18: Db) -> None:
    """Case 25: without a table there is no pop, which is for `jobs` to complain of; numbers come and go with it."""
    with watched(dsn18, table="app_jobs", queues={"default": {}}) as app:
        poll(app, "jobs", "pop")
        assert not state(app, "jobs").up
        assert state(app, "pop").error == ""
        create_jobs(db18, "app_jobs")
        poll(app, "pop")
        assert shown(app) == {"default"}
        db18.execute("DROP TABLE app_jobs")
        poll(app, "pop")
        assert state(app, "pop").error == ""
        assert shown(app) == set()


def test_a_table_that_is_locked(dsn18: str, db18: Db) -> None:
    """Behind an ALTER TABLE a pop is given up as `lock_timeout`, and nothing is said about how long it takes."""
    with watched(dsn18, queues={"default": {}}) as app, db18.transaction():
        db18.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        poll(app, "pop")
        assert state(app, "pop").reason == "lock_timeout"
        assert shown(app) == set()
