"""Queues that nobody named: found bit by bit, bounded, counted."""

from __future__ import annotations

import redis

from exporter.demo.redis import Redis
from exporter.sources.redis.found import MOST

from ..world import HandClock, series, value
from .world import PREFIX, counts, delay, errors, look, now, payload, push, reserve, state_of, watched


def test_named_queues_alone_unless_told_to_look(server: Redis, client: redis.Redis) -> None:
    """Looking through all keys is off by default."""
    push(client, payload(), queue="stray")
    with watched(server.url()) as app:
        look(app, "queues")
        assert value(app, "jobs", queue="stray", state="ready") is None
        assert value(app, "queues") == 1


def test_found_queues(server: Redis, client: redis.Redis) -> None:
    """A queue is found by any of its keys, and says zero for an hour after its last job is gone."""
    push(client, payload(), queue="stray")
    delay(client, payload(), now(client) + 60, queue="later")
    client.rpush(f"{PREFIX}queues:told:notify", 1)
    client.set("another:application:queues:x", 1)
    hand = HandClock()
    with watched(server.url(), hand.clock, discover=True) as app:
        look(app, "queues")
        assert value(app, "queues") == 3
        assert counts(app, "stray", polled=False) == {"ready": 1}
        assert counts(app, "later", polled=False) == {"delayed": 1}
        assert value(app, "retry_after_seconds", queue="stray") == 90
        client.flushall()
        look(app, "queues")
        assert value(app, "jobs", queue="stray", state="ready") == 0
        hand.pass_(3700)
        look(app, "queues")
        assert value(app, "jobs", queue="stray", state="ready") is None


def test_many_keys_take_several_polls(server: Redis, client: redis.Redis) -> None:
    """A poll looks at some thousand keys; what is behind them is found by a later one, or at once by `once`."""
    client.execute_command("DEBUG", "POPULATE", 30_000)
    push(client, payload(), queue="stray")
    with watched(server.url(), discover=True) as app:
        polls = 0
        while value(app, "jobs", queue="stray", state="ready") is None:
            look(app, "queues")
            polls += 1
        assert polls <= 8
    with watched(server.url(), discover=True, once=True) as app:
        look(app, "queues")
        assert value(app, "jobs", queue="stray", state="ready") == 1


def test_who_may_not_look_for_queues_still_sees_the_named_ones(server: Redis, client: redis.Redis) -> None:
    """That SCAN is not allowed is one failure of a part; once it is, what is there is found."""
    client.execute_command("ACL", "SETUSER", "some", "ON", ">pw", "~*", "+@all", "-scan")
    push(client, payload(), payload(), queue="default")
    push(client, payload(), queue="stray")
    with watched(server.url(login="some:pw"), discover=True) as app:
        assert counts(app) == {"ready": 2}
        assert errors(app, "queues") == {"permission": 1}
        assert "looking for queues: this user has no permissions" in state_of(app, "queues").notes[-1]
        client.execute_command("ACL", "SETUSER", "some", "+scan")
        assert counts(app, "stray") == {"ready": 1}
    client.execute_command("ACL", "DELUSER", "some")


def test_every_name_that_is_found_is_counted(server: Redis, client: redis.Redis) -> None:
    """A queue that is really called `other` is counted there, and one whose name is no UTF-8 is asked by its bytes."""
    push(client, payload(), payload(), queue="other")
    binary = PREFIX.encode() + b"queues:caf\xe9"
    client.rpush(binary, payload())
    client.zadd(binary + b":reserved", {payload(attempts=1, timeout=5): now(client) + 60})
    with watched(server.url(), discover=True) as app:
        look(app, "queues", "reservations")
        assert counts(app, "other", polled=False) == {"ready": 2}
        assert counts(app, "caf\ufffd", polled=False) == {"ready": 1, "reserved": 1}
        assert value(app, "reserved_past_timeout_jobs", queue="caf\ufffd") == 1
        client.delete(f"{PREFIX}queues:other")
        look(app, "queues", "reservations")
        look(app, "queues", "reservations")
        assert value(app, "jobs", queue="other", state="ready") == 0
        assert errors(app, "queues") == errors(app, "reservations") == {}


def test_a_prefix_stands_for_itself(server: Redis, client: redis.Redis) -> None:
    """What is a pattern to Redis is none in a prefix: neither is another's queue found nor the own one missed."""
    push(client, payload(), queue="own", prefix="[a-z]*?")
    push(client, payload(), queue="theirs", prefix="bcd")
    with watched(server.url(), discover=True, prefix="[a-z]*?") as app:
        assert counts(app, "own") == {"ready": 1}
        assert value(app, "queues") == 2


def test_a_queue_that_is_gone_is_not_asked_for_any_more(server: Redis, client: redis.Redis) -> None:
    """After a full round through the keys and an hour a found queue costs nothing any more."""
    push(client, payload(), queue="stray")
    hand = HandClock()
    with watched(server.url(), hand.clock, discover=True) as app:
        look(app, "queues")
        with_stray = client.info("stats")["total_commands_processed"]
        look(app, "queues")
        with_stray = client.info("stats")["total_commands_processed"] - with_stray
        client.flushall()
        look(app, "queues")
        hand.pass_(3700)
        look(app, "queues")
        without = client.info("stats")["total_commands_processed"]
        look(app, "queues")
        assert client.info("stats")["total_commands_processed"] - without < with_stray


def fill(client: redis.Redis, number: int) -> None:
    """A job in each of so many queues."""
    with client.pipeline() as pipeline:
        for each in range(number):
            pipeline.rpush(f"{PREFIX}queues:q{each}", payload())
        pipeline.execute()


def test_case_77_many_queues_are_one(server: Redis, client: redis.Redis) -> None:
    """Case 77: of several hundred queues a hundred have their names; the others are one, and the total is right."""
    fill(client, 500)
    with watched(server.url(), discover=True, once=True, timeout="20s") as app:
        look(app, "queues")
        shown = series(app.exposition.page("text")).items()
        ready = [number for (_, labels), number in shown if ("state", "ready") in labels]
        assert len(ready) == 1 + 100 + 1
        assert sum(ready) == 500
        assert value(app, "jobs", queue="other", state="ready") == 400
        assert value(app, "labels_dropped_total", label="queue", collector="queues") == 400


def test_a_queue_among_many_that_fails_ends_nothing(server: Redis, client: redis.Redis) -> None:
    """A job held in a queue that is shown as `other` is not over because its queue could not be read once."""
    for _ in range(2):
        fill(client, 100)
    reserve(client, payload(attempts=1), now(client) + 60, "small")
    with watched(server.url(), discover=True) as app:
        look(app, "queues", "reservations")
        client.set(f"{PREFIX}queues:small", "I am no list")
        look(app, "queues", "reservations")
        assert errors(app, "queues") == {"wrong_type": 1}
        assert value(app, "jobs", queue="other", state="reserved") is None
        assert value(app, "reservation_seconds_count", queue="other") == 0


def test_case_77_queues_without_end(server: Redis, client: redis.Redis) -> None:
    """Case 77: of ten thousand queues a thousand are asked for; of the rest nobody knows, so `other` is absent."""
    fill(client, 10_000)
    with watched(server.url(), discover=True, timeout="20s") as app:
        look(app, "queues")  # some thousand keys of them have been read
        assert value(app, "jobs", queue="other", state="ready") is None
    with watched(server.url(), discover=True, once=True, timeout="20s") as app:
        for _ in range(2):
            look(app, "queues")
        shown = series(app.exposition.page("text"))
        states = [dict(labels) for name, labels in shown if name == "laravel_queue_jobs"]
        assert len({labels["queue"] for labels in states}) == 1 + 100
        assert value(app, "jobs", queue="other", state="ready") is None
        assert "more than 1,000 queues were found" in state_of(app, "queues").notes[0]
        dropped = value(app, "labels_dropped_total", label="queue", collector="queues")
        assert (dropped or 0) >= 2 * (10_000 - MOST)


def test_case_77_names_in_horizon_without_end(server: Redis, client: redis.Redis) -> None:
    """Case 77: the same holds for the queues that Horizon has numbers of."""
    client.sadd("laravel_horizon:measured_queues", *(f"laravel_horizon:queue:q{number}" for number in range(5000)))
    with watched(server.url(), horizon={"prefix": "laravel_horizon:"}) as app:
        look(app, "horizon")
        shown = [name for name, _ in series(app.exposition.page("text"))]
        assert shown.count("laravel_queue_horizon_jobs_processed_total") == 1 + 100 + 1
        assert (value(app, "labels_dropped_total", collector="horizon", label="queue") or 0) > 0
