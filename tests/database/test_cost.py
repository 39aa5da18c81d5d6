"""What the questions cost the database, in counts: messages, plans as they were run, pages, locks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.demo.postgres import Postgres
from exporter.queues import STATES

from ..world import poll, states, value, watched

Db = psycopg.Connection[Any]
Node = dict[str, Any]  # of a plan

ROWS = 20_000
INDEXES = (
    "CREATE INDEX waiting ON jobs (queue, available_at) WHERE reserved_at IS NULL",
    "CREATE INDEX held ON jobs (queue, reserved_at) WHERE reserved_at IS NOT NULL",
)
BY_INDEX = {
    "Index Only Scan",
    "Bitmap Heap Scan",
}  # waiting jobs are counted, held ones are fetched
MESSAGES = {  # of each collector's poll
    "jobs": 2, "reservations": 1, "failed_jobs": 2, "statistics": 1, "activity": 2, "sizes": 1, "locks": 1,
    "signals": 2, "pop": 2,
}  # fmt: skip
LOGGED = {  # what sessions of the database tell the server's log, and that nothing but us keeps plans on one core
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_format": "json",
    "log_statement": "all",
    "log_min_messages": "log",
    "parallel_setup_cost": "0",
    "parallel_tuple_cost": "0",
    "min_parallel_table_scan_size": "0",
    "min_parallel_index_scan_size": "0",
}


class Log:
    """What the server wrote into its log since it was last looked at."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read = len(path.read_bytes())

    def new(self) -> str:
        """All that is new."""
        text = self.path.read_bytes()
        text, self.read = text[self.read :], len(text)
        return text.decode()

    def messages(self) -> int:
        """How many messages were sent to the server."""
        return len(re.findall(r"LOG:  statement: ", self.new()))

    def plan(self) -> Node:
        """The plan of the last statement, as it was run."""
        plans = re.findall(r"plan:\n\t(\{.*?\n\t\})", self.new(), re.DOTALL)
        return dict(json.loads(plans[-1])["Plan"])


def nodes(plan: Node) -> Iterator[Node]:
    """All nodes of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def pages(plan: Node) -> int:
    """Pages that were looked at, each time they were."""
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def scans(plan: Node) -> set[str]:
    """How the jobs table is read."""
    return {node["Node Type"] for node in nodes(plan) if node.get("Relation Name") == "jobs"}


@pytest.fixture
def log(server: Postgres, dsn: str, db: Db) -> Log:
    """A jobs table of 20,000 rows, some of them held or delayed, and the log of what is asked of it."""
    db.execute(
        "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
        " SELECT 'queue-' || n %% 8, repeat('x', 500), 0, CASE WHEN n %% 400 = 0 THEN now END,"
        "        now + CASE WHEN n %% 20 = 0 THEN 600 ELSE -600 END, now"
        " FROM generate_series(1, %s) AS n, (SELECT extract(epoch FROM now())::int AS now) AS clock",
        [ROWS],
    )
    for name, setting in LOGGED.items():
        db.execute(f"ALTER DATABASE {db.info.dbname} SET {name} = '{setting}'")
    db.execute("VACUUM ANALYZE jobs")
    return Log(server.log)


def right(app: App) -> bool:
    """Whether the numbers are those of the rows above."""
    counted = [sum(value(app, "jobs", queue=f"queue-{n}", state=s) or 0 for n in range(8)) for s in STATES]
    return counted == [ROWS * 19 // 20, ROWS // 20 - ROWS // 400, ROWS // 400, 0]


def test_messages_per_poll(dsn: str, log: Log) -> None:
    """A poll sends a fixed number of messages, each a transaction of its own; nothing is sent in between."""
    with watched(dsn) as app:
        poll(app)  # the first one also counts the failed jobs, which comes once in a while
        log.new()
        assert states(app).keys() == MESSAGES.keys()
        for collector, messages in MESSAGES.items():
            poll(app, collector)
            assert log.messages() == messages, collector
            for _ in range(5):
                poll(app, collector)
            assert log.messages() == 5 * messages, collector
    assert log.messages() == 0


def test_one_pass_reads_each_page_once(dsn: str, db: Db, log: Log) -> None:
    """Without our indexes the table is read once from one end to the other, by one process alone."""
    with watched(dsn) as app:
        poll(app, "jobs")
        assert right(app)
    plan = log.plan()
    heap = db.execute("SELECT pg_relation_size('jobs') / 8192").fetchone() or (0,)
    assert [node["Node Type"] for node in nodes(plan) if node.get("Relation Name") == "jobs"] == ["Seq Scan"]
    assert pages(plan) == heap[0]
    assert not {"Gather", "Gather Merge"} & {node["Node Type"] for node in nodes(plan)}


def visited(plan: Node) -> float:
    """Rows of the table that were fetched, and not only counted in an index."""
    own = plan["Actual Rows"] if plan["Node Type"] == "Bitmap Heap Scan" else plan.get("Heap Fetches", 0)
    return float(own) + sum(map(visited, plan.get("Plans", ())))


def test_with_two_partial_indexes_only_held_jobs_are_visited(dsn: str, db: Db, log: Log) -> None:
    """With our two indexes, after a vacuum, numbers come from these alone; of the rows only those held are fetched."""
    for statement in (*INDEXES, "VACUUM ANALYZE jobs"):
        db.execute(statement)
    with watched(dsn) as app:
        poll(app, "jobs")
        assert right(app)
    plan = log.plan()
    assert scans(plan) == BY_INDEX
    assert visited(plan) == ROWS // 400
    size = db.execute("SELECT (pg_relation_size('waiting') + pg_relation_size('held')) / 8192").fetchone() or (0,)
    queues, descents = 8, 7  # of the tree, for each queue: three pages and the visibility map
    assert pages(plan) < 1.5 * size[0] + 4 * queues * descents + visited(plan)
    assert not {"Gather", "Gather Merge"} & {node["Node Type"] for node in nodes(plan)}


@pytest.mark.parametrize("missing", INDEXES)
def test_one_of_the_two_indexes_is_not_enough(dsn: str, db: Db, log: Log, missing: str) -> None:
    """One index alone would cost a second pass, so it is the one pass then."""
    for statement in {*INDEXES} - {missing}:
        db.execute(statement)
    with watched(dsn) as app:
        poll(app, "jobs")
        assert right(app)
    assert scans(log.plan()) == {"Seq Scan"}


@pytest.mark.parametrize("order", ['queue COLLATE "POSIX"', "queue text_pattern_ops"])
def test_an_index_in_another_order_is_none_of_ours(dsn: str, db: Db, log: Log, order: str) -> None:
    """An index that sorts queues otherwise than the column does cannot serve us, so it is the one pass."""
    db.execute(f"CREATE INDEX ON jobs ({order}, available_at) WHERE reserved_at IS NULL")
    for statement in (INDEXES[1], "VACUUM ANALYZE jobs"):
        db.execute(statement)
    with watched(dsn) as app:
        poll(app, "jobs")
        assert right(app)
    assert scans(log.plan()) == {"Seq Scan"}


@pytest.mark.parametrize("vacuum", ["VACUUM jobs", "SELECT 1"], ids=["vacuumed", "not vacuumed"])
def test_case_31_dead_rows_are_passed_over_once(dsn: str, db: Db, log: Log, vacuum: str) -> None:
    """
    Case 31: while an open transaction keeps dead rows, they cost one pass in spite of our indexes, not several each.

    Whether a vacuum has been in vain since, or none has come; the indexes serve again when the transaction is over.
    """
    for statement in (*INDEXES, "VACUUM ANALYZE jobs"):
        db.execute(statement)
    with watched(dsn) as app, psycopg.connect(dsn) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        for _ in range(2):
            db.execute("UPDATE jobs SET attempts = attempts + 1")
        db.execute(vacuum.encode())
        poll(app, "jobs")
        assert right(app)
        plan = log.plan()
        assert scans(plan) == {"Seq Scan"}
        heap = db.execute("SELECT pg_relation_size('jobs') / 8192").fetchone() or (0,)
        assert pages(plan) == heap[0]
        holder.rollback()
        db.execute("VACUUM jobs")
        poll(app, "jobs")
        assert right(app)
        assert scans(log.plan()) == BY_INDEX


def test_others_would_run_in_parallel_here(dsn: str, log: Log) -> None:
    """The server is set up so that any other session's pass over the table takes a second process."""
    with psycopg.connect(dsn) as other:
        plan = "\n".join(line for (line,) in other.execute("EXPLAIN SELECT count(payload) FROM jobs"))
    assert "Gather" in plan


def test_no_lock_is_stronger_than_a_readers(dsn: str, db: Db, log: Log) -> None:
    """All collectors go on beside a lock that lets nobody in but readers, so they hold up no worker and no vacuum."""
    with watched(dsn) as app, db.transaction():
        db.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
        poll(app)
        assert {state.error for state in states(app).values()} == {""}
        assert right(app)
