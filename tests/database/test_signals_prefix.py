"""The `signals` collector where nobody said how the cache's keys begin."""

from __future__ import annotations

from typing import Any

import psycopg

from exporter.app import App
from exporter.sources.database.signals import OTHER_PREFIX

from ..world import poll, state, value, watched
from .cached import create_cache, put

Db = psycopg.Connection[Any]

POOLS = {"default": {"application_name": "worker-*", "queues": ["default"]}}
SHOP = "shop_cache_illuminate:queue:"  # of an application whose APP_NAME is Shop


def shown(app: App) -> list[float | None]:
    """Whether the queue is paused and how many workers are outdated, asked anew."""
    poll(app, "signals")
    assert state(app, "signals").error == ""
    return [value(app, "paused", queue="default"), value(app, "workers_outdated", pool="default")]


def test_cache_of_another_application_name_is_unknown_and_not_zero(dsn18: str, db18: Db) -> None:
    """With other keys than the usual ones, and no prefix set, what is paused is not known: absent, and told."""
    create_cache(db18)
    put(db18, "shop_cache_greeting", 's:2:"hi";')
    put(db18, f"{SHOP}paused:database:default", "b:1;")
    with watched(dsn18, queues={"default": {}}, pools=POOLS) as app:
        assert shown(app) == [None, None]
        assert state(app, "signals").notes == (OTHER_PREFIX,)
    with watched(dsn18, queues={"default": {}}, pools=POOLS, cache={"prefix": "shop_cache_"}) as app:
        assert shown(app) == [1, 0]
        assert state(app, "signals").notes == ()


def test_nothing_told_is_zero_where_the_keys_begin_as_usual(dsn18: str, db18: Db) -> None:
    """An empty cache, and one whose other keys have a usual prefix, pause nothing."""
    create_cache(db18)
    with watched(dsn18, queues={"default": {}}, pools=POOLS) as app:
        assert shown(app) == [0, 0]
        put(db18, "laravel-cache-greeting", 's:2:"hi";')
        put(db18, "written_by_somebody_else", "1")
        assert shown(app) == [0, 0]
        assert state(app, "signals").notes == ()


def test_prefix_that_was_set_is_believed(dsn18: str, db18: Db) -> None:
    """With a prefix in the settings, the empty one as well, a cache full of other keys is no reason to doubt it."""
    create_cache(db18)
    put(db18, "shop_cache_greeting", 's:2:"hi";')
    for prefix in ("", "other_"):
        with watched(dsn18, queues={"default": {}}, pools=POOLS, cache={"prefix": prefix}) as app:
            assert shown(app) == [0, 0]


def test_key_without_any_prefix_is_usual(dsn18: str, db18: Db) -> None:
    """The framework's own keys without a prefix are what an application with an empty CACHE_PREFIX has."""
    create_cache(db18)
    put(db18, "illuminate:foundation:down", "b:1;")
    with watched(dsn18, queues={"default": {}}, pools=POOLS) as app:
        assert shown(app) == [0, 0]
