"""Jobs by state, and the settings that go with them, on a real Redis."""

from __future__ import annotations

import redis

from exporter.demo.redis import Redis

from ..world import HandClock, value
from .world import PREFIX, counts, delay, errors, look, now, payload, push, reserve, state_of, watched


def test_case_45_an_empty_queue_says_zero(server: Redis, client: redis.Redis) -> None:
    """Case 45: no key, one job, no key again: 0, 1, 0."""
    with watched(server.url()) as app:
        assert counts(app) == {}
        assert value(app, "jobs", queue="default", state="ready") == 0
        push(client, payload())
        assert counts(app) == {"ready": 1}
        client.lpop(f"{PREFIX}queues:default")
        assert counts(app) == {}
        assert value(app, "jobs", queue="default", state="ready") == 0


def test_case_34_states_are_exclusive(server: Redis, client: redis.Redis) -> None:
    """Case 34: due members of `:delayed` are ready, members of `:reserved` past their score are expired."""
    at = now(client)
    push(client, payload(), payload(), payload())
    for due in (-5, -1, 100, 200, 300):
        delay(client, payload(), at + due)
    for expiry in (-3, 60, 80):
        reserve(client, payload(attempts=1), at + expiry)
    with watched(server.url()) as app:
        assert counts(app) == {"ready": 5, "delayed": 3, "reserved": 2, "expired": 1}
        assert value(app, "queues") == 1


def test_case_46_a_wrong_type_fails_alone(server: Redis, client: redis.Redis) -> None:
    """Case 46: a string where the list should be is an error of that queue alone, told by name; it heals alone."""
    client.set(f"{PREFIX}queues:default", "I am no list")
    push(client, payload(), queue="mail")
    with watched(server.url(), queues={"default": None, "mail": None}) as app:
        assert counts(app, "mail") == {"ready": 1}
        assert value(app, "jobs", queue="default", state="ready") is None
        assert value(app, "retry_after_seconds", queue="default") == 90
        assert errors(app, "queues") == {"wrong_type": 1}
        (note,) = state_of(app, "queues").notes
        assert "'default'" in note
        client.delete(f"{PREFIX}queues:default")
        assert counts(app, "default") == {}
        assert value(app, "jobs", queue="default", state="ready") == 0


def test_case_46_the_only_queue_fails_by_its_name(server: Redis, client: redis.Redis) -> None:
    """Case 46: also where one queue is all that there is, its wrong type is its own fault, and its name is told."""
    client.set(f"{PREFIX}queues:default", "I am no list")
    with watched(server.url()) as app:
        look(app, "queues")
        assert state_of(app, "queues").up
        assert errors(app, "queues") == {"wrong_type": 1}
        assert "queue 'default'" in state_of(app, "queues").notes[0]
        assert value(app, "jobs", queue="default", state="ready") is None


def test_a_queue_that_may_be_misspelt_is_told(server: Redis, client: redis.Redis) -> None:
    """A named queue in which no job was ever seen is in doubt after an hour, if others had some; not sooner."""
    push(client, payload())
    hand = HandClock()
    with watched(server.url(), hand.clock, queues={"default": None, "mial": None, "mail": None}) as app:
        look(app, "queues")
        push(client, payload(), queue="mail")
        look(app, "queues")
        client.flushall()
        hand.pass_(3500)
        look(app, "queues")
        assert state_of(app, "queues").notes == ()
        hand.pass_(200)
        look(app, "queues")
        (note,) = state_of(app, "queues").notes
        assert note.startswith("in 'mial' no job was seen")
        push(client, payload(), queue="mial")
        look(app, "queues")
        assert state_of(app, "queues").notes == ()


def test_a_queue_that_fails_keeps_what_is_known_of_it(server: Redis, client: redis.Redis) -> None:
    """One failed look at a queue ends none of its reservations, hides no pause, and repeats no count when it heals."""
    at = now(client)
    reserve(client, payload(attempts=1, timeout=5), at + 60)
    reserve(client, first := payload(attempts=1, timeout=5, id="a"), at - 1)
    client.select(1)
    client.set(f"{PREFIX}laravel_cache:illuminate:queues:paused", "b:1;")
    client.select(0)
    with watched(server.url(), queues={"default": None, "mail": None}, cache={}) as app:
        look(app)
        client.zrem(f"{PREFIX}queues:default:reserved", first)
        reserve(client, payload(attempts=2, timeout=5, id="a"), at + 90)
        client.set(f"{PREFIX}queues:default", "I am no list")
        look(app)
        assert value(app, "jobs", queue="default", state="ready") is None
        for _ in range(2):
            assert value(app, "reservations_repeated_total", queue="default") == 1
            assert value(app, "reserved_past_timeout_jobs", queue="default") == 1
            assert value(app, "long_reservations_total", queue="default", job_class="App\\Jobs\\SendInvoice") == 1
            assert value(app, "reservation_seconds_count", queue="default") == 1
            assert value(app, "paused", queue="default") == 1
            client.delete(f"{PREFIX}queues:default")
            look(app)


def test_a_queue_that_is_never_handed_out_again_has_nothing_expired(server: Redis, client: redis.Redis) -> None:
    """With `retry_after` null the score is when the job was reserved, and it stays reserved for ever."""
    reserve(client, payload(attempts=1), now(client) - 500)
    with watched(server.url(), retry_after=None) as app:
        assert counts(app) == {"reserved": 1}
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") in (500, 501)
        assert value(app, "oldest_job_age_seconds", queue="default") == 0
        assert value(app, "retry_after_seconds", queue="default") is None
        assert value(app, "redis_overdue_jobs", queue="default") == 0


def test_due_jobs_that_nobody_moves_are_overdue(server: Redis, client: redis.Redis) -> None:
    """Each look of a worker moves what is due; what is still there after ten seconds says that nobody looks."""
    at = now(client)
    for due in (-60, -30, -2, 60):
        delay(client, payload(), at + due)
    for expiry in (-60, -2):
        reserve(client, payload(attempts=1), at + expiry)
    with watched(server.url()) as app:
        look(app, "queues")
        assert value(app, "redis_overdue_jobs", queue="default") == 3


def test_a_worker_that_is_busy_does_not_look(server: Redis, client: redis.Redis) -> None:
    """As long as it holds a job that has not expired, what is due waits for it; without retry_after nobody can tell."""
    at = now(client)
    delay(client, payload(), at - 60)
    reserve(client, payload(attempts=1), at + 30)
    with watched(server.url()) as app:
        look(app, "queues")
        assert value(app, "redis_overdue_jobs", queue="default") == 0
    with watched(server.url(), retry_after=None) as app:
        look(app, "queues")
        assert value(app, "redis_overdue_jobs", queue="default") == 1


def test_ten_seconds_are_what_a_worker_may_need_to_look(server: Redis, client: redis.Redis) -> None:
    """A job that is due for eight seconds is not overdue yet, and one that is due for twelve is."""
    delay(client, payload(), now(client) - 8)
    delay(client, payload(), now(client) - 12)
    with watched(server.url()) as app:
        look(app, "queues")
        assert value(app, "redis_overdue_jobs", queue="default") == 1


def test_times_that_cannot_be_are_left_out_of_ages(server: Redis, client: redis.Redis) -> None:
    """A score before 2005 or over ten years ahead counts in its state, and makes no age."""
    at = now(client)
    delay(client, payload(), 5)
    delay(client, payload(), at - 30)
    delay(client, payload(), at + 400_000_000)
    reserve(client, payload(attempts=1), 7)
    with watched(server.url()) as app:
        assert counts(app) == {"ready": 2, "delayed": 1, "expired": 1}
        assert value(app, "implausible_jobs", queue="default") == 3
        assert value(app, "oldest_job_age_seconds", queue="default") in (30, 31)
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") == 0


def test_a_queue_in_a_hash_tag_is_called_as_laravel_calls_it(server: Redis, client: redis.Redis) -> None:
    """`{mail}`, as a cluster needs it, is part of the queue's name, and of its label."""
    push(client, payload(), queue="{mail}")
    delay(client, payload(), now(client) + 60, queue="{mail}")
    with watched(server.url(), queues={"{mail}": {"target_wait": "1m"}}) as app:
        assert counts(app, "{mail}") == {"ready": 1, "delayed": 1}
        assert value(app, "target_wait_seconds", queue="{mail}") == 60


def test_each_version_has_its_prefix(server: Redis, client: redis.Redis) -> None:
    """Case 48: none (5.5), `_database_` (5.8) and `-database-` (12.1), or any other, as the settings say."""
    for prefix in ("", "laravel_database_", "laravel-database-", "my app:"):
        push(client, payload(), prefix=prefix)
        with watched(server.url(), prefix=prefix) as app:
            assert counts(app) == {"ready": 1}
            assert state_of(app, "queues").notes == ()


def test_a_wrong_prefix_is_suspected(server: Redis, client: redis.Redis) -> None:
    """Case 48: in Redis an empty queue does not exist, so as long as none ever had a job, the prefix is in doubt."""
    push(client, payload(), prefix="myapp_database_")
    with watched(server.url()) as app:
        look(app, "queues")
        assert "are the prefix 'laravel_database_' and the database 0 right?" in state_of(app, "queues").notes[0]
        push(client, payload())
        look(app, "queues")
        client.flushall()
        look(app, "queues")
        assert state_of(app, "queues").notes == ()


def test_a_second_connection_has_its_own_settings(server: Redis, client: redis.Redis) -> None:
    """A queue that another connection of Laravel uses is shown under its name, with its `retry_after`."""
    push(client, payload(), queue="exports")
    queues = {"default": None, "exports": {"connection": "redis-long", "retry_after": "25m", "target_wait": "15m"}}
    with watched(server.url(), queues=queues) as app:
        look(app, "queues")
        assert value(app, "jobs", connection="redis-long", queue="exports", state="ready") == 1
        assert value(app, "retry_after_seconds", connection="redis-long", queue="exports") == 1500
        assert value(app, "queues", connection="redis-long") == 1
