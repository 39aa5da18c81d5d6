"""Messages sent and deleted, as CloudWatch tells them minute by minute: each counts once, whatever our clock does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ..world import HandClock, poll, value
from .cloud import World, error
from .test_cloudwatch import AGE, DELETED, ON, SENT, minute, polled
from .watching import watch


def test_each_minute_is_counted_once(world: World, hand: HandClock) -> None:
    """Counters begin at 0 and grow by each minute from then on, whatever the polls' pace; none counts twice."""
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
        assert value(app, "sqs_messages_sent_total", queue="mail") == 40
        hand.pass_(600)
        polled(app)
        assert value(app, "sqs_messages_sent_total", queue="mail") == 50
        assert value(app, "sqs_messages_deleted_total", queue="mail") == 0


def test_minutes_without_an_answer_are_made_up_for(world: World, hand: HandClock) -> None:
    """An hour of failures loses nothing: CloudWatch still knows."""
    world.queue("mail")
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        world.measured("mail", DELETED, {minute(hand, -number): 1 for number in range(1, 41)})
        world.cloud.mood = lambda asked: error("ThrottlingException")
        hand.pass_(3600)
        polled(app)
        world.cloud.well()
        polled(app)
        assert value(app, "sqs_messages_deleted_total", queue="mail") == 40


def test_a_longer_silence_is_made_up_for_in_part(world: World, hand: HandClock) -> None:
    """Of five hours without an answer the last three are asked for, and some minutes more; not ever more of them."""
    world.queue("mail")
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        for first in range(1, 301, 100):
            world.measured("mail", DELETED, {minute(hand, -number): 1 for number in range(first, first + 100)})
        hand.pass_(5 * 3600)
        polled(app)
        total = value(app, "sqs_messages_deleted_total", queue="mail")
        assert total is not None
        assert 180 <= total <= 200


def test_many_numbers_of_one_minute(world: World, hand: HandClock) -> None:
    """AWS tells a minute in several data: the oldest age is the largest of them, and what was sent is their sum."""
    world.queue("mail", 1)
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        for number in (3, 9, 6):
            world.measured("mail", AGE, {minute(hand, -1): number})
            world.measured("mail", SENT, {minute(hand, -1): number})
        hand.pass_(120)
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == 9
        assert value(app, "sqs_messages_sent_total", queue="mail") == 18


def test_a_clock_that_was_ahead_stops_no_counter(world: World, hand: HandClock) -> None:
    """The clock goes an hour ahead and comes back: what is sent from then on is counted as before."""
    world.queue("mail")
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        hand.wall += 3600
        polled(app)
        hand.wall -= 3600
        polled(app)
        before = value(app, "sqs_messages_sent_total", queue="mail")
        assert before == 0
        world.measured("mail", SENT, {minute(hand, -number): 10 for number in range(10)})
        hand.pass_(720)
        polled(app)
        assert value(app, "sqs_messages_sent_total", queue="mail") == 90


@pytest.mark.parametrize("ahead", [60, 150, 280, 3600])
def test_a_clock_that_is_ahead_for_one_poll_loses_and_doubles_nothing(
    world: World, hand: HandClock, ahead: float
) -> None:
    """Before, while and after it is ahead, each minute counts once, by as much as CloudWatch told of it last."""
    world.queue("mail")
    hand.wall = hand.wall // 60 * 60 + 1
    began = hand.wall // 60 * 60
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        for poll_number in range(8):
            world.measured("mail", SENT, {began + 60 * (2 * poll_number - n): 5 for n in (0, 1) if poll_number})
            hand.wall += ahead if poll_number == 4 else 0
            polled(app)
            hand.wall -= ahead if poll_number == 4 else 0
            if poll_number != 4:
                assert value(app, "sqs_messages_sent_total", queue="mail") == 10 * poll_number
            hand.pass_(120)


def test_what_cloudwatch_learns_later_is_added(world: World, hand: HandClock) -> None:
    """The number of the minute under way grows; ten minutes later it is still corrected."""
    world.queue("mail")
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        at = minute(hand, -2)
        for passed, more, total in ((90, 3, 3), (60, 4, 7), (600, 1, 8), (3600, 0, 8)):
            hand.pass_(passed)
            if more:
                world.measured("mail", SENT, {at: more})  # moto's sum of all that it was told
            polled(app)
            assert value(app, "sqs_messages_sent_total", queue="mail") == total


def test_a_small_step_back_counts_nothing_twice(world: World, hand: HandClock) -> None:
    """NTP puts the clock back by ten seconds over the edge of a minute."""
    world.queue("mail")
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        world.measured("mail", SENT, {minute(hand, -number): 10 for number in range(10)})
        for step in (360, -10, 20):
            hand.wall += step
            hand.mono += 60
            polled(app)
            assert value(app, "sqs_messages_sent_total", queue="mail") == 70


def test_a_region_that_fails_keeps_its_totals(world: World, hand: HandClock) -> None:
    """Each queue is counted from where it stopped: one region's failure loses nothing of it, and no total vanishes."""
    far = "https://sqs.us-east-1.amazonaws.com/123456789012/mail"
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}, far: {}}, **ON) as app:
        poll(app, "cloudwatch", source="sqs")
        data = [
            {
                "MetricName": SENT,
                "Dimensions": [{"Name": "QueueName", "Value": "mail"}],
                "Timestamp": datetime.fromtimestamp(minute(hand, -number), UTC),
                "Value": 10,
            }
            for number in range(20)
        ]
        with world.unseen():
            for region in ("eu-west-1", "us-east-1"):
                world.client("cloudwatch", region).put_metric_data(Namespace="AWS/SQS", MetricData=data)
        for denied, near, totals in ((False, 60, 60), (True, 80, 60), (False, 100, 100)):
            world.cloud.mood = lambda asked, denied=denied: (  # type: ignore[misc]
                error("AccessDenied") if denied and "us-east-1" in asked.headers["authorization"] else None
            )
            hand.pass_(300 if near == 60 else 120)
            poll(app, "cloudwatch", source="sqs")
            assert value(app, "sqs_messages_sent_total", queue="mail") == near
            assert value(app, "sqs_messages_sent_total", queue=far) == totals
