"""The world on SQS and Fargate: what the exporter shows of each incident, and of a world in which nothing is wrong."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import botocore.session
import pytest
from botocore.config import Config

from exporter import app, config
from exporter.app import App
from exporter.demo.fargate.account import about
from exporter.demo.fargate.aws import ACCOUNT, CREDENTIALS, REGION, Aws
from exporter.demo.fargate.incidents import HEALTHY, INCIDENTS
from exporter.demo.fargate.plan import CLUSTER, Fargate
from exporter.demo.fargate.run import connections
from exporter.demo.fargate.world import FargateWorld
from exporter.status import report
from exporter.terminal import text

from ..patience import until
from ..world import close, poll, value
from .command import get, started
from .test_command import PROGRAM, URL

STEP = 3.0  # seconds between two steps of the scaling, so that a busy machine sees each of them
WITHIN = 30.0  # seconds; only a slow machine needs them
QUEUE = "notifications.fifo"
Rehearse = Callable[[Fargate], AbstractContextManager[tuple[FargateWorld, App]]]


@pytest.fixture
def rehearse(monkeypatch: pytest.MonkeyPatch) -> Rehearse:
    """Brings a plan to life, with an exporter beside it that has the demo's settings."""
    for name, credential in CREDENTIALS.items():
        monkeypatch.setenv(name, credential)

    @contextmanager
    def rehearse(plan: Fargate) -> Iterator[tuple[FargateWorld, App]]:
        with Aws() as aws, FargateWorld(plan, aws, step=STEP) as world:
            watching = app.build(config.parse({"connections": connections(plan, aws.url, 5)}))
            world.fill()
            world.start()
            yield world, watching
            close(watching)

    return rehearse


def over(watching: App) -> dict[str, list[str]]:
    """What is over its limit after another poll: where → what the status page says."""
    poll(watching, source="sqs")
    found: dict[str, list[str]] = {}
    for finding in report(watching.board).findings:
        found.setdefault(finding.where, []).append(finding.says)
    return found


def shown(watching: App, name: str, **labels: str) -> float:
    """The value of a series of the incident's queue, that must be there."""
    number = value(watching, name, connection="sqs", queue=QUEUE, **labels)
    assert number is not None
    return number


def test_healthy_world_is_quiet(rehearse: Rehearse) -> None:
    """Jobs come and go, and nothing is over, or near, any limit."""
    with rehearse(HEALTHY) as (_, watching):
        for _ in range(4):
            assert over(watching) == {}
        until(lambda: over(watching) == {} and shown(watching, "jobs", state="reserved") > 0, WITHIN)
        poll(watching, source="clock")
        assert text(report(watching.board)).startswith("NOTHING IS OVER ITS LIMIT")


def test_single_group(rehearse: Rehearse) -> None:
    """One message group: of three tasks two have no job, while jobs wait and more arrive."""
    with rehearse(INCIDENTS["single-group"].plan) as (_, watching):
        until(lambda: over(watching) and shown(watching, "jobs", state="reserved") == 1, WITHIN)
        until(lambda: "2 tasks without a job while jobs are ready" in over(watching).get(f"sqs/{QUEUE}", ()), WITHIN)
        assert shown(watching, "jobs", state="ready") > 50
        assert shown(watching, "ecs_running_tasks") == 3


def test_scale_from_zero(rehearse: Rehearse) -> None:
    """No task runs and none is wanted, while the oldest job is over its target and nothing is reserved."""
    with rehearse(INCIDENTS["scale-from-zero"].plan) as (_, watching):
        late, stuck = over(watching)[f"sqs/{QUEUE}"]
        assert late.startswith("oldest job 10m")
        assert stuck.startswith("no task runs, ")
        assert shown(watching, "ecs_running_tasks") == shown(watching, "ecs_desired_tasks") == 0
        assert shown(watching, "jobs", state="reserved") == 0
        assert shown(watching, "backlog_per_task") == shown(watching, "jobs", state="ready") >= 40


def test_backlog_per_task(rehearse: Rehearse) -> None:
    """More per task than can be done in time; each task that is added takes its share, and it is told to CloudWatch."""
    plan = INCIDENTS["backlog-per-task"].plan
    with rehearse(plan) as (world, watching):
        assert any("waiting per task, 60 can be done in time" in said for said in over(watching)[f"sqs/{QUEUE}"])
        before = shown(watching, "backlog_per_task")
        assert shown(watching, "published_backlog_per_task") == before
        service, tasks = world.aws.ecs.services[CLUSTER, plan.services[0].name], shown(watching, "ecs_running_tasks")
        until(lambda: service.running > tasks, WITHIN)
        poll(watching, source="sqs")
        assert shown(watching, "backlog_per_task") < before * (tasks + 0.5) / (tasks + 1)
        assert shown(watching, "ecs_running_tasks") == service.running


def test_dead_letters(rehearse: Rehearse) -> None:
    """Messages that failed too often are put aside, more and more of them, beside a queue that looks well."""
    plan = INCIDENTS["dead-letters"].plan
    with rehearse(plan) as (world, watching):
        until(lambda: over(watching) and shown(watching, "sqs_dead_letter_messages") >= 2, WITHIN)
        assert any(said.endswith("dead letters") for said in over(watching)[f"sqs/{QUEUE}"])
        there = world.url(plan.services[0].dead_letter_queue)
        dead = {message["MessageId"] for message in world.sqs.receive_message(QueueUrl=there)["Messages"]}
        assert not dead & world.waiting[QUEUE].keys()  # or CloudWatch would be told that they grow older


def test_the_broken_template_throws_as_often_as_is_said() -> None:
    """What the incident tells people is what its queue is set to."""
    assert "thrown three times" in INCIDENTS["dead-letters"].description
    assert INCIDENTS["dead-letters"].plan.services[0].max_receives == 3


def test_workers_may_all_receive_at_once() -> None:
    """Eight tasks on one queue, and messages that are put aside meanwhile: each request has an answer."""
    session = botocore.session.Session()
    session.set_credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
    with Aws() as aws:
        config = Config(retries={"total_max_attempts": 1})
        sqs = session.create_client("sqs", REGION, endpoint_url=aws.url, config=config)
        sqs.create_queue(QueueName="dead")
        redrive = {"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:dead", "maxReceiveCount": 1}
        once = {"VisibilityTimeout": "0", "RedrivePolicy": json.dumps(redrive)}
        url = sqs.create_queue(QueueName="mail", Attributes=once)["QueueUrl"]
        for _ in range(20):
            entries = [{"Id": str(number), "MessageBody": "{}"} for number in range(10)]
            sqs.send_message_batch(QueueUrl=url, Entries=entries)
        with ThreadPoolExecutor(8) as tasks:
            list(tasks.map(lambda _: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10), range(160)))


def test_more_tasks_than_groups(rehearse: Rehearse) -> None:
    """Two groups keep two tasks busy; six more have no job, and taking them away costs nobody anything."""
    with rehearse(INCIDENTS["more-tasks-than-groups"].plan) as (world, watching):
        until(lambda: over(watching) and value(watching, "ecs_idle_tasks", connection="sqs", queue=QUEUE) == 6, WITHIN)
        assert shown(watching, "jobs", state="reserved") <= 2
        world.aws.ecs.services[CLUSTER, "notifications-worker"].desired = 2
        until(lambda: not any("without a job" in said for said in over(watching).get(f"sqs/{QUEUE}", [])), WITHIN)


def test_redelivery(rehearse: Rehearse) -> None:
    """The timeout of the workers is not below the queue's VisibilityTimeout: seen before any job ran twice."""
    with rehearse(INCIDENTS["redelivery"].plan) as (_, watching):
        said = over(watching)[f"sqs/notifications-worker/{QUEUE}"]
        assert said == ["the workers' timeout 1m, not below retry_after 30s"]


def test_flapping(rehearse: Rehearse) -> None:
    """The tasks go up and down, until somebody forbids the scaling to take any away."""
    service = replace(INCIDENTS["flapping"].plan.services[0], bursts=40)
    with rehearse(Fargate((service,))) as (world, _):
        ecs = world.aws.ecs.services[CLUSTER, service.name]
        until(lambda: ecs.desired > 1, WITHIN)
        until(lambda: ecs.desired == 1, WITHIN)
        suspended = {"DynamicScalingInSuspended": True}
        world.account.scaling.register_scalable_target(**about(service), SuspendedState=suspended)
        until(lambda: ecs.desired > 1 and world.waiting[QUEUE], WITHIN)
        until(lambda: not world.waiting[QUEUE], WITHIN)
        until(lambda: world.waiting[QUEUE], WITHIN)  # longer than a step of the scaling
        assert ecs.desired > 1


def test_tasks_missing(rehearse: Rehearse) -> None:
    """Two tasks do not come up and ECS says why; with the task definition from before they do."""
    with rehearse(INCIDENTS["tasks-missing"].plan) as (world, watching):
        ecs = world.aws.ecs.services[CLUSTER, "notifications-worker"]
        until(lambda: ecs.stopped.startswith("CannotPullContainerError"), WITHIN)
        over(watching)
        assert (shown(watching, "ecs_running_tasks"), shown(watching, "ecs_desired_tasks")) == (2, 4)
        ecs.definition = "notifications-worker:1"
        until(lambda: ecs.running == 4, WITHIN)
        assert not ecs.stopped


@pytest.mark.parametrize("name", INCIDENTS)
def test_incident_says_where_to_look(name: str) -> None:
    """Each incident has a sentence on what happens and at least one line on where one sees it."""
    incident = INCIDENTS[name]
    assert incident.description.endswith(".")
    assert incident.look_at
    assert all(line.isprintable() for line in incident.look_at)


def test_as_a_command() -> None:
    """It needs no PostgreSQL, asks no account but its own, shows the incident, and ends at Ctrl-C."""
    environment = os.environ | {"AWS_PROFILE": "production", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    with started("--incident", "scale-from-zero", program=PROGRAM, environment=environment) as demo:
        assert demo.read().startswith("starting SQS, CloudWatch and ECS in miniature")
        demo.read("incident scale-from-zero")
        until(lambda: re.search(f"sqs/{QUEUE} +oldest job 1[01]m", get(URL)), WITHIN)
        demo.interrupt()
        assert demo.end() == 0
        assert demo.lines[-1] == "stopped; nothing is left behind"
        assert not any("PostgreSQL" in line for line in demo.lines)
