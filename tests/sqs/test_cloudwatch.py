"""What CloudWatch adds: ages, and how many messages came and went; late, and never more than it knows."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.status import report

from ..world import HandClock, poll, state, value
from .cloud import World, error
from .watching import watch

AGE, SENT, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "NumberOfMessagesDeleted"
ON: dict[str, Any] = {"cloudwatch": {}}


def minute(hand: HandClock, ago: int) -> float:
    """The beginning of the minute that ended so many minutes ago."""
    return hand.wall // 60 * 60 - 60 * (ago + 1)


def polled(app: Any) -> None:
    """One poll of those who ask and of the one who tells."""
    poll(app, "queues", "cloudwatch", "derived", source="sqs")


def test_the_age_is_cloudwatchs_while_something_is_ready(world: World, hand: HandClock) -> None:
    """The newest minute's age is shown, and compared with the target as any driver's."""
    world.queue("mail", 1)
    world.measured("mail", AGE, {minute(hand, 2): 45, minute(hand, 1): 105})
    with watch(world, hand.clock, queues={"mail": {"target_wait": "1m"}}, **ON) as app:
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == 105
        (finding,) = report(app.board, clock=hand.clock).findings
        assert finding.says == "oldest job 1m 45s, target 1m"


def test_with_nothing_ready_nobody_waits(world: World, hand: HandClock) -> None:
    """CloudWatch's age counts messages in flight: a long job is no long wait."""
    url = world.queue("mail", 1, VisibilityTimeout="600")
    world.receive(url)
    world.measured("mail", AGE, {minute(hand, 1): 500})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert value(app, "jobs", queue="mail", state="reserved") == 1
        assert value(app, "oldest_job_age_seconds", queue="mail") == 0


@pytest.mark.parametrize(("ago", "shown"), [(0, 105), (2, 105), (3, None), (60, None)])
def test_an_age_of_more_than_three_minutes_ago_is_not_shown(
    world: World, hand: HandClock, ago: int, shown: float | None
) -> None:
    """A queue that was idle stops reporting: its last age is not today's."""
    world.queue("mail", 1)
    hand.wall = hand.wall // 60 * 60 + 1
    world.measured("mail", AGE, {minute(hand, ago): 105})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == shown


def test_without_permission_the_rest_is_there(world: World, hand: HandClock) -> None:
    """Where CloudWatch may not be asked, a queue with ready jobs has no age; one without has 0; no other is missing."""
    world.queue("mail", 1)
    world.queue("exports")
    world.cloud.mood = lambda asked: error("AccessDenied") if asked.operation == "GetMetricData" else None
    with watch(world, hand.clock, queues={"mail": {}, "exports": {}}, **ON) as app:
        for _ in range(2):
            polled(app)
        assert state(app, "cloudwatch", "sqs").reason == "permission"
        assert value(app, "oldest_job_age_seconds", queue="mail") is None
        assert value(app, "oldest_job_age_seconds", queue="exports") == 0
        assert value(app, "jobs", queue="mail", state="ready") == 1
        world.cloud.well()
        for _ in range(2):
            polled(app)
        assert value(app, "oldest_job_age_seconds", queue="exports") == 0
        assert value(app, "sqs_messages_sent_total", queue="exports") == 0


def test_one_request_for_all_queues(world: World, hand: HandClock) -> None:
    """GetMetricData is asked once for three numbers of each of forty queues."""
    names = {f"q{number}": dict[str, Any]() for number in range(40)}
    with watch(world, hand.clock, queues=names, **ON) as app:
        poll(app, "cloudwatch", source="sqs")
        assert world.cloud.operations() == ["GetMetricData"]


def test_more_than_five_hundred_numbers_take_two_requests(world: World, hand: HandClock) -> None:
    """The API takes 500 at a time: 200 queues with three numbers each."""
    with watch(world, hand.clock, queues={f"q{number}": {} for number in range(200)}, **ON, timeout="30s") as app:
        poll(app, "cloudwatch", source="sqs")
        assert world.cloud.operations() == ["GetMetricData"] * 2
        assert value(app, "sqs_messages_sent_total", queue="q199") == 0


def test_each_minute_is_counted_once(world: World, hand: HandClock) -> None:
    """Counters begin at 0 and grow by each minute once it is settled, whatever the polls' pace; none twice."""
    world.queue("mail")
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        world.measured("mail", SENT, {minute(hand, 5): 1000})  # before we began
        polled(app)
        assert value(app, "sqs_messages_sent_total", queue="mail") == 0
        world.measured("mail", SENT, {minute(hand, -number): 10 for number in range(6)})
        for _ in range(4):
            hand.pass_(45)
            polled(app)
        assert value(app, "sqs_messages_sent_total", queue="mail") == 20  # the minutes that ended two minutes ago
        hand.pass_(600)
        polled(app)
        assert value(app, "sqs_messages_sent_total", queue="mail") == 60
        assert value(app, "sqs_messages_deleted_total", queue="mail") == 0


def test_minutes_without_an_answer_are_made_up_for(world: World, hand: HandClock) -> None:
    """An hour of failures loses nothing: CloudWatch still knows."""
    world.queue("mail")
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        world.measured("mail", DELETED, {minute(hand, -number): 1 for number in range(40)})
        world.cloud.mood = lambda asked: error("ThrottlingException")
        hand.pass_(3600)
        polled(app)
        world.cloud.well()
        polled(app)
        assert value(app, "sqs_messages_deleted_total", queue="mail") == 40


def test_switched_off(world: World) -> None:
    """With cloudwatch null nothing is asked of it, and nothing is down."""
    world.queue("mail")
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert set(world.cloud.operations()) == {"GetQueueAttributes"}
        assert value(app, "source_up", collector="cloudwatch") is None


def test_what_once_prints_has_the_age(world: World, hand: HandClock) -> None:
    """One poll of everything is enough to know how long the oldest job waits."""
    world.queue("mail", 1)
    world.measured("mail", AGE, {minute(hand, 1): 7})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        app.pollers[0].poll_all()
        assert value(app, "oldest_job_age_seconds", queue="mail") == 7
