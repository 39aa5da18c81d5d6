"""What is joined from the answers of several services, and shown for as long as each of them holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from exporter.demo.fargate.aws import EcsService

from ..world import HandClock, poll, value
from .cloud import World, error
from .watching import watch

AGE = "ApproximateAgeOfOldestMessage"
WORKER: dict[str, Any] = {"target_wait": "30s", "ecs": {"cluster": "workers", "service": "mail"}}


@dataclass
class Until:
    """Lets a poller run for so long on a clock that is moved by hand."""

    hand: HandClock
    end: float

    def wait(self, timeout: float) -> bool:
        """Pass the time."""
        self.hand.pass_(timeout)
        return self.hand.mono >= self.end


def test_an_age_is_dropped_however_seldom_cloudwatch_is_asked(world: World, hand: HandClock) -> None:
    """With an interval of ten minutes the age is there for three."""
    url = world.queue("mail", 1)
    hand.wall = hand.wall // 60 * 60
    world.measured("mail", AGE, {hand.wall - 60: 80})
    with watch(world, hand.clock, queues={"mail": {}}, cloudwatch={"interval": "10m"}) as app:
        poll(app, source="sqs")
        for passed, shown in ((0, 80), (120, 80), (120, None)):
            hand.pass_(passed)
            poll(app, "queues", source="sqs")
            assert value(app, "oldest_job_age_seconds", queue="mail") == shown
        with world.unseen():
            world.client("sqs").purge_queue(QueueUrl=url)
        hand.pass_(60)
        poll(app, "queues", source="sqs")
        assert value(app, "oldest_job_age_seconds", queue="mail") == 0


def test_a_wait_that_begins_between_two_answers_of_cloudwatch_has_no_age(world: World, hand: HandClock) -> None:
    """Nothing was ready when CloudWatch was asked, forty jobs are now: no age, and never the zero of before."""
    world.queue("mail")
    with watch(world, hand.clock, queues={"mail": {}}, cloudwatch={"interval": "10m"}) as app:
        poll(app, source="sqs")
        assert value(app, "oldest_job_age_seconds", queue="mail") == 0
        world.queue("mail", 40)
        hand.pass_(60)
        poll(app, "queues", source="sqs")
        assert value(app, "oldest_job_age_seconds", queue="mail") is None


@pytest.mark.parametrize("set_back", [0, 3600])
def test_an_age_goes_by_itself(world: World, hand: HandClock, set_back: float) -> None:
    """Nobody polls, or everybody is stuck: after its three minutes the age is off the page, whatever the clock says."""
    world.queue("mail", 1)
    hand.wall = hand.wall // 60 * 60 + 30
    world.measured("mail", AGE, {hand.wall - 90: 80})
    with watch(world, hand.clock, queues={"mail": {}}, interval="5m", cloudwatch={"interval": "5m"}) as app:
        poll(app, source="sqs")
        hand.wall -= set_back
        for passed, shown in ((149, 80), (2, None)):
            hand.pass_(passed)
            assert value(app, "oldest_job_age_seconds", queue="mail") == shown
        assert value(app, "jobs", queue="mail", state="ready") == 1


def test_who_stops_answering_takes_the_age_along(world: World, hand: HandClock) -> None:
    """Without SQS the 0 of before is believed over one poll that fails, and not over two, though CloudWatch answers."""
    world.queue("mail")
    with watch(world, hand.clock, queues={"mail": {}}, cloudwatch={}) as app:
        poll(app, source="sqs")
        world.cloud.mood = lambda asked: error("AccessDenied") if asked.operation == "GetQueueAttributes" else None
        for shown in (0, None):
            hand.pass_(60)
            poll(app, source="sqs")
            assert value(app, "oldest_job_age_seconds", queue="mail") == shown
        world.cloud.well()
        poll(app, source="sqs")
        assert value(app, "oldest_job_age_seconds", queue="mail") == 0


def test_an_age_goes_with_the_jobs_that_wait(world: World, hand: HandClock) -> None:
    """Asked each second, SQS fails twice: the jobs are off the page, and with them how long they wait."""
    world.queue("mail")
    with watch(world, hand.clock, queues={"mail": {}}, interval="1s") as app:
        poll(app, source="sqs")
        world.cloud.mood = lambda asked: error("AccessDenied")
        for shown in (0, None):
            hand.pass_(1)
            poll(app, source="sqs")
            assert value(app, "jobs", queue="mail", state="ready") == shown
            assert value(app, "oldest_job_age_seconds", queue="mail") == shown


@pytest.mark.parametrize("code", ["ExpiredToken", "AccessDenied"])
def test_requests_are_told_while_all_fail(world: World, hand: HandClock, code: str) -> None:
    """Whatever AWS says for ten minutes, how often it was asked stays on the page: an alert on it needs it then."""
    world.queue("mail", 1)
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    with watch(world, hand.clock, queues={"mail": WORKER}, cloudwatch={}) as app:
        (poller,) = (each for each in app.pollers if each.source.name == "sqs")
        poller.run(Until(hand, hand.mono + 130))
        world.cloud.mood = lambda asked: error(code)
        before = value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="ok")
        for _ in range(12):
            poller.run(Until(hand, hand.mono + 47))
            assert value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="ok") == before
        assert value(app, "jobs", queue="mail", state="ready") is None


def test_requests_are_told_before_anything_was_asked(world: World) -> None:
    """Each operation and outcome is there from the start, at 0, so that none is born at 1."""
    with watch(world, queues={"mail": {}}) as app:
        assert value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="ok") == 0
        assert value(app, "oldest_job_age_seconds", queue="mail") is None


def test_a_measured_pace_is_forgotten(world: World, hand: HandClock) -> None:
    """While CloudWatch does not answer, what a job took is believed for three intervals and a half."""
    url = world.queue("mail", 3, VisibilityTimeout="7200")
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    world.receive(url)
    hand.wall = hand.wall // 60 * 60 + 1
    world.measured("mail", "NumberOfMessagesDeleted", {hand.wall // 60 * 60 + 60 * n: 100.0 for n in range(20)})
    with watch(world, hand.clock, queues={"mail": WORKER}, cloudwatch={}) as app:
        for _ in range(12):
            poll(app, source="sqs")
            hand.pass_(60)
        world.cloud.mood = lambda asked: error("AccessDenied") if asked.operation == "GetMetricData" else None
        shown = []
        for _ in range(8):
            poll(app, source="sqs")
            hand.pass_(60)
            shown.append(value(app, "acceptable_backlog_per_task", queue="mail") is not None)
        assert shown == [True] * 6 + [False] * 2


def test_a_poll_that_takes_longer_than_its_interval_hides_nothing(world: World, hand: HandClock) -> None:
    """Each second, but AWS takes five for an answer: what it says is joined all the same."""
    world.queue("mail", 10)
    world.aws.ecs.services["workers", "mail"] = EcsService(2, 2)
    with watch(world, hand.clock, queues={"mail": WORKER}, interval="1s") as app:
        poll(app, "queues", source="sqs")
        hand.pass_(5)
        poll(app, "ecs", source="sqs")
        assert value(app, "backlog_per_task", queue="mail") == 5
