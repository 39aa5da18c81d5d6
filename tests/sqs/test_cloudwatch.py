"""What CloudWatch adds: ages, and how many messages came and went; late, and never more than it knows."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.status import report

from ..world import HandClock, poll, state, value
from .cloud import Answer, Asked, World, about, error
from .watching import watch

AGE, SENT, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "NumberOfMessagesDeleted"
ON: dict[str, Any] = {"cloudwatch": {}}


def minute(hand: HandClock, ago: int) -> float:
    """The beginning of the minute that ended so many minutes ago."""
    return hand.wall // 60 * 60 - 60 * (ago + 1)


def polled(app: Any) -> None:
    """One poll of both who know something of the age."""
    poll(app, "queues", "cloudwatch", source="sqs")


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


def test_one_request_for_up_to_166_queues(world: World, hand: HandClock) -> None:
    """GetMetricData is asked once for three numbers of each of 166 queues."""
    names = {f"q{number}": dict[str, Any]() for number in range(166)}
    with watch(world, hand.clock, queues=names, **ON) as app:
        poll(app, "cloudwatch", source="sqs")
        assert world.cloud.operations() == ["GetMetricData"]


def test_more_than_five_hundred_numbers_take_two_requests(world: World, hand: HandClock) -> None:
    """The API takes 500 at a time: 200 queues with three numbers each."""
    with watch(world, hand.clock, queues={f"q{number}": {} for number in range(200)}, **ON, timeout="30s") as app:
        poll(app, "cloudwatch", source="sqs")
        assert world.cloud.operations() == ["GetMetricData"] * 2
        assert value(app, "sqs_messages_sent_total", queue="q199") == 0


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


def test_one_of_two_requests_that_fails_drops_nothing_of_the_other(world: World, hand: HandClock) -> None:
    """Of 200 queues the last 34 may not be asked for: their totals stay, the ages of the others are there."""
    names = [f"mail{number:03}" for number in range(200)]
    world.queue("mail000", 1)
    world.queue("mail199", 1)
    for name in ("mail000", "mail199"):
        world.measured(name, AGE, {minute(hand, 1): 30})
    with watch(world, hand.clock, queues={name: {} for name in names}, **ON, timeout="60s") as app:
        polled(app)
        world.cloud.mood = about("GetMetricData", "mail199", error("AccessDenied"))
        polled(app)
        assert [value(app, "oldest_job_age_seconds", queue=name) for name in ("mail000", "mail199")] == [30, None]
        assert [value(app, "sqs_messages_sent_total", queue=name) for name in ("mail000", "mail199")] == [0, 0]
        assert state(app, "cloudwatch", "sqs").up
        assert value(app, "source_errors_total", collector="cloudwatch", reason="permission") == 1


def answered(asked: Asked, **result: Any) -> Answer | None:
    """The same result for each number that CloudWatch is asked for."""
    if asked.operation != "GetMetricData":
        return None
    return "200 OK", {"MetricDataResults": [{"Id": f"q{n}", "Timestamps": [], "Values": []} | result for n in range(3)]}


@pytest.mark.parametrize(("status", "reason"), [("InternalError", "connect"), ("Forbidden", "permission")])
def test_an_empty_answer_that_is_an_error(world: World, hand: HandClock, status: str, reason: str) -> None:
    """CloudWatch says 200 OK and that it could not: that is a failure, and what it missed is counted later."""
    world.queue("mail")
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        world.measured("mail", SENT, {minute(hand, -number): 10 for number in range(10)})
        world.cloud.mood = lambda asked: answered(asked, StatusCode=status)
        hand.pass_(360)
        polled(app)
        assert state(app, "cloudwatch", "sqs").reason == reason
        world.cloud.well()
        polled(app)
        assert value(app, "sqs_messages_sent_total", queue="mail") == 70


@pytest.mark.parametrize(
    "result",
    [
        {"Id": "zzz"},
        {"Timestamps": [1_800_000_000.0]},
        {"Timestamps": [9e99], "Values": [1]},
        {"Timestamps": [1_800_000_000.0], "Values": ["NaN"]},
        {"Timestamps": [1_800_000_000.0], "Values": [-50]},
        {"Timestamps": [1_800_000_000.0], "Values": [1e300]},
        {"Timestamps": [1_800_000_000.0], "Values": [None]},
        {"Timestamps": "today", "Values": "many"},
    ],
    ids=str,
)
def test_odd_numbers_are_malformed(world: World, result: dict[str, Any]) -> None:
    """An answer that makes no sense is that, not a bug of ours, and spoils no total."""
    world.queue("mail")
    with watch(world, queues={"mail": {}}, **ON) as app:
        world.cloud.mood = lambda asked: answered(asked, **result)
        polled(app)
        assert state(app, "cloudwatch", "sqs").reason == "malformed"
