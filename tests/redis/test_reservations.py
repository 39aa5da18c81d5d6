"""What is known of held jobs on Redis, where a release keeps the id and the score says when a job expires."""

from __future__ import annotations

import redis

from exporter.demo.redis import Redis
from exporter.sources.ledger import Job, Key, Ledger, Reading, Rules

from ..world import series, state, value
from .world import PREFIX, errors, look, now, payload, push, reserve, watched

NOW = 1_800_000_000
RETRY_AFTER = 90
RULES = Rules(15.0, lambda queue: RETRY_AFTER, lambda queue: None, lambda name: name or "other", release_keeps_id=True)


def seen(ledger: Ledger, at: int, *held: tuple[str, int, int]) -> Ledger:
    """The ledger after a look at which these (id, attempts, reserved_at) were held."""
    rows = tuple(Job(Key(id_), "default", attempts, since, "{}", None) for id_, attempts, since in held)
    asked = frozenset(key.id for key in ledger.held)
    return ledger.after(Reading(at, True, asked, rows, frozenset({"default"})))


def repeated(ledger: Ledger) -> int:
    """How many were handed out again."""
    return ledger.queues["default"].repeated


def test_only_a_job_seen_past_its_time_was_handed_out_again() -> None:
    """Seen expired and then with a later score and more attempts: that counts. Not seen expired: it was released."""
    for last_look, counted in ((NOW + 90, 1), (NOW + 89, 0)):
        ledger = seen(seen(Ledger(RULES), NOW, ("a", 1, NOW)), last_look, ("a", 1, NOW))
        assert repeated(seen(ledger, NOW + 95, ("a", 2, NOW + 92))) == counted


def test_an_expired_job_may_wait_in_line_for_its_second_worker() -> None:
    """Moved back to the line it is not held by anybody; taken from there with more attempts, it is the same job."""
    expired = seen(seen(Ledger(RULES), NOW, ("a", 1, NOW)), NOW + 91, ("a", 1, NOW))
    in_line = seen(expired, NOW + 105)
    assert repeated(in_line) == 0
    again = seen(in_line, NOW + 300, ("a", 2, NOW + 290))
    assert repeated(again) == 1
    assert again.last_repeat is not None
    assert again.last_repeat.after == 91
    assert repeated(seen(in_line, NOW + 4000, ("a", 2, NOW + 3990))) == 0  # after an hour nobody knows any more


def test_a_job_that_was_done_after_all_is_not_repeated() -> None:
    """Seen expired, and then never again: its worker finished it, late."""
    expired = seen(seen(Ledger(RULES), NOW, ("a", 1, NOW)), NOW + 91, ("a", 1, NOW))
    assert repeated(seen(seen(expired, NOW + 100), NOW + 120, ("b", 1, NOW + 110))) == 0


def test_who_is_held_past_its_timeout(server: Redis, client: redis.Redis) -> None:
    """The payload's own timeout, or the workers' from the settings, and 10 s more: the worker should be dead."""
    at = now(client)
    reserve(client, payload(attempts=1, timeout=20), at - 40 + 90)  # for 40 s
    reserve(client, payload(attempts=1), at - 40 + 90)
    reserve(client, payload(attempts=1), at - 80 + 90)
    reserve(client, payload(attempts=1, timeout=20), at - 100 + 90)  # expired
    with watched(server.url(), queues={"default": {"timeout": "60s"}}) as app:
        look(app, "queues", "reservations")
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 2
        assert value(app, "job_timeout_seconds", queue="default") == 60
        assert value(app, "last_reservation_timestamp_seconds", queue="default") in (at - 40, at - 39)


def test_without_retry_after_nothing_is_ever_long(server: Redis, client: redis.Redis) -> None:
    """With `retry_after` null a job is held since its score, and half of for ever is not over yet."""
    reserve(client, payload(attempts=1), now(client) - 5000)
    with watched(server.url(), retry_after=None) as app:
        for _ in range(2):
            look(app, "queues", "reservations")
        assert value(app, "long_reservations_total", queue="default", job_class="App\\Jobs\\SendInvoice") == 0
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 0


def test_a_job_that_is_about_to_expire_is_watched(server: Redis, client: redis.Redis) -> None:
    """An idle worker moves an expired job within seconds, so from shortly before that it is looked at each second."""
    reserve(client, payload(attempts=1), now(client) + 60)
    with watched(server.url()) as app:
        look(app, "queues", "reservations")
        assert state(app, "reservations", "redis").interval == 15
        reserve(client, payload(attempts=1), now(client) + 10)
        look(app, "reservations")
        assert state(app, "reservations", "redis").interval < 2


def test_a_score_that_is_no_time_breaks_nothing(server: Redis, client: redis.Redis) -> None:
    """Members with a score of infinity, or of long ago, are in nobody's way."""
    for score in (float("inf"), float("-inf"), 5, 1e300):
        reserve(client, payload(attempts=1, timeout=20), score)
    reserve(client, payload(attempts=1, timeout=20), now(client) + 50)
    with watched(server.url()) as app:
        look(app, "queues", "reservations")
        assert errors(app, "queues") == errors(app, "reservations") == {}
        assert value(app, "reserved_past_timeout_jobs", queue="default") == 1
        assert value(app, "implausible_jobs", queue="default") == 4


def test_case_46_a_wrong_type_fails_alone_here_too(server: Redis, client: redis.Redis) -> None:
    """Case 46: a string at `:reserved` says nothing of its queue, and nothing against the other."""
    client.set(f"{PREFIX}queues:default:reserved", "x")
    push(client, payload())
    reserve(client, payload(attempts=1), now(client) + 60, "mail")
    with watched(server.url(), queues={"default": None, "mail": None}) as app:
        look(app, "queues", "reservations")
        assert errors(app, "queues") == errors(app, "reservations") == {"wrong_type": 1}
        assert value(app, "reservation_seconds_count", queue="mail") == 0
        assert value(app, "reservation_seconds_count", queue="default") is None
        assert "queue 'default'" in state(app, "reservations", "redis").notes[0]


def test_a_retry_after_that_is_not_the_workers_is_told(server: Redis, client: redis.Redis) -> None:
    """A job that expires later than retry_after allows proves that the workers have another one, or a fast clock."""
    at = now(client)
    reserve(client, payload(attempts=1), at + 95)
    with watched(server.url()) as app:
        look(app, "queues", "reservations")
        assert state(app, "reservations", "redis").notes == ()
        reserve(client, payload(attempts=1), at + 1500)
        look(app, "reservations")
        (note,) = state(app, "reservations", "redis").notes
        assert "later than its retry_after of 90 s allows" in note


def test_case_77_classes_without_end(server: Redis, client: redis.Redis) -> None:
    """Case 77: the first hundred classes have their names, what comes later is `other`, and each is counted once."""
    at = now(client)
    for number in range(130):
        reserve(client, payload(attempts=1, displayName=f"App\\Jobs\\Job{number}", timeout=5), at + 30)
    with watched(server.url()) as app:
        for _ in range(3):
            look(app, "queues", "reservations")
        page = series(app.exposition.page("text"))
        classes = {dict(labels)["job_class"] for name, labels in page if name == "laravel_queue_job_timeout_seconds"}
        assert len(classes) == 100 + 1
        assert "other" in classes
        assert value(app, "labels_dropped_total", collector="reservations", label="job_class") == 30
        total = sum(number for (name, _), number in page.items() if name == "laravel_queue_long_reservations_total")
        assert total == 130
