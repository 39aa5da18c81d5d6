"""The `signals` collector: what stands in Laravel's cache, under which keys, and for how long."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.errors import ConfigError
from exporter.sources.cache import NO_TIME
from exporter.status import report

from ..world import add_jobs, poll, settings, state, states, value, watched
from .cached import PAUSED, RESTART, create_cache, forget, put, restart

Db = psycopg.Connection[Any]

QUEUES: dict[str, Any] = {"default": {}, "mail": {}}


@pytest.fixture
def cache(db: Db) -> Db:
    """A database with an empty cache table, as the newest Laravel makes it."""
    create_cache(db)
    return db


@pytest.fixture
def cache18(db18: Db) -> Db:
    """The same on PostgreSQL 18 alone."""
    create_cache(db18)
    return db18


def paused(app: App, *queues: str) -> list[float | None]:
    """Whether these queues are paused, asked anew."""
    poll(app, "signals")
    assert state(app, "signals").error == ""
    return [value(app, "paused", queue=queue) for queue in queues or QUEUES]


def signal(app: App) -> float | None:
    """The restart signal, asked anew."""
    poll(app, "signals")
    return value(app, "restart_signal_timestamp_seconds")


WRITTEN = {  # by real Laravel applications: version, restart, pause
    "8.83": ("8", "laravel_cacheilluminate:queue:restart", None),
    "12.67": (
        "8", "laravel_cache_illuminate:queue:restart", "laravel_cache_illuminate:queue:paused:database:default",
    ),
    "12.67 with the new skeleton": (
        "12.41", "laravel-cache-illuminate:queue:restart", "laravel-cache-illuminate:queue:paused:database:default",
    ),
    "no prefix": ("5.5", "illuminate:queue:restart", "illuminate:queue:paused:database:default"),
}  # fmt: skip


@pytest.mark.parametrize("version", WRITTEN)
def test_what_each_version_writes_is_read(dsn: str, db: Db, version: str) -> None:
    """The keys of Laravel 8 to 13 are found by themselves, in the table that each version makes."""
    table, restart_key, pause_key = WRITTEN[version]
    create_cache(db, table)
    put(db, restart_key, "i:1796058608;")
    if pause_key:
        put(db, pause_key, "b:1;")
    with watched(dsn, queues=QUEUES) as app:
        assert signal(app) == 1_796_058_608
        assert paused(app) == [1 if pause_key else 0, 0]
        assert state(app, "signals").notes == ()


def test_nobody_said_anything(dsn: str, cache: Db) -> None:
    """With an empty cache no queue is paused, and there is no restart signal."""
    with watched(dsn, queues=QUEUES) as app:
        assert paused(app) == [0, 0]
        assert signal(app) is None


def test_a_signal_as_a_plain_number(dsn18: str, cache18: Db) -> None:
    """A number that was not serialised is a signal as well."""
    put(cache18, RESTART, "1796058608")
    with watched(dsn18) as app:
        assert signal(app) == 1_796_058_608


def test_pause_and_resume(dsn: str, cache: Db) -> None:
    """A queue is paused from `queue:pause` on until `queue:resume`; the other one goes on."""
    with watched(dsn, queues=QUEUES) as app:
        assert paused(app) == [0, 0]
        put(cache, PAUSED.format(queue="mail"), "b:1;")
        assert paused(app) == [0, 1]
        forget(cache, PAUSED.format(queue="mail"))
        assert paused(app) == [0, 0]


def test_pause_of_all(dsn: str, cache: Db) -> None:
    """`queue:pause --all` pauses every queue that is shown, found ones included."""
    add_jobs(cache, ("found", None, 5))
    put(cache, "laravel_cache_illuminate:queues:paused", "b:1;")
    with watched(dsn, queues=QUEUES) as app:
        poll(app, "jobs")
        assert paused(app, "default", "mail", "found") == [1, 1, 1]


def test_a_pause_with_an_end(dsn18: str, cache18: Db) -> None:
    """A pause that has not expired holds; a pause or a signal past its end does not exist."""
    key = PAUSED.format(queue="default")
    put(cache18, key, "b:1;", seconds=60)
    restart(cache18)
    with watched(dsn18, queues=QUEUES) as app:
        assert paused(app) == [1, 0]
        for name, written in ((key, "b:1;"), (RESTART, "i:1796058608;")):
            put(cache18, name, written, seconds=0)  # at its very second Laravel takes it for gone
        assert paused(app) == [0, 0]
        assert signal(app) is None


def test_a_pause_is_any_value_but_false(dsn18: str, cache18: Db) -> None:
    """What counts is whether Laravel would take it for true."""
    with watched(dsn18, queues=QUEUES) as app:
        for written, expected in {"b:1;": 1, "b:0;": 0, "i:1;": 1, "1": 1, 's:3:"yes";': 1}.items():
            put(cache18, PAUSED.format(queue="default"), written)
            assert paused(app) == [expected, 0]


def test_a_pause_is_of_a_connection_and_a_queue(dsn: str, cache: Db) -> None:
    """A queue with a connection of its own is paused under that connection's name and no other."""
    queues = {"default": {}, "exports": {"connection": "database-long"}}
    put(cache, PAUSED.format(queue="exports"), "b:1;")
    with watched(dsn, queues=queues) as app:
        assert paused(app, *queues) == [0, 0]
        put(cache, "laravel_cache_illuminate:queue:paused:database-long:exports", "b:1;")
        assert paused(app, *queues) == [0, 1]
        assert value(app, "paused", connection="database-long") == 1


def test_several_prefixes(dsn18: str, cache18: Db) -> None:
    """Where an upgrade left keys under an old prefix the newest signal counts, and any pause."""
    put(cache18, "laravel_cacheilluminate:queue:restart", "i:1700000000;")
    put(cache18, "laravel-cache-illuminate:queue:restart", "i:1796058608;")
    put(cache18, "illuminate:queue:restart", "i:17;")
    put(cache18, "laravel-cache-illuminate:queue:paused:database:mail", "b:0;")
    put(cache18, "laravel_cache_illuminate:queue:paused:database:mail", "b:1;")
    with watched(dsn18, queues=QUEUES) as app:
        assert signal(app) == 1_796_058_608
        assert paused(app) == [0, 1]
        assert state(app, "signals").notes == ()


def test_the_prefix_in_the_settings_is_the_only_one(dsn18: str, cache18: Db) -> None:
    """With a prefix in the settings, an empty one included, keys under another are none of ours."""
    put(cache18, RESTART, "i:1700000000;")
    put(cache18, PAUSED.format(queue="mail"), "b:1;")
    for prefix in ("", "shop_cache_", "50%_{x}'\"\\", "кэш:"):
        with watched(dsn18, queues=QUEUES, cache={"prefix": prefix}) as app:
            assert signal(app) is None
            put(cache18, f"{prefix}illuminate:queue:restart", "i:1796058608;")
            put(cache18, f"{prefix}illuminate:queue:paused:database:default", "b:1;")
            assert signal(app) == 1_796_058_608
            assert paused(app) == [1, 0]


@pytest.mark.parametrize("prefix", ["a\0b", "\ud800", "x" * 256])
def test_a_prefix_that_no_key_can_have(prefix: str) -> None:
    """A prefix that PostgreSQL could not hold is refused with its path."""
    with pytest.raises(ConfigError, match=r"connections\.database\.cache\.prefix: expected a prefix"):
        settings("host=db", cache={"prefix": prefix})


HOSTILE = (
    "a'b", 'a"b', "a\\b", "a\nb", "{queue}", "%s %(x)s", "a:b:c", ":", "{a,b}", "NULL", "очередь-🚀", " mail ", "",
    "'; DROP TABLE cache; --", "\\'); DROP TABLE cache; --", "x" * 255,
)  # fmt: skip


def test_hostile_names(dsn: str, cache: Db) -> None:
    """Each of these queues is found, and is paused by its own key alone."""
    add_jobs(cache, *[(name, None, 5) for name in HOSTILE])
    with watched(dsn) as app:
        poll(app, "jobs")
        for name in HOSTILE[:-1]:  # no key is long enough for the last one
            put(cache, PAUSED.format(queue=name), "b:1;")
            assert [queue for queue, is_paused in zip(HOSTILE, paused(app, *HOSTILE), strict=True) if is_paused] == [
                name
            ]
            forget(cache, PAUSED.format(queue=name))
        assert paused(app, *HOSTILE) == [0] * len(HOSTILE)


NO_TIMES = (
    "", "i:0;", "i:1104537599;", "i:1796058608000;", "9" * 30, "i:-1796058608;", 's:10:"1796058608";', "b:1;", "N;",
    "i:1796058608", "1796058608;", "1e9", " 1796058608", "١٧٩٦٠٥٨٦٠٨", "x" * 100_000,
)  # fmt: skip


def test_a_signal_that_is_no_time(dsn18: str, cache18: Db) -> None:
    """A signal before 2005, in the far future, or that is no number is absent with a note; pauses are still read."""
    put(cache18, PAUSED.format(queue="mail"), "b:1;")
    with watched(dsn18, queues=QUEUES) as app:
        for written in NO_TIMES:
            put(cache18, RESTART, written)
            assert signal(app) is None, written
            assert paused(app) == [0, 1]
            assert state(app, "signals").notes == (NO_TIME,)
        put(cache18, RESTART, "i:1796058608;")
        assert signal(app) == 1_796_058_608
        assert state(app, "signals").notes == ()


def test_case_25_a_cache_that_comes_later(dsn: str, db: Db) -> None:
    """Case 25: without its table `signals` alone says undefined_table and shows nothing; it heals with the table."""
    db.execute("DROP TABLE IF EXISTS cache")
    with watched(dsn, queues=QUEUES) as app:
        poll(app)
        assert state(app, "signals").reason == "undefined_table"
        assert "public.cache" in state(app, "signals").error
        assert state(app, "jobs").up
        assert state(app, "activity").up
        assert value(app, "paused", queue="mail") is None
        create_cache(db)
        assert paused(app) == [0, 0]


OTHER_COLUMNS = {
    "no expiration": "key text, value text",
    "no key": "name text, value text, expiration int",
    "a value that is a number": "key text, value int, expiration int",
    "an expiration that is a date": "key text, value text, expiration timestamptz",
    "a key that is binary": "key bytea, value text, expiration int",
}


def test_a_table_that_is_no_cache_is_malformed(dsn18: str, db18: Db) -> None:
    """A table with other columns than Laravel's fails by name, alone."""
    for name, columns in OTHER_COLUMNS.items():
        db18.execute(f'CREATE TABLE "{name}" ({columns})'.encode())
        with watched(dsn18, queues=QUEUES, cache={"table": name}) as app:
            poll(app)
            assert state(app, "signals").reason == "malformed", name
            assert state(app, "jobs").up


def test_nulls_are_not_there(dsn18: str, db18: Db) -> None:
    """A table of somebody's own with nulls in it holds no pause and no signal there."""
    db18.execute("CREATE TABLE other (key text, value text, expiration int)")
    db18.execute(
        "INSERT INTO other VALUES (NULL, 'b:1;', 2000000000), (%s, NULL, 2000000000), (%s, 'b:1;', NULL)",
        (RESTART, PAUSED.format(queue="mail")),
    )
    with watched(dsn18, queues=QUEUES, cache={"table": "other"}) as app:
        assert paused(app) == [0, 0]
        assert signal(app) is None


@pytest.mark.parametrize(("setting", "collector"), [("cache", "signals"), ("failed_table", "failed_jobs")])
def test_a_table_set_to_null_is_not_asked_for(dsn18: str, db18: Db, setting: str, collector: str) -> None:
    """A collector whose table is set to null is not there: no state, no line, no failure, though the table is not."""
    db18.execute("DROP TABLE IF EXISTS cache, failed_jobs")
    off: dict[str, Any] = {"cache": None, "failed_table": None}
    with watched(dsn18, queues=QUEUES, **off) as app:
        poll(app)
        assert collector not in states(app)
        assert {state.error for state in states(app).values()} == {""}
        assert value(app, "paused", queue="mail") is None
    del off[setting]
    with watched(dsn18, queues=QUEUES, **off) as app:
        assert collector in states(app)


def test_a_paused_queue_is_over_its_limit(dsn18: str, cache18: Db) -> None:
    """`status` says which queue is paused, and how old its oldest job is meanwhile."""
    add_jobs(cache18, ("mail", None, 305))
    put(cache18, PAUSED.format(queue="mail"), "b:1;")
    with watched(dsn18, queues=QUEUES) as app:
        poll(app)
        found = report(app.board, ("LaravelQueuePausedWithBacklog",)).findings
        (finding,) = [finding for finding in found if finding.says.startswith("paused")]
        assert (finding.where, finding.over) == ("database/mail", True)
        assert finding.alert == "LaravelQueuePausedWithBacklog"
        assert finding.says.startswith("paused, oldest job 5m ")
