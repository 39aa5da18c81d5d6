"""The `jobs` collector against plain SQL, on a thousand random tables."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from random import Random
from typing import Any

import psycopg

from exporter.app import App
from exporter.model import Sample
from exporter.queues import EARLIEST, TEN_YEARS
from exporter.timing import Deadline

from ..world import watched

Db = psycopg.Connection[Any]
Numbers = dict[str, list[float]]  # by queue, in the order of NUMBERS

TABLES = 1000
ROUND = 50  # tables that are looked at with the same settings
IN_PARTS = 10  # one in so many is looked at in the partitioned layouts too, which take longest
NAMES = ("", "default", "default ", " default", "Default", "a'b", 'a"b', "a%sb%", "{jobs}", "a\\b\nc", "é🚀", "q" * 255)
LARGEST = 2**31 - 1  # 2038-01-19: the last moment that Laravel's columns can hold

# The same rows stand in each table: one without our indexes; one with both; one in parts by
# queue; one in parts by time, with wider columns and the other index for reserved rows.
LAYOUTS = ("jobs", "indexed", "by_queue", "by_time")
CREATE = """
CREATE TABLE indexed (LIKE jobs INCLUDING ALL);
CREATE INDEX ON indexed (queue, available_at) WHERE reserved_at IS NULL;
CREATE INDEX ON indexed (queue, reserved_at) WHERE reserved_at IS NOT NULL;

CREATE TABLE by_queue (LIKE jobs) PARTITION BY LIST (queue);
CREATE TABLE by_queue_default PARTITION OF by_queue FOR VALUES IN ('default', 'Default');
CREATE TABLE by_queue_others PARTITION OF by_queue DEFAULT;
CREATE INDEX ON by_queue (queue, available_at) WHERE reserved_at IS NULL;
CREATE INDEX ON by_queue (queue, reserved_at) WHERE reserved_at IS NOT NULL;

CREATE TABLE wide (LIKE jobs);
ALTER TABLE wide ALTER reserved_at TYPE bigint, ALTER available_at TYPE bigint;
CREATE TABLE by_time (LIKE wide) PARTITION BY RANGE (available_at);
CREATE TABLE by_time_past PARTITION OF by_time FOR VALUES FROM (MINVALUE) TO (1700000000);
CREATE TABLE by_time_later PARTITION OF by_time FOR VALUES FROM (1700000000) TO (MAXVALUE);
CREATE INDEX ON by_time (queue, available_at) WHERE reserved_at IS NULL;
CREATE INDEX ON by_time (reserved_at) WHERE reserved_at IS NOT NULL;
"""

NUMBERS = (
    ("jobs", "ready"),
    ("jobs", "delayed"),
    ("jobs", "reserved"),
    ("jobs", "expired"),
    ("oldest_job_age_seconds",),
    ("oldest_reserved_job_age_seconds",),
    ("implausible_jobs",),
)
ORACLE = f"""
WITH clock AS (SELECT %(now)s::bigint AS now),
waiting AS (SELECT queue, now - available_at AS age, available_at BETWEEN {EARLIEST} AND now + {TEN_YEARS} AS plausible
              FROM jobs, clock WHERE reserved_at IS NULL),
held AS (SELECT queue, now - reserved_at AS age, reserved_at BETWEEN {EARLIEST} AND now + {TEN_YEARS} AS plausible
           FROM jobs, clock WHERE reserved_at IS NOT NULL)
SELECT queue,
       (SELECT count(*) FROM waiting w WHERE w.queue = q.queue AND age >= 0),
       (SELECT count(*) FROM waiting w WHERE w.queue = q.queue AND age < 0),
       (SELECT count(*) FROM held h WHERE h.queue = q.queue AND age < retry_after),
       (SELECT count(*) FROM held h WHERE h.queue = q.queue AND age >= retry_after),
       greatest(0, (SELECT max(age) FROM waiting w WHERE w.queue = q.queue AND plausible),
                   (SELECT max(age) - retry_after FROM held h WHERE h.queue = q.queue AND plausible)),
       greatest(0, (SELECT max(age) FROM held h WHERE h.queue = q.queue AND plausible)),
       (SELECT count(*) FROM waiting w WHERE w.queue = q.queue AND NOT plausible)
     + (SELECT count(*) FROM held h WHERE h.queue = q.queue AND NOT plausible)
  FROM unnest(%(queues)s::text[], %(retry_after)s::int[]) AS q (queue, retry_after)
"""


def moment(chance: Random, now: int, retry_after: int) -> int:
    """A time as it may stand in a row: near now, where its meaning changes, or one that cannot be."""
    edges = (now, now - retry_after, EARLIEST, now + TEN_YEARS)
    beyond = (0, -1, -LARGEST - 1, LARGEST)
    at = chance.choice((now + chance.randint(-400, 400), chance.choice(edges) + chance.randint(-2, 2)))
    return chance.choice(beyond) if chance.random() < 0.1 else min(at, LARGEST)


def fill(db: Db, chance: Random, retry_after: dict[str, int], tables: Iterable[str]) -> set[str]:
    """Put the same random rows into these tables; answers with the queues that have some."""
    now, names = int(time.time()), chance.sample(NAMES, chance.randint(1, 5))
    queues = [chance.choice(names) for _ in range(chance.choice((0, 1, 5, 40)))]
    held = [moment(chance, now, retry_after[q]) if chance.random() < 0.4 else None for q in queues]
    available = [moment(chance, now, retry_after[q]) for q in queues]
    with db.transaction():
        for table in tables:
            db.execute(f"DELETE FROM {table}")
            db.execute(
                f"INSERT INTO {table} SELECT row_number() OVER (), queue, '{{}}', 0, held, available, 0"
                " FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS r (queue, held, available)",
                (queues, held, available),
            )
    for table in set(tables) - {"jobs"}:
        db.execute(f"VACUUM {table}".encode())  # before it the indexes are not used
    return set(queues)


def readable_by_index(db: Db) -> bool:
    """Whether the table with the indexes has pages, and all transactions see the same in them."""
    return (
        db.execute(
            "SELECT FROM pg_class WHERE relname = 'indexed' AND relpages > 0 AND relallvisible = relpages"
        ).rowcount
        == 1
    )


def right(db: Db, now: int, retry_after: dict[str, int]) -> Numbers:
    """What plain SQL says of every queue at the moment `now`."""
    values = {"now": now, "queues": list(retry_after), "retry_after": list(retry_after.values())}
    return {queue: numbers for queue, *numbers in db.execute(ORACLE, values)}


def told(app: App) -> tuple[int, Numbers]:
    """What the collector says of the queues it shows, and its moment."""
    jobs = app.pollers[0].source.collectors[0]
    raw = jobs.fetch(Deadline(time.monotonic() + 10))
    values = {
        (sample.metric.name.removeprefix("laravel_queue_"), *sample.labels[1:]): sample.value
        for sample in jobs.measure(raw, time.time())
        if isinstance(sample, Sample)
    }
    queues = [labels[0] for metric, *labels in values if metric == "implausible_jobs"]
    now = raw.rows[0]["now"] if raw.rows else 0
    return now, {queue: [values[metric, queue, *state] for metric, *state in NUMBERS] for queue in queues}


def test_a_thousand_random_tables(dsn: str, db: Db) -> None:
    """On a thousand random tables, with our indexes and without, every number is what plain SQL says of the rows."""
    db.execute(CREATE)
    from_indexes = 0
    for seed in range(TABLES // ROUND):
        chance = Random(seed)
        named = {name: chance.randint(1, 300) for name in NAMES[1:] if chance.random() < 0.3}
        default = chance.randint(1, 300)
        retry_after = {name: named.get(name, default) for name in NAMES}
        queues = {name: {"retry_after": seconds} for name, seconds in named.items()}
        with ExitStack() as stack:
            apps = {
                table: stack.enter_context(watched(dsn, table=table, retry_after=default, queues=queues))
                for table in LAYOUTS
            }
            for number in range(ROUND):
                tables = LAYOUTS if number % IN_PARTS == 0 else LAYOUTS[:2]
                present, oracle = fill(db, chance, retry_after, tables), dict[int, Numbers]()
                for table in tables:
                    now, numbers = told(apps[table])
                    oracle[now] = oracle.get(now) or right(db, now, retry_after)
                    assert numbers == {queue: oracle[now][queue] for queue in numbers}, (seed, number, table)
                    assert present | named.keys() <= numbers.keys(), (seed, number, table)
                from_indexes += readable_by_index(db)
    assert from_indexes > TABLES / 2
