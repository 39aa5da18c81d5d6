"""Settings of a Redis as people write them, what is wrong with them, and which secrets are in them."""

from __future__ import annotations

from typing import Any

import pytest

from exporter import config
from exporter.errors import ConfigError
from exporter.logs import Secrets
from exporter.sources.redis.settings import Redis
from exporter.sources.resp.target import Target

PATH = "connections.redis"


def given(**changes: Any) -> Redis:
    """The settings of one connection. Raises `ConfigError`."""
    connection = {"driver": "redis", "prefix": "laravel_database_"} | changes
    found = config.parse({"connections": {"redis": connection}}).connections["redis"]
    assert isinstance(found, Redis)
    return found


def complaint(**changes: Any) -> str:
    """The one complaint about these settings."""
    with pytest.raises(ConfigError) as refused:
        given(**changes)
    (problem,) = refused.value.problems
    return problem


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("redis://cache.internal", Target("cache.internal", 6379, "", 0, None, None)),
        ("redis://cache.internal:6380/3", Target("cache.internal", 6380, "", 3, None, None)),
        ("redis://:p%40ss@h/", Target("h", 6379, "", 0, None, "p@ss")),
        ("redis://us%3Aer:pw@[::1]:1/0", Target("::1", 1, "", 0, "us:er", "pw")),
        ("rediss://h", Target("h", 6379, "", 0, None, None, tls=True)),
        ("unix:///run/redis.sock?db=2", Target("", 6379, "/run/redis.sock", 2, None, None)),
        ("unix://user:pw@/run/redis.sock", Target("", 6379, "/run/redis.sock", 0, "user", "pw")),
        ("redis://", Target("127.0.0.1", 6379, "", 0, None, None)),
    ],
)
def test_urls(url: str, target: Target) -> None:
    """Each part of a URL arrives where it belongs."""
    assert given(url=url).target() == target


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "h:6379",
        "redis://u:a@b@h",
        "redis://u:a/b@h",
        "redis://u:a#b@h",
        "redis://h/x",
        "redis://h?db=1",
        "",
    ],
)
def test_case_17_what_is_no_url_is_refused(url: str) -> None:
    """Case 17: a raw password in a URL is refused with a hint, and nothing of the URL is repeated."""
    said = complaint(url=url)
    assert said.startswith(f"{PATH}.url: expected ")
    assert "a@b" not in said


def test_ports_and_durations() -> None:
    """What cannot be is refused by name."""
    assert complaint(url="redis://h:70000") == f"{PATH}.url: expected a port from 1 to 65535"
    assert complaint(interval="10ms").startswith(f"{PATH}.interval: expected 0.1s or more")
    assert complaint(queues={"other": None}).startswith(f"{PATH}.queues.other: expected another name")
    assert complaint(horizon={}) == f"{PATH}.horizon.prefix: is missing"
    assert complaint(colour="red") == f"{PATH}.colour: is not a known setting"


def test_the_prefix_is_needed() -> None:
    """A prefix that was guessed wrong would say zero for ever."""
    with pytest.raises(ConfigError) as refused:
        config.parse({"connections": {"redis": {"driver": "redis"}}})
    assert refused.value.problems == (f"{PATH}.prefix: is missing",)


@pytest.mark.parametrize("queues", [{}, None])
def test_without_a_queue_it_is_the_default_one(queues: None) -> None:
    """Whoever names no queue has Laravel's."""
    assert [*given(queues=queues).queues] == ["default"]
    assert [*given().queues] == ["default"]


def test_settings_of_a_queue() -> None:
    """A queue's own settings come first; null for retry_after means never."""
    settings = given(queues={"a": {"retry_after": 10, "target_wait": 5, "timeout": 7}, "b": None}, target_wait="1m")
    assert [settings.retry_after_of(queue) for queue in ("a", "b")] == [10, 90]
    assert [settings.target_wait_of(queue) for queue in ("a", "b")] == [5, 60]
    assert [settings.worker_timeout_of(queue) for queue in ("a", "b")] == [7, None]
    assert given(retry_after=None).retry_after_of("default") is None


def test_a_timeout_that_is_not_below_retry_after_is_doubted() -> None:
    """`check` says so before a job runs twice."""
    (doubt,) = given(queues={"a": {"timeout": 90}, "b": {"timeout": 89}}).doubts()
    assert str(doubt).startswith("queues.a.timeout: expected less than the 90s of retry_after")
    assert list(given(queues={"a": {"timeout": 90}}, retry_after=None).doubts()) == []


def test_case_19_every_spelling_of_a_secret_is_known() -> None:
    """Case 19: as a setting, in the URL of the queues or of the cache, percent-encoded or not."""
    settings = given(url="redis://u:hunt%2fer2@h", cache={"redis": "redis://:s%20ecret@c"})
    hide = Secrets(settings.secrets()).hide
    for text in ("hunt/er2", "hunt%2fer2", "hunt%2Fer2", "s ecret", "s%20ecret"):
        assert text not in hide(f"<{text}>")
    assert "hunter2" not in Secrets(given(password="hunter2").secrets()).hide("hunter2")
    assert "hunter2" not in repr(given(url="redis://:hunter2@h")) + given(url="redis://:hunter2@h").model_dump_json()


def test_two_passwords_are_one_too_many() -> None:
    """Nobody should have to know which of two is used."""
    assert complaint(url="redis://h", url_file="/dev/null").startswith(f"{PATH}.url_file: expected")
