"""A payload may hold megabytes, and Redis gives no part of one: so as few as will do are asked for."""

from __future__ import annotations

import resource
import time

import redis

from exporter.app import App
from exporter.demo.redis import Redis
from exporter.sources.redis.heads import ENOUGH, HEAD, Line, look

from ..world import value
from .world import PREFIX, counts, delay, now, payload, push, reserve, state_of, watched
from .world import look as poll

MEGABYTE = 1024 * 1024
LARGE = "x" * 5 * MEGABYTE


def sent(client: redis.Redis, app: App, collector: str) -> int:
    """Bytes that Redis sends for one poll of a collector."""
    before = int(client.info("stats")["total_net_output_bytes"])
    poll(app, collector)
    return int(client.info("stats")["total_net_output_bytes"]) - before


def test_large_payloads_break_nothing(server: Redis, client: redis.Redis) -> None:
    """With 5 MB in each job a poll stays within its time and some memory, and all that is known otherwise is said."""
    at = now(client)
    push(client, *(payload(data=LARGE) for _ in range(12)))
    delay(client, payload(data=LARGE), at - 30)
    delay(client, payload(data=LARGE), at + 90)
    for _ in range(3):
        reserve(client, payload(data=LARGE, attempts=1), at + 80)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with watched(server.url()) as app:
        for _ in range(3):
            began = time.monotonic()
            assert counts(app) == {"ready": 13, "delayed": 1, "reserved": 3}
            poll(app, "reservations")
            assert time.monotonic() - began < 2.0
            assert state_of(app, "reservations").error == ""
            assert value(app, "oldest_job_age_seconds", queue="default") in range(30, 40)
            assert value(app, "last_reservation_timestamp_seconds", queue="default") in range(at - 11, at)
        assert sent(client, app, "queues") < 3.5 * len(LARGE)  # the first in line, the first due, the first held
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 300 * 1024  # kilobytes


def test_one_is_enough_that_says_since_when_it_waits(server: Redis, client: redis.Redis) -> None:
    """Where the first in line has a time of its own, nobody behind it is read; where it has none, nine more are."""
    timed = [payload(createdAt=now(client) - 30, data="x" * 10_000) for _ in range(HEAD)]
    with watched(server.url()) as app:
        push(client, *timed)
        assert sent(client, app, "queues") < 20_000
        assert sent(client, app, "queues") < 20_000
        client.delete(f"{PREFIX}queues:default")
        push(client, *(payload(data="x" * 10_000) for _ in range(HEAD)))
        poll(app, "queues")
        assert sent(client, app, "queues") > 100_000


def test_how_many_are_asked_for_goes_by_their_size() -> None:
    """Ten small ones, one that is larger than what is enough, and something between."""
    for size, expected in ((100, HEAD), (ENOUGH // 4, 3), (2 * ENOUGH, 1)):
        assert look([payload(data="x" * size).encode()], Line(), 9, is_idle=False).ask_for == expected


def test_held_jobs_that_are_large_are_looked_at_in_part(server: Redis, client: redis.Redis) -> None:
    """Of many large ones those held longest are looked at, and that there are more is told; nobody seems to end."""
    at = now(client)
    for number in range(30):
        reserve(client, payload(attempts=1, data="x" * MEGABYTE), at + 20 + number)
    with watched(server.url()) as app:
        assert sent(client, app, "reservations") > 20 * MEGABYTE
        assert sent(client, app, "reservations") < 5 * MEGABYTE
        assert "lower bounds" in state_of(app, "reservations").notes[0]
        assert value(app, "reservation_seconds_count", queue="default") == 0
        client.zremrangebyrank(f"{PREFIX}queues:default:reserved", 0, 1)
        poll(app, "reservations")
        assert value(app, "reservation_seconds_count", queue="default") == 2
        client.zremrangebyrank(f"{PREFIX}queues:default:reserved", 2, -1)
        poll(app, "reservations")
        assert value(app, "reservation_seconds_count", queue="default") == 2 + 16
        assert state_of(app, "reservations").notes == ()


def test_many_queues_share_what_may_be_read(server: Redis, client: redis.Redis) -> None:
    """What held jobs may cost is for all queues together: with three times as many queues it is not three times."""
    names = [f"queue-{number}" for number in range(8)]
    for queue in names:
        for number in range(20):
            reserve(client, payload(attempts=1, data="x" * 100_000), now(client) + 20 + number, queue)
    with watched(server.url(), queues=dict.fromkeys(names)) as app:
        assert sent(client, app, "reservations") > 15 * MEGABYTE
        assert sent(client, app, "reservations") < 5 * MEGABYTE


def test_small_ones_are_all_looked_at(server: Redis, client: redis.Redis) -> None:
    """The first look does not know how large they are; the second one sees all of them."""
    for number in range(60):
        reserve(client, payload(attempts=1, timeout=10), now(client) + 30 + number % 7)
    with watched(server.url()) as app:
        poll(app, "queues", "reservations")
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 20
        poll(app, "reservations")
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 60
        assert state_of(app, "reservations").notes == ()
