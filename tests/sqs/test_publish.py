"""The backlog per task in CloudWatch: off unless asked for, and only fresh numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from exporter import app as application
from exporter.demo.fargate.aws import EcsService

from ..world import HandClock, poll, state, value
from .cloud import World, error
from .watching import settings, watch

WORKER = {"ecs": {"cluster": "workers", "service": "mail"}}
ON: dict[str, Any] = {"publish": "true", "suffix": "-prod", "queues": {"mail": WORKER}}


def published(world: World) -> dict[str, list[float]]:
    """What CloudWatch was told, by queue."""
    now = datetime.fromtimestamp(1_800_000_000, UTC)
    with world.unseen():
        found = world.client("cloudwatch").list_metrics(Namespace="Custom/QueueWorker")["Metrics"]
        return {
            metric["Dimensions"][0]["Value"]: world.client("cloudwatch").get_metric_data(
                MetricDataQueries=[{"Id": "a", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}],
                StartTime=now - timedelta(hours=1),
                EndTime=now + timedelta(hours=1),
                ScanBy="TimestampAscending",
            )["MetricDataResults"][0]["Values"]
            for metric in found
        }


def working(world: World) -> None:
    """Eight messages and two tasks."""
    world.queue("mail-prod", 8)
    world.aws.ecs.services["workers", "mail"] = EcsService(2, 2)


def test_off_unless_asked_for(world: World) -> None:
    """Nothing is written to the account by itself."""
    working(world)
    with watch(world, suffix="-prod", queues={"mail": WORKER}) as app:
        poll(app, source="sqs")
        assert "PutMetricData" not in world.cloud.operations()
        assert value(app, "published_backlog_per_task", queue="mail") is None


def test_each_minute_one_number(world: World, hand: HandClock) -> None:
    """Under the queue's name in SQS, once for each poll of the queues and tasks."""
    working(world)
    with watch(world, hand.clock, **ON) as app:
        for running in (2, 4):
            world.aws.ecs.services["workers", "mail"].running = running
            poll(app, source="sqs")
            hand.pass_(60)
        assert published(world) == {"mail-prod": [4, 2]}
        assert value(app, "published_backlog_per_task", queue="mail") == 2
        assert world.cloud.operations().count("PutMetricData") == 2


def test_an_old_number_is_not_published(world: World, hand: HandClock) -> None:
    """While queues or tasks do not answer, CloudWatch is told nothing, so that nobody scales by the past."""
    working(world)
    with watch(world, hand.clock, **ON) as app:
        poll(app, source="sqs")
        for silent in ("GetQueueAttributes", "DescribeServices"):
            hand.pass_(60)
            world.cloud.mood = lambda asked, silent=silent: (  # type: ignore[misc]
                error("AccessDenied") if asked.operation == silent else None
            )
            poll(app, source="sqs")
            assert published(world) == {"mail-prod": [4]}
            assert value(app, "published_backlog_per_task", queue="mail") is None
            assert state(app, "publish", "sqs").notes == (
                "there is no fresh backlog per task, so nothing was published",
            )


def test_a_queue_of_another_region_is_told_there(world: World, hand: HandClock) -> None:
    """Each region's CloudWatch gets the numbers of its own queues."""
    working(world)
    far = "https://sqs.us-east-1.amazonaws.com/123456789012/far"
    with world.unseen():
        world.client("sqs", "us-east-1").create_queue(QueueName="far")
    with watch(world, hand.clock, **ON | {"queues": {"mail": WORKER, far: WORKER}}) as app:
        poll(app, source="sqs")
        told = [asked for asked in world.cloud.asked if asked.operation == "PutMetricData"]
        places = {asked.headers["authorization"].split("/")[2]: asked.body for asked in told}
        assert {region: "far" in body for region, body in places.items()} == {"eu-west-1": False, "us-east-1": True}


def test_a_publication_that_fails_fails_alone(world: World) -> None:
    """Denied, it is down by name; what was measured is shown."""
    working(world)
    world.cloud.mood = lambda asked: error("AccessDenied") if asked.operation == "PutMetricData" else None
    with watch(world, **ON) as app:
        poll(app, source="sqs")
        assert state(app, "publish", "sqs").reason == "permission"
        assert value(app, "backlog_per_task", queue="mail") == 4


def test_who_only_looks_writes_nothing(world: World) -> None:
    """`once`, and `status` on its own, publish nothing whatever the settings say."""
    working(world)
    once = application.build(settings(world, **ON), once=True)
    once.poll_once()
    assert value(once, "backlog_per_task", queue="mail") == 4
    assert "PutMetricData" not in world.cloud.operations()


def test_a_number_is_published_with_the_time_of_its_counting(world: World, hand: HandClock) -> None:
    """Between counting and telling lie seconds; after two minutes it is the past, and nobody scales by that."""
    working(world)
    with watch(world, hand.clock, **ON) as app:
        poll(app, "queues", "ecs", source="sqs")
        counted = hand.wall
        hand.pass_(100)
        poll(app, "publish", source="sqs")
        (body,) = (asked.body for asked in world.cloud.asked if asked.operation == "PutMetricData")
        assert str(int(counted)) in body or datetime.fromtimestamp(counted, UTC).strftime("%Y-%m-%dT%H:%M:%S") in body
        poll(app, "queues", "ecs", source="sqs")
        hand.pass_(121)
        poll(app, "publish", source="sqs")
        assert world.cloud.operations().count("PutMetricData") == 1
