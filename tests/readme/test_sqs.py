"""What the README says of SQS: its policies, its settings, its costs, and the policies for scaling."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from exporter import config
from exporter.demo.fargate.aws import EcsService
from exporter.demo.fargate.incidents import INCIDENTS
from exporter.demo.postgres import free_port
from exporter.sources.sqs import cloudwatch, publish, source
from exporter.sources.sqs.aws import OPERATIONS
from exporter.sources.sqs.settings import EACH_MINUTE, Sqs

from ..sqs.cloud import World, error
from ..sqs.conftest import credentials, world
from ..sqs.watching import watch
from ..world import poll, states
from .blocks import README, block, blocks

__all__ = ["credentials", "world"]  # fixtures
DAYS, QUEUES = 30, 10


def said() -> str:
    """The section on SQS."""
    return README.read_text("utf-8").partition("## Watch queues on SQS")[2].partition("\n## ")[0]


def policy() -> dict[str, Any]:
    """The policy that lets it look."""
    found: dict[str, Any] = json.loads(block("json", "LookAtQueues"))
    return found


def actions() -> set[str]:
    """What the README's two policies allow, such as sqs:ListQueues."""
    looking = {action for statement in policy()["Statement"] for action in statement["Action"]}
    return looking | {json.loads(block("json", "TellTheBacklog"))["Action"]}


def asked() -> set[str]:
    """What the code asks for anywhere: `ask("sqs", …, "ListQueues", …)`."""
    calls = (
        node
        for file in Path(source.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "ask"
    )
    words = ([str(each.value) for each in call.args if isinstance(each, ast.Constant)] for call in calls)
    return {f"{service}:{operation}" for service, operation in filter(None, words)}


def sqs(tmp_path: Path) -> Sqs:
    """The README's settings."""
    (tmp_path / "file.yml").write_text(block("yaml", "driver: sqs"))
    found = config.load(tmp_path / "file.yml", {}).connections["sqs"]
    assert isinstance(found, Sqs)
    return found


def test_settings_are_accepted(tmp_path: Path) -> None:
    """The README's settings are such, and mean what it says beside them."""
    settings = sqs(tmp_path)
    first, exports, url = settings.queues
    assert settings.address_of(first) == f"{settings.prefix}/notifications-production.fifo"
    assert settings.place_of(settings.address_of(exports)).region == "eu-west-1"
    assert settings.place_of(settings.address_of(url)).region == "us-east-1"
    assert list(settings.doubts()) == []


def test_policies_allow_what_is_asked_and_nothing_else() -> None:
    """Each operation that is ever sent is in a policy, and no other; a role that is assumed says itself by whom."""
    assert actions() == asked()
    assert {action.partition(":")[2] for action in actions()} == set(OPERATIONS) - {"AssumeRole", "other"}
    condition = json.loads(block("json", "TellTheBacklog"))["Condition"]
    assert condition == {"StringEquals": {"cloudwatch:namespace": publish.NAMESPACE}}


def test_the_policies_are_enough(world: World) -> None:
    """With everything else denied, every collector works and has nothing to complain about."""
    allowed = {action.partition(":")[2] for action in actions()}
    world.cloud.mood = lambda asked: None if asked.operation in allowed else error("AccessDenied")
    world.queue("mail")
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    queue = {"ecs": {"cluster": "workers", "service": "mail"}}
    changes: dict[str, Any] = {"prefix": None, "cloudwatch": {}, "publish": True, "discover": True}
    with watch(world, queues={"mail": queue}, **changes) as app:
        poll(app, source="sqs")
        assert len(states(app, "sqs")) == 4
        for collector, state in states(app, "sqs").items():
            assert (collector, state.error, state.notes) == (collector, "", ())


def test_costs_are_computed_from_the_default_intervals(tmp_path: Path) -> None:
    """The table's figures come from the settings' defaults and the prices that it names."""
    text, settings = said(), sqs(tmp_path)
    assert settings.cloudwatch
    polls = DAYS * 86400 / settings.interval
    looks = DAYS * 86400 / settings.cloudwatch.interval
    requests, numbers = 2 * QUEUES * polls, QUEUES * len(cloudwatch.STATISTICS) * looks
    published = DAYS * 86400 / EACH_MINUTE
    assert f"= {requests:,.0f} |" in text
    assert f"{QUEUES} queues × {len(cloudwatch.STATISTICS)} numbers × {looks:,.0f} = {numbers:,.0f} |" in text
    costs = [requests * 0.40 / 1e6, 0, numbers * 0.01 / 1e3, published * 0.01 / 1e3, QUEUES * 0.30]
    assert [float(cost) for cost in re.findall(r"\| (\d+\.\d\d) \|$", text, re.M)] == [round(cost, 2) for cost in costs]
    alone, usual = costs[0], costs[0] + costs[2]
    assert f"${alone:.2f} with `cloudwatch: null`, ${usual:.2f} as it comes, ${sum(costs):.2f} with" in text


@pytest.mark.parametrize("text", [text for text in blocks("json") if "TargetValue" in text], ids=["math", "published"])
def test_scaling_policies_are_what_aws_takes(text: str, tmp_path: Path) -> None:
    """The target is the acceptable backlog of the README's queue; the form is that of the API's own model."""
    given = json.loads(text)
    session = botocore.session.Session()
    model = session.get_service_model("application-autoscaling").operation_model("PutScalingPolicy").input_shape
    problems = ParamValidator().validate(
        {
            "PolicyName": "backlog-per-task",
            "ServiceNamespace": "ecs",
            "ResourceId": "service/queue-workers/notifications-worker",
            "ScalableDimension": "ecs:service:DesiredCount",
            "TargetTrackingScalingPolicyConfiguration": given,
        },
        model,
    )
    assert not problems.has_errors(), problems.generate_report()
    queue = sqs(tmp_path).queues["notifications.fifo"]
    assert queue.target_wait
    assert queue.seconds_per_job
    assert given["TargetValue"] == queue.target_wait / queue.seconds_per_job
    assert given["ScaleInCooldown"] > given["ScaleOutCooldown"]
    assert "notifications-production.fifo" in text
    if "Namespace" in given["CustomizedMetricSpecification"]:
        specification = given["CustomizedMetricSpecification"]
        assert (specification["Namespace"], specification["MetricName"]) == (publish.NAMESPACE, publish.NAME)
        assert [each["Name"] for each in specification["Dimensions"]] == [publish.DIMENSION]


def test_the_incidents_are_named() -> None:
    """Who has no account finds what can be rehearsed."""
    assert all(f"`{name}`" in said() or f"INCIDENT={name}`" in said() for name in INCIDENTS)


def test_without_an_account_there_is_moto(tmp_path: Path) -> None:
    """Copied and pasted, the commands start moto's server, make a queue with a job in it, and show that."""
    script = block("sh", "moto_server").replace("4566", str(free_port()))
    script = script.replace(".venv/bin/queue-exporter", f"{sys.executable} -m exporter")
    script = script.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    shell = subprocess.Popen(
        ["bash", "-c", f"{script}\nkill %1"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(README.parent)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = shell.communicate(timeout=40)
    finally:
        os.killpg(shell.pid, signal.SIGKILL) if shell.poll() is None else None
    assert 'laravel_queue_jobs{connection="sqs",queue="mail",state="ready"} 1.0' in out, err


def test_one_request_is_for_as_many_queues_as_it_says() -> None:
    """What one GetMetricData can ask for."""
    assert f"up to {cloudwatch.MOST_QUERIES} numbers: up to {cloudwatch.MOST_QUEUES} queues" in said()
