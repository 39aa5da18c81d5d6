"""What the `signals` collector costs: a few index entries for each key, however large the cache is."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.demo.postgres import Postgres
from exporter.queues import PAUSED
from exporter.sources.cache import RESTART_SIGNAL, USUAL

from ..world import add_jobs, poll, state, value, watched
from . import cached
from .cached import VIEW, create_cache, put
from .test_cost import LOGGED, Log, Node, nodes, pages

Db = psycopg.Connection[Any]

QUEUES = [f"queue-{number:03}" for number in range(130)]
SHOWN = 100
BY_KEY = {("Index Scan", "cache_pkey"), ("Bitmap Index Scan", "cache_pkey"), ("Bitmap Heap Scan", "cache")}
DESCENT = 4  # pages at most from the root of the index to an entry, and the row


@pytest.fixture
def log(server: Postgres, db: Db) -> Log:
    """The server's log, with the plan of every statement in this database."""
    for name, setting in LOGGED.items():
        db.execute(f"ALTER DATABASE {db.info.dbname} SET {name} = '{setting}'".encode())
    return Log(server.log)


def fill(db: Db, rows: int, width: int) -> None:
    """A cache of so many entries that are none of ours, one paused queue, and a restart signal."""
    create_cache(db)
    db.execute(
        "INSERT INTO cache SELECT 'laravel_cache_user:' || md5(n::text), repeat('x', %s), 2000000000"
        " FROM generate_series(1, %s) AS n",
        [width, rows],
    )
    put(db, cached.PAUSED.format(queue=QUEUES[7]), "b:1;")
    put(db, cached.RESTART, "i:1796058608;")
    db.execute("VACUUM ANALYZE cache")


def plan(app: App, log: Log) -> Node:
    """How the cache was read, with the right result."""
    poll(app, "signals")
    assert state(app, "signals").error == ""
    said = state(app, "signals").samples
    assert [sample.labels for sample in said if sample.metric is PAUSED and sample.value] == [("database", QUEUES[7])]
    assert [sample.value for sample in said if sample.metric is RESTART_SIGNAL] == [1_796_058_608]
    return log.plan()


def reads(plan: Node) -> set[tuple[str, str]]:
    """Each way in which a table or an index was read, and which."""
    return {
        (node["Node Type"], node.get("Index Name") or node["Relation Name"])
        for node in nodes(plan)
        if "Index Name" in node or "Relation Name" in node
    }


@pytest.mark.parametrize(("rows", "width"), [(200_000, 300), (20_000, 1)], ids=["huge", "small"])
def test_keys_are_looked_up_in_the_primary_key_alone(dsn: str, db: Db, log: Log, rows: int, width: int) -> None:
    """
    No poll reads a cache from end to end, nor its index on the expiry; through the view neither.

    Neither a huge one, nor a small one of which the planner thinks that it would be cheaper.
    """
    fill(db, rows, width)
    db.execute(VIEW)
    add_jobs(db, *[(queue, None, 5) for queue in QUEUES[:SHOWN]])
    keys = (SHOWN + 2) * len(USUAL)
    for table in ("cache", "queue_signals"):
        with watched(dsn, cache={"table": table}) as app:
            poll(app, "jobs")
            found = plan(app, log)
        assert reads(found) <= BY_KEY
        assert pages(found) < DESCENT * keys
        assert not {"Gather", "Gather Merge"} & {node["Node Type"] for node in nodes(found)}


def test_the_number_of_keys_is_bounded(dsn: str, db: Db, log: Log) -> None:
    """With more queues than are shown it is one question, for a hundred's keys; `other` has no pause of its own."""
    create_cache(db)
    add_jobs(db, *[(queue, None, 5) for queue in QUEUES])
    put(db, cached.PAUSED.format(queue="other"), "b:1;")
    put(db, cached.RESTART, "i:1796058608;")  # so that there is no doubt about the prefix
    with watched(dsn) as app:
        poll(app, "jobs")
        poll(app, "signals")
        asked = "".join(node.get("Index Cond", "") for node in nodes(log.plan()))
        assert asked.count("illuminate:") == (SHOWN + 2) * len(USUAL)
        assert len([sample for sample in state(app, "signals").samples if sample.metric is PAUSED]) == SHOWN
        assert value(app, "paused", queue="other") is None
        assert value(app, "jobs", queue="other", state="ready") == len(QUEUES) - SHOWN
