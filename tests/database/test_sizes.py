"""The `sizes` collector: rows, out-of-line values and indexes on disk."""

from __future__ import annotations

import os
from typing import Any

import psycopg

from exporter.app import App

from ..world import poll, state, value, watched

Db = psycopg.Connection[Any]

PARTITIONED = """
CREATE TABLE parts (LIKE jobs) PARTITION BY LIST (queue);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
CREATE INDEX ON parts (queue);
INSERT INTO parts SELECT * FROM jobs;
"""


def add_large_jobs(db: Db) -> None:
    """Rows of two queues, some with a payload that no page can hold however well it is compressed."""
    db.cursor().executemany(
        "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (%s, %s, 0, 0, 0)",
        [(queue, os.urandom(size).hex()) for queue in "ab" for size in (100, 500, 20_000) for _ in range(10)],
    )


def told(app: App, table: str) -> dict[str, float | None]:
    """The parts' sizes on the page, in bytes."""
    poll(app, "sizes")
    return {part: value(app, "table_size_bytes", table=table, part=part) for part in ("heap", "toast", "indexes")}


def measured(db: Db, *tables: str) -> dict[str, int]:
    """The same by other size functions of PostgreSQL's manual: toast is what is left of a table without its maps."""
    row = db.execute(
        "SELECT sum(pg_relation_size(t))::int, sum(pg_indexes_size(t))::int, sum(pg_table_size(t)"
        " - pg_relation_size(t) - pg_relation_size(t, 'fsm') - pg_relation_size(t, 'vm'))::int"
        " FROM unnest(%s::regclass[]) AS t",
        [list(tables)],
    ).fetchone()
    return dict(zip(("heap", "indexes", "toast"), row or (), strict=True))


def test_sizes_are_those_of_the_size_functions(dsn: str, db: Db) -> None:
    """Heap, TOAST with its index, and indexes are what the size functions say; an empty table has no heap."""
    with watched(dsn) as app:
        assert told(app, "jobs")["heap"] == 0
        add_large_jobs(db)
        db.execute("VACUUM jobs")
        sizes = told(app, "jobs")
        assert sizes == measured(db, "jobs")
        assert (sizes["toast"] or 0) > 20 * 20_000  # the large payloads, which are hexadecimal and compress to half


def test_a_partitioned_table_is_the_sum_of_its_parts(dsn: str, db: Db) -> None:
    """The sizes of partitions are added up under the table's name."""
    add_large_jobs(db)
    db.execute(PARTITIONED)
    with watched(dsn, table="parts") as app:
        sizes = told(app, "parts")
        assert sizes == measured(db, "parts_a", "parts_rest")
        assert 0 not in sizes.values()


def test_no_table_has_no_size(dsn18: str) -> None:
    """Where there is no table there is no size, and that is no failure of this collector."""
    with watched(dsn18) as app:
        assert told(app, "jobs") == {"heap": None, "toast": None, "indexes": None}
        assert state(app, "sizes").up
