"""The `failed_jobs` collector under load: many at once, many names, much to read, and too much to count."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from random import Random
from threading import Thread
from typing import NamedTuple
from uuid import UUID

import psycopg
import pytest

from exporter.demo.postgres import Postgres
from exporter.queues import OTHER
from exporter.sources.database.failed_jobs import MOST_CONNECTIONS, SLOWER
from exporter.timing import BELIEF

from ..conftest import new_database
from ..world import HandClock, poll, state, watched
from .failures import Db, counted, create, dropped, fail, insert, kept, payload, shown
from .test_cost import LOGGED, Log, Node, nodes, pages

DEFAULT = ("database", "default")
WRITERS, EACH = 8, 1250
ROWS = 100_000


class Writer(Thread):
    """Failures of its own class, a few in each transaction; some of these are rolled back, some rows deleted later."""

    def __init__(self, dsn: str, name: str) -> None:
        super().__init__()
        self.dsn, self.job_class = dsn, name
        self.committed: list[int] = []

    def run(self) -> None:
        chance = Random(self.job_class)
        with psycopg.connect(self.dsn) as connection:
            while len(self.committed) < EACH:
                ids = fail(connection, *[self.job_class] * chance.randint(1, 3))
                if chance.random() < 0.1:
                    connection.rollback()
                    continue
                connection.commit()
                self.committed += ids


def test_ten_thousand_failures_at_once(dsn: str, db: Db) -> None:
    """While eight processes write 10,000 failures, committed in any order, polls count each of them exactly once."""
    create(db)
    writers = [Writer(dsn, f"Job{number}") for number in range(WRITERS)]
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        for writer in writers:
            writer.start()
        last: Counter[tuple[str, str, str]] = Counter()
        while any(writer.is_alive() for writer in writers):
            now = Counter(counted(app))
            assert not last - now, "a counter fell"
            last = now
        while counted(app) != dict(last):
            last = Counter(counted(app))
        assert last == {(*DEFAULT, writer.job_class): len(writer.committed) for writer in writers}
    assert last.total() >= WRITERS * EACH


def numbered(first: int, after: int) -> list[str]:
    """Names like those of an application that makes one per customer."""
    return [str(UUID(int=number << 64)) for number in range(first, after)]


def test_case_77_ten_thousand_names(dsn: str, db: Db) -> None:
    """Case 77. Of 10,000 queues 100 are shown, of 100 connections ten; the rest is `other`, the sums are right."""
    create(db)
    names = numbered(0, 10_000)
    rows = [(f"redis-{number % 100:02}", name, payload("App\\Jobs\\A")) for number, name in enumerate(names)]
    insert(db, [*rows, *[("database", "large", payload("App\\Jobs\\A"))] * 3])
    with watched(dsn, queues={"named": {"connection": "database-long"}}) as app:
        poll(app, "failed_jobs")
        assert len(kept(app)) == 1 + 100 + MOST_CONNECTIONS + 1  # named, found, and `other` of each connection
        assert kept(app)[DEFAULT[0], "large"] == 3
        assert kept(app)["database-long", "named"] == 0
        assert {connection for connection, _ in kept(app)} >= {"database", "database-long", OTHER}
        assert len({connection for connection, _ in kept(app)}) == 2 + MOST_CONNECTIONS + 1
        assert sum(kept(app).values()) == 10_003
        assert dropped(app, "connection") == 100 - MOST_CONNECTIONS
        assert dropped(app, "queue") == 10_001 - 100
        poll(app, "failed_jobs")
        assert dropped(app, "connection") == 2 * (100 - MOST_CONNECTIONS)


def test_case_77_ten_thousand_classes(dsn: str, db: Db) -> None:
    """Case 77. Of 10,000 classes the first hundred keep their names; the rest counts as `other`, and none is lost."""
    create(db)
    with watched(dsn) as app:
        poll(app, "failed_jobs")
        insert(db, [(*DEFAULT, payload(f"App\\Jobs\\Job{number}")) for number in range(10_000)])
        while sum(counted(app).values()) < 10_000:
            assert state(app, "failed_jobs").notes
        poll(app, "failed_jobs")
        assert len(shown(app)) == 101
        assert shown(app)[*DEFAULT, OTHER] == 9_900
        assert dropped(app, "job_class") == 9_900


def test_case_77_memory_stays_flat(dsn18: str, db18: Db) -> None:
    """Case 77. However many new names each poll brings, what is remembered and what is shown stay bounded."""
    create(db18)
    hand, held = HandClock(), []
    tracemalloc.start()
    with watched(dsn18, hand.clock) as app:
        for turn in range(24):
            db18.execute("TRUNCATE failed_jobs")
            names = numbered(turn * 200, turn * 200 + 200)
            insert(db18, [(name, name, payload(f"App\\Jobs\\Job{name[:18]}")) for name in names])
            poll(app, "failed_jobs")
            hand.pass_(600)
            assert len({labels[:2] for labels in shown(app)}) <= 100 + MOST_CONNECTIONS + 1
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(held[16:]) < max(held[8:16]) + 200_000, "bytes"


class Large(NamedTuple):
    """A database with many failures, and the log of what is asked of it."""

    dsn: str
    db: Db
    log: Log


@pytest.fixture(scope="module")
def large(server: Postgres) -> Iterator[Large]:
    """A table of 100,000 failures with exceptions of 20 kB, as Laravel 13 makes it."""
    for dsn in new_database(server):
        with psycopg.connect(dsn, autocommit=True) as db:
            create(db, "13.9")
            db.execute("ALTER TABLE failed_jobs SET UNLOGGED")
            fail(db, "A", queue="queue-1")
            db.execute(
                "UPDATE failed_jobs SET exception = repeat('#7 /srv/app/vendor/laravel/Worker.php(142): x\n', 450)"
            )
            db.execute(
                "INSERT INTO failed_jobs (uuid, connection, queue, payload, exception)"
                " SELECT n, connection, 'queue-' || n %% 8, payload, exception FROM failed_jobs,"
                " generate_series(2, %s) AS n",
                [ROWS],
            )
            for name, setting in LOGGED.items():
                db.execute(f"ALTER DATABASE {db.info.dbname} SET {name} = '{setting}'".encode())
            db.execute("VACUUM ANALYZE failed_jobs")
            yield Large(dsn, db, Log(server.log))


def rows_read(plan: Node) -> float:
    """Rows of the table, or entries of its indexes, that were looked at."""
    looked_at = (
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for node in nodes(plan)
        if node.get("Relation Name") == "failed_jobs"
    )
    return float(sum(looked_at))


def test_what_is_new_is_found_by_its_id(large: Large) -> None:
    """Beside 100,000 old failures with 20 kB exceptions, each new one takes a few pages, and nothing else is read."""
    with watched(large.dsn) as app:
        poll(app, "failed_jobs")
        poll(app, "failed_jobs")
        plan = large.log.plan()
        assert rows_read(plan) == 1  # the highest
        assert pages(plan) < 10
        fail(large.db, *["B"] * 20)
        poll(app, "failed_jobs")
        plan = large.log.plan()
        assert rows_read(plan) == 1 + 20
        assert pages(plan) < 10 + 3 * 20
        assert counted(app) == {(*DEFAULT, "B"): 20}


def test_of_a_long_payload_only_the_beginning_is_read(large: Large) -> None:
    """Of ten payloads of a megabyte, which lie outside of their rows, a few pages are read and not all 1300."""
    noise = "".join(str(UUID(int=Random(n).getrandbits(128))) for n in range(30_000))
    with watched(large.dsn) as app:
        poll(app, "failed_jobs")
        insert(large.db, [(*DEFAULT, payload("App\\Jobs\\Long", command=noise))] * 10)
        poll(app, "failed_jobs")
        plan = large.log.plan()
        assert rows_read(plan) == 1 + 10
        assert pages(plan) < 200
        assert counted(app) == {(*DEFAULT, "Long"): 10}


def test_rows_are_counted_from_the_index(large: Large) -> None:
    """With the index on connection and queue that Laravel 13.9 makes, after a vacuum, counting visits no row."""
    large.db.execute("VACUUM failed_jobs")
    with watched(large.dsn) as app:
        poll(app, "failed_jobs")
        assert [kept(app)["database", f"queue-{n}"] for n in range(8)] == [ROWS / 8] * 8
    plan = large.log.plan()
    assert {node["Node Type"] for node in nodes(plan) if "Relation Name" in node} == {"Index Only Scan"}
    assert sum(node.get("Heap Fetches", 0) for node in nodes(plan)) == 0


def test_rows_that_take_too_long_to_count(dsn18: str, db18: Db) -> None:
    """
    A count that runs into its time limit costs no more than itself: the last one stands, and a note says why.

    After three and a half times the usual pause it is too old to be shown; the counter goes on all the time.
    """
    create(db18)
    db18.execute("""
        CREATE FUNCTION slowly(queue text) RETURNS text STABLE LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_sleep(9); RETURN queue; END $$;
        CREATE VIEW slow AS SELECT id, connection, payload,
               CASE WHEN id < 100 THEN slowly(queue) ELSE queue END AS queue FROM failed_jobs
    """)
    hand, slowly = HandClock(), SLOWER * 15
    with watched(dsn18, hand.clock, failed_table="slow", timeout="400ms") as app:
        db18.execute("SELECT setval('failed_jobs_id_seq', 1000)")
        fail(db18, "A")
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 1}
        db18.execute("INSERT INTO failed_jobs SELECT 1, '1', connection, queue, payload, '' FROM failed_jobs")
        for number in range(1, 4):
            fail(db18, "A")
            hand.pass_(slowly)
            assert counted(app) == {(*DEFAULT, "A"): number}
            assert kept(app) == {DEFAULT: 1}
            assert "statement timeout" in state(app, "failed_jobs").notes[0]
            assert counted(app)  # the question is not asked again before its time
        hand.pass_((BELIEF - 3) * slowly + 1)
        fail(db18, "A")
        assert counted(app) == {(*DEFAULT, "A"): 4}
        assert kept(app) == {}
        assert "statement timeout" in state(app, "failed_jobs").notes[0]
        db18.execute("DELETE FROM failed_jobs WHERE id = 1")
        hand.pass_(slowly)
        poll(app, "failed_jobs")
        assert kept(app) == {DEFAULT: 5}
        assert state(app, "failed_jobs").notes == ()
