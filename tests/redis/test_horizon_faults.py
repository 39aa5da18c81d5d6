"""What cannot be read of Horizon's keys: that part alone fails, by the name of its key, and the rest stands."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from exporter.demo.redis import Redis

from ..world import value
from .test_signals import supervise
from .test_throughput import HORIZON, NOW, fail
from .world import errors, look, now, state_of, watched

SETTINGS: dict[str, Any] = {"horizon": {"prefix": HORIZON}, "queues": {"default": None, "mail": None}}
OF_QUEUES = ("horizon_jobs_processed_total", "horizon_job_runtime_seconds")


@pytest.fixture
def horizon(client: redis.Redis) -> redis.Redis:
    """A Horizon that has something of everything."""
    supervise(client, "vm-a:s1", "running")
    client.zadd(f"{HORIZON}supervisors", {"vm-old:s1": 1})
    for queue in ("default", "mail"):
        client.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:{queue}")
        client.hset(f"{HORIZON}queue:{queue}", mapping={"throughput": 5, "runtime": "100"})
    client.set(f"{HORIZON}last_snapshot_at", now(client))
    for n in range(2):
        fail(client, f"id-{n}", now(client))
    return client


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("queue:mail", [(name, "mail") for name in OF_QUEUES]),
        ("snapshot:queue:mail", [(name, "mail") for name in OF_QUEUES]),
        ("measured_queues", [(name, queue) for name in OF_QUEUES for queue in ("default", "mail")]),
        ("failed_jobs", [("failed_jobs", "default"), ("failed_jobs", "mail")]),
        ("last_snapshot_at", [("horizon_job_runtime_seconds", "default"), ("horizon_job_runtime_seconds", "mail")]),
        ("supervisor:vm-old:s1", []),
        ("id-1", []),
    ],
)
def test_a_key_of_a_wrong_type(server: Redis, horizon: redis.Redis, key: str, gone: list[tuple[str, str]]) -> None:
    """It is named, what depends on it is absent, all else is there; it heals alone, and nothing is counted twice."""
    names = (*OF_QUEUES, "failed_jobs", "horizon_processes")
    with watched(server.url(), **SETTINGS) as app:
        kept = horizon.dump(f"{HORIZON}{key}")
        horizon.delete(f"{HORIZON}{key}")
        (horizon.rpush if key == "last_snapshot_at" else horizon.set)(f"{HORIZON}{key}", "x")
        look(app, "horizon")
        state = state_of(app, "horizon")
        assert (state.up, {*errors(app, "horizon")}) == (True, {"wrong_type"})
        assert all(f"key '{HORIZON}{key}'" in note for note in state.notes if "wrong_type" in note)
        absent = [
            (name, queue) for name in names for queue in ("default", "mail") if value(app, name, queue=queue) is None
        ]
        assert sorted(absent) == sorted(gone)
        horizon.delete(f"{HORIZON}{key}")
        if kept:
            horizon.restore(f"{HORIZON}{key}", 0, kept)
        look(app, "horizon")
        assert not state_of(app, "horizon").notes
        assert [value(app, names[0], queue=queue) for queue in ("default", "mail")] == [0, 0]
        assert value(app, "failed_jobs", queue="default") == 2
        assert value(app, "failed_jobs_total", queue="default", job_class="App\\Jobs\\A") == 0


def test_case_46_who_is_there_is_not_known(server: Redis, client: redis.Redis) -> None:
    """Case 46: a string where the names of the masters are fails that collector whole, by name; it heals alone."""
    client.set(f"{HORIZON}masters", "x")
    with watched(server.url(), **SETTINGS) as app:
        look(app)
        assert state_of(app, "horizon").reason == "wrong_type"
        assert f"key '{HORIZON}masters'" in state_of(app, "horizon").error
        assert state_of(app, "queues").up
        assert state_of(app, "signals").up
        client.delete(f"{HORIZON}masters")
        client.set(f"{HORIZON}last_snapshot_at", NOW)
        look(app)
        assert state_of(app, "horizon").up
        assert value(app, "horizon_masters", state="running") == 0


def test_numbers_that_are_none_are_nothing(server: Redis, client: redis.Redis) -> None:
    """Whatever text stands where Horizon keeps a number, the collector goes on."""
    client.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:default")
    client.set(f"{HORIZON}last_snapshot_at", "soon")
    client.hset(f"{HORIZON}queue:default", mapping={"throughput": "many", "runtime": "nan"})
    for number, text in enumerate(("", "{", '{"throughput":"inf","runtime":[]}', "[]", "\\xff")):
        client.zadd(f"{HORIZON}snapshot:queue:default", {text: NOW + number})
    client.zadd(f"{HORIZON}failed_jobs", {"for-ever": "-inf"})
    with watched(server.url(), horizon={"prefix": HORIZON}) as app:
        for _ in range(2):
            look(app, "horizon")
            assert state_of(app, "horizon").error == ""
            assert value(app, "horizon_jobs_processed_total", queue="default") == 0
            assert value(app, "horizon_snapshot_age_seconds") is None


def test_a_runtime_that_is_no_number_is_not_shown(server: Redis, horizon: redis.Redis) -> None:
    """Neither as NaN nor as 0: nobody knows it."""
    horizon.hset(f"{HORIZON}queue:mail", "runtime", "nan")
    with watched(server.url(), **SETTINGS) as app:
        look(app, "horizon")
        assert value(app, "horizon_job_runtime_seconds", queue="mail") is None
        assert value(app, "horizon_job_runtime_seconds", queue="default") == 0.1


@pytest.mark.parametrize(
    "hash_",
    [
        {"options": "[" * 100_000},
        {"options": '{"queue":["a"],"timeout":{"a":1}}'},
        {"options": '{"queue":"' + "q" * 256 + '"}'},
        {"processes": '{"redis:default":-5}'},
        {"processes": '{"redis:default":true,"redis:mail":' + "9" * 400 + "}"},
        {"processes": '{"redis:' + "q" * 256 + '":1}'},
        {"processes": "[" * 100_000},
    ],
    ids=map(str, range(7)),
)
def test_a_supervisor_that_says_nonsense(server: Redis, client: redis.Redis, hash_: dict[str, str]) -> None:
    """It is alive, and what it says counts for nothing: no negative number, no endless label, no failure."""
    client.zadd(f"{HORIZON}supervisors", {"vm-a:s1": 1})
    for name, text in {"status": "running", **hash_}.items():
        client.hset(f"{HORIZON}supervisor:vm-a:s1", name, text)
    with watched(server.url(), **SETTINGS) as app:
        look(app)
        assert not [state_of(app, name).error for name in ("horizon", "signals") if not state_of(app, name).up]
        assert value(app, "horizon_supervisors", state="running") == 1
        assert [value(app, "horizon_processes", queue=queue) for queue in ("default", "mail")] == [0, 0]
        assert "q" * 256 not in app.exposition.page("text").decode()


def test_an_age_is_never_negative(server: Redis, client: redis.Redis) -> None:
    """A snapshot by a clock that is ahead was taken just now."""
    client.set(f"{HORIZON}last_snapshot_at", now(client) + 100)
    with watched(server.url(), **SETTINGS) as app:
        look(app, "horizon")
        assert value(app, "horizon_snapshot_age_seconds") == 0


def test_a_job_whose_class_is_none(server: Redis, client: redis.Redis) -> None:
    """What is no class of PHP is no label: such a job is `other`, and so is one that Horizon has forgotten."""
    with watched(server.url(), **SETTINGS) as app:
        client.set(f"{HORIZON}last_snapshot_at", 1)
        look(app, "horizon")
        fail(client, "id-1", now(client), name="Order 4711 of jane@example.com")
        client.zadd(f"{HORIZON}failed_jobs", {"forgotten": -now(client)})
        look(app, "horizon")
        assert value(app, "failed_jobs_total", queue="default", job_class="other") == 1
        assert value(app, "failed_jobs", queue="other") == 1
        assert "jane" not in app.exposition.page("text").decode()


def test_a_name_that_is_too_long_is_shown_nowhere(server: Redis, client: redis.Redis) -> None:
    """Neither a queue that was measured, nor one of a failed job, which is `other`."""
    client.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:{'q' * 256}")
    fail(client, "id-1", now(client), queue="q" * 256)
    with watched(server.url(), **SETTINGS) as app:
        look(app, "horizon")
        assert value(app, "failed_jobs", queue="other") == 1
        assert "q" * 256 not in app.exposition.page("text").decode()


def test_what_cannot_be_read_any_more_is_not_shown_as_new(server: Redis, horizon: redis.Redis) -> None:
    """The counters of a look before are absent at once, and go on from there later."""
    with watched(server.url(), **SETTINGS) as app:
        look(app, "horizon")
        horizon.rename(f"{HORIZON}measured_queues", "aside")
        horizon.set(f"{HORIZON}measured_queues", "x")
        look(app, "horizon")
        assert value(app, OF_QUEUES[0], queue="default") is None
        horizon.rename("aside", f"{HORIZON}measured_queues")
        horizon.hincrby(f"{HORIZON}queue:default", "throughput", 3)
        look(app, "horizon")
        assert value(app, OF_QUEUES[0], queue="default") == 3


def test_a_new_series_is_born_at_zero(server: Redis, horizon: redis.Redis) -> None:
    """Of a queue or a class that comes later, so that increase() sees what it has done by then."""
    with watched(server.url(), **SETTINGS) as app:
        look(app, "horizon")
        horizon.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:new")
        horizon.hset(f"{HORIZON}queue:new", mapping={"throughput": 40, "runtime": "1"})
        fail(horizon, "id-9", now(horizon), name="App\\Jobs\\New")
        shown = []
        for _ in range(2):
            look(app, "horizon")
            failed = value(app, "failed_jobs_total", queue="default", job_class="App\\Jobs\\New")
            shown.append((value(app, OF_QUEUES[0], queue="new"), failed))
        assert shown == [(0, 0), (40, 1)]
