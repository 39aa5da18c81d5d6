"""Laravel's cache table as its versions make it, and what they write into it."""

from __future__ import annotations

from typing import Any

import psycopg

Db = psycopg.Connection[Any]

COLUMNS = '"key" varchar(255) NOT NULL {key}, "value" text NOT NULL, "expiration" {expiration} NOT NULL'
INDEX = ";CREATE INDEX ON {table} (expiration)"
TABLES = {  # by the version whose migration makes them so
    "5.5": f"CREATE TABLE {{table}} ({COLUMNS.format(key='UNIQUE', expiration='integer')})",
    "8": f"CREATE TABLE {{table}} ({COLUMNS.format(key='PRIMARY KEY', expiration='integer')})",
    "12.41": f"CREATE TABLE {{table}} ({COLUMNS.format(key='PRIMARY KEY', expiration='integer')}){INDEX}",
    "13": f"CREATE TABLE {{table}} ({COLUMNS.format(key='PRIMARY KEY', expiration='bigint')}){INDEX}",
}
VIEW = """
CREATE VIEW public.queue_signals WITH (security_barrier) AS
    SELECT key, value, expiration FROM public.cache WHERE key LIKE '%illuminate:queue%'
"""
FOREVER = 315_360_000  # seconds, as Laravel counts
RESTART = "laravel_cache_illuminate:queue:restart"
PAUSED = "laravel_cache_illuminate:queue:paused:database:{queue}"
CLOCK = "SELECT floor(extract(epoch FROM clock_timestamp()))::int"


def create_cache(db: Db, version: str = "13", table: str = "cache") -> None:
    """The cache table; `table` is spelled as in SQL."""
    db.execute(f"DROP TABLE IF EXISTS {table}".encode())
    db.execute(TABLES[version].format(table=table).encode())


def put(db: Db, key: str, value: str, seconds: int = FOREVER, table: str = "cache") -> None:
    """An entry that expires in so many seconds, by the database's clock."""
    db.execute(
        f"INSERT INTO {table} AS old VALUES (%s, %s, ({CLOCK}) + %s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expiration = excluded.expiration",
        (key, value, seconds),
    )


def forget(db: Db, key: str) -> None:
    """Remove an entry, as `Cache::forget` does."""
    db.execute("DELETE FROM cache WHERE key = %s", [key])


def clock(db: Db) -> int:
    """The database's clock, in whole seconds as PHP counts."""
    return int(db.execute(CLOCK.encode()).fetchall()[0][0])


def restart(db: Db, ahead: int = 0) -> int:
    """`queue:restart` on a machine whose clock is ahead of the database's by so many seconds. Returns the signal."""
    signal = clock(db) + ahead
    put(db, RESTART, f"i:{signal};")
    return signal
