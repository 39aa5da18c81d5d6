"""How long the oldest job has been waiting, by what the far side says and by what was seen."""

from __future__ import annotations

import pytest
import redis

from exporter.app import App
from exporter.demo.redis import Redis
from exporter.sources.redis.heads import HEAD, Line, look

from ..world import HandClock, value
from ..world import poll as poll_source
from .world import PREFIX, counts, delay, now, payload, push, reserve, watched
from .world import look as poll

NOW = 1_800_000_000
NEW = Line()


def age(app: App, queue: str = "default") -> float | None:
    """The oldest job's age, polled anew."""
    poll(app, "queues")
    return value(app, "oldest_job_age_seconds", queue=queue)


def line(*jobs: str, before: Line = NEW, at: int = NOW, is_idle: bool = False) -> Line:
    """What is known of a line with these jobs in it."""
    return look([job.encode() for job in jobs], before, at, is_idle=is_idle)


def test_the_oldest_is_the_first_of_all_who_could_be_taken(server: Redis, client: redis.Redis) -> None:
    """A job in line, one that is due, one that expired: whoever could be taken first makes the age."""
    at = now(client)
    push(client, payload(createdAt=at - 50))
    with watched(server.url()) as app:
        assert age(app) in (50, 51)
        delay(client, payload(), at - 70)
        assert age(app) in (70, 71, 72)
        reserve(client, payload(attempts=1), at - 90)
        assert age(app) in (90, 91, 92)


def test_jobs_that_nobody_may_take_have_no_age(server: Redis, client: redis.Redis) -> None:
    """Case 33: delayed jobs, and held ones, are no backlog: the age is 0."""
    at = now(client)
    delay(client, payload(createdAt=at - 500), at + 100)
    reserve(client, payload(createdAt=at - 500, attempts=1), at + 80)
    with watched(server.url()) as app:
        assert age(app) == 0
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") in (10, 11)


def test_redis_says_what_time_it_is(server: Redis, client: redis.Redis) -> None:
    """Ages and due times are by Redis's own clock, which is asked on the way; how far it is from ours is told."""
    hand = HandClock(wall=now(client) - 100.0)
    delay(client, payload(), now(client) + 50)
    with watched(server.url(), hand.clock) as app:
        assert counts(app) == {"delayed": 1}
        poll_source(app, source="clock")
        assert value(app, "clock_offset_seconds", reference="redis:redis") == pytest.approx(100, abs=5)
        for passed in (200.0, -200.0):  # of our own clocks alone: as if Redis's had been set
            hand.pass_(passed)
            assert counts(app) == {"delayed": 1}


def test_an_age_is_never_negative(server: Redis, client: redis.Redis) -> None:
    """Case 40: a job from a host whose clock is ahead is 0 seconds old."""
    push(client, payload(createdAt=now(client) + 40))
    reserve(client, payload(attempts=1), now(client) + 130)
    with watched(server.url()) as app:
        assert age(app) == 0
        assert value(app, "oldest_reserved_job_age_seconds", queue="default") == 0


def test_a_retry_says_when_it_was_first_dispatched_and_is_not_believed() -> None:
    """With attempts behind it a job's `pushedAt` is hours old; those behind it in line give a lower bound."""
    retried = payload(attempts=2, pushedAt=str(NOW - 9000.5))
    assert line(retried).since is None
    assert line(retried, payload(pushedAt=str(NOW - 30.5)), payload(pushedAt=str(NOW - 20))).since == NOW - 30.5


@pytest.mark.parametrize("once", [False, True])
def test_ten_are_looked_at_where_the_first_says_nothing(server: Redis, client: redis.Redis, once: bool) -> None:
    """Those behind a retried job give a lower bound: from the second look on, or at once where there is only one."""
    at = now(client)
    push(client, *(payload(attempts=2, createdAt=at - 9000) for _ in range(HEAD - 1)), payload(createdAt=at - 30))
    with watched(server.url(), once=once) as app:
        first = age(app)
        assert first in (30, 31) if once else first is None
        assert age(app) in (30, 31, 32)


def test_who_was_seen_in_line_has_waited_since() -> None:
    """Without any time in the payloads (Laravel before 12.11), whoever is still there has waited since last time."""
    jobs = [payload() for _ in range(HEAD)]
    first = line(*jobs)
    assert first.since is None
    second = line(*jobs[3:], before=first, at=NOW + 15)
    assert second.since == NOW
    assert line(payload(), before=second, at=NOW + 30).since is None


def test_nobody_has_waited_since_before_the_queue_was_idle() -> None:
    """A failed job that is put back by hand has an old time, but it came after the queue was empty."""
    idle = line(is_idle=True, at=NOW - 15)
    assert line(payload(createdAt=NOW - 80_000), before=idle).since == NOW - 15
    assert line(payload(createdAt=NOW - 5), before=idle).since == NOW - 5


def test_a_due_job_that_is_moved_has_waited_since_it_was_due() -> None:
    """While due jobs wait to be moved the queue is not idle, although nobody is in line."""
    not_idle = line(at=NOW - 15)
    assert line(payload(createdAt=NOW - 4000, delay=400), before=not_idle).since == NOW - 3600


def test_a_delay_is_no_wait() -> None:
    """The delay that a job had is known from its payload, or from the object in it; it may have been of long ago."""
    command = 'O:20:"App\\Jobs\\SendInvoice":1:{s:5:"delay";i:300;}'
    in_object = {"pushedAt": str(NOW - 310), "data": {"command": command}}
    assert line(payload(createdAt=NOW - 310, delay=300)).since == NOW - 10
    assert line(payload(**in_object)).since == NOW - 10
    assert line(payload(**in_object | {"pushedAt": str(NOW - 20)})).since == NOW - 20


def horizon(command: str, **changes: object) -> str:
    """A job's payload as Horizon pushes it, an hour ago, with this object in it."""
    data = {"commandName": "App\\Jobs\\A", "command": command} | changes
    return payload(pushedAt=str(NOW - 3600), delay=None, data=data)


def test_a_delay_of_which_nobody_knows_the_end_makes_no_age() -> None:
    """A delay given as a date, an encrypted job, a delay without sense: nobody knows since when such a job waits."""
    carbon = 'O:10:"App\\Jobs\\A":1:{s:5:"delay";O:13:"Carbon\\Carbon":1:{s:4:"date";s:3:"now";}}'
    for job in (horizon(carbon), horizon("eyJpdiI6IkE9PSJ9"), horizon('O:10:"App\\Jobs\\A":1:{s:5:"delay";d:5.5;}')):
        before = line(job)
        assert before.since is None
        assert line(job, before=before, at=NOW + 15).since == NOW
    for nonsense in (10**400, 10**12, 1.5, "soon", True):
        assert line(payload(createdAt=NOW - 3600, delay=nonsense)).since is None


def test_the_delay_of_a_job_is_its_own() -> None:
    """That of a job which is chained to it says nothing; that of a mail is in the mail."""
    inner = 's:7:"chained";a:1:{i:0;O:10:"App\\Jobs\\B":1:{s:5:"delay";i:600;}}'
    assert line(horizon(f'O:10:"App\\Jobs\\A":2:{{{inner}s:5:"delay";N;}}')).since == NOW - 3600
    assert line(horizon(f'O:10:"App\\Jobs\\A":1:{{{inner}}}')).since == NOW - 3600
    assert line(horizon(f'O:10:"App\\Jobs\\A":2:{{{inner}s:5:"delay";i:60;}}')).since == NOW - 3540
    mail = "Illuminate\\Mail\\SendQueuedMailable"
    sent = f'O:34:"{mail}":1:{{s:8:"mailable";O:5:"Order":1:{{s:5:"delay";i:600;}}}}'
    assert line(horizon(sent, commandName=mail)).since == NOW - 3000


def test_a_time_to_come_is_no_time() -> None:
    """Milliseconds, infinity, a clock that is months ahead: who has such a time has waited since it was seen."""
    for time in (NOW * 1000, "inf", "nan", NOW + 10_000_000, 10**400, NOW + 100):
        job = payload(pushedAt=time)
        before = line(job)
        assert before.since is None
        assert line(job, before=before, at=NOW + 15).since == NOW
    assert line(payload(createdAt=NOW + 59)).since == NOW


def test_what_was_seen_by_a_faster_clock_is_forgotten() -> None:
    """After a failover to a server whose clock is behind, nothing was seen or idle in a time to come."""
    old, new = payload(), payload(createdAt=NOW - 50)
    assert line(new, before=line(is_idle=True, at=NOW + 900)).since == NOW - 50
    moved = line(old, before=line(old, at=NOW + 900))
    assert line(old, before=moved, at=NOW + 15).since == NOW


def test_what_is_no_payload_says_nothing() -> None:
    """Whatever text is in the list, it is counted and makes no age."""
    for text in ("", "{", "[]", "null", '{"attempts": 0}', '{"attempts": 0, "createdAt": "soon"}', "\x00"):
        assert line(text).since is None
    assert look([b"\xff\xfe"], NEW, NOW, is_idle=False).since is None
    assert line(payload(createdAt=5)).since is None
    assert line(payload(createdAt=True)).since is None


def test_where_nobody_knows_there_is_no_age(server: Redis, client: redis.Redis) -> None:
    """A job in line of which nothing is known has no age, not 0; the next poll has a lower bound."""
    push(client, payload())
    reserve(client, payload(attempts=1), now(client) + 80)
    with watched(server.url()) as app:
        assert age(app) is None
        assert value(app, "jobs", queue="default", state="ready") == 1
        client.delete(f"{PREFIX}queues:default")
        assert age(app) == 0
