"""What the README and its page on SQS say: policies, settings, costs, and the policies for scaling."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.validate import ParamValidator

from exporter import config
from exporter.demo.daemon import free_port
from exporter.demo.fargate.aws import EcsService
from exporter.demo.fargate.incidents import INCIDENTS
from exporter.sources.sqs import cloudwatch, publish, session, source
from exporter.sources.sqs.aws import OPERATIONS
from exporter.sources.sqs.names import sqs_name
from exporter.sources.sqs.settings import EACH_MINUTE, Sqs

from ..sqs.cloud import World, error
from ..sqs.conftest import credentials, world
from ..sqs.watching import watch
from ..world import poll, states
from .blocks import DOCS, README, block, blocks

__all__ = ["credentials", "world"]  # fixtures
DAYS, QUEUES = 30, 10
PAGE = DOCS / "sqs.md"


def said() -> str:
    """The page on SQS."""
    return PAGE.read_text("utf-8")


def summary() -> str:
    """The README's section on SQS, its lines joined."""
    return " ".join(README.read_text("utf-8").partition("## Watch queues on SQS")[2].partition("\n## ")[0].split())


def policies(having: str, *pages: Path) -> list[list[dict[str, Any]]]:
    """The statements of each of the pages' policies in which this stands."""
    documents = [json.loads(text) for page in pages for text in blocks("json", page) if having in text]
    assert {document["Version"] for document in documents} == {"2012-10-17"}
    return [document["Statement"] for document in documents]


def allowed(statements: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """What these allow, such as sqs:ListQueues: of which resources, and under which condition."""
    assert {statement["Effect"] for statement in statements} == {"Allow"}
    assert all(statement.keys() <= {"Sid", "Effect", "Action", "Resource", "Condition"} for statement in statements)
    return {
        action: (statement["Resource"], statement.get("Condition"))
        for statement in statements
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def asked() -> set[str]:
    """What the code asks for anywhere: `ask("sqs", …, "GetQueueUrl", …)`, `pages("sqs", …, "ListQueues", …)`."""
    calls = (
        node
        for file in Path(source.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("ask", "pages")
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


def test_policies_allow_what_is_asked_and_nothing_else(tmp_path: Path) -> None:
    """Each operation that is ever sent is in a policy, and no other, for as few resources as AWS lets one name."""
    (looking,), (writing,) = (map(allowed, policies("LookAtQueues", page)) for page in (README, PAGE))
    assert writing.keys() - looking.keys() == {"cloudwatch:PutMetricData"}
    assert writing.keys() == asked()
    assert {action.partition(":")[2] for action in writing} == set(OPERATIONS) - {"AssumeRole", "other"}
    assert looking.items() <= writing.items()
    queues = (f"arn:aws:sqs:*:{sqs(tmp_path).account}:*", None)
    condition = {"StringEquals": {"cloudwatch:namespace": publish.NAMESPACE}}
    assert writing == dict.fromkeys(writing, ("*", None)) | {
        "sqs:GetQueueAttributes": queues,
        "sqs:GetQueueUrl": queues,
        "cloudwatch:PutMetricData": ("*", condition),
    }


def test_the_roles_of_two_accounts_fit_each_other(tmp_path: Path) -> None:
    """The role that is set is the one that may be assumed, and trusts who is said to assume it."""
    ((trust,),), ((assume,),) = policies("TrustTheExporter", PAGE), policies("AssumeTheirRole", PAGE)
    (role,) = re.findall(r"`role_arn: (\S+)`", said())
    assert allowed([assume]) == {"sts:AssumeRole": (role, None)}
    assert (trust["Effect"], trust["Action"]) == ("Allow", "sts:AssumeRole")
    principal = re.fullmatch(r"arn:aws:iam::(\d{12}):role/(\w+)", trust["Principal"]["AWS"])
    assert principal
    assert f"`{principal[2]}` in the account {principal[1]}" in said()
    text = block("yaml", "driver: sqs").replace("    suffix:", f"    role_arn: {role}\n    suffix:")
    (tmp_path / "role.yml").write_text(text)
    (connection,) = config.load(tmp_path / "role.yml", {}).connections.values()
    assert isinstance(connection, Sqs)
    assert connection.account == sqs(tmp_path).account


def test_the_policies_are_enough(world: World) -> None:
    """With everything else denied, every collector works and has nothing to complain about."""
    (writing,) = map(allowed, policies("LookAtQueues", PAGE))
    operations = {action.partition(":")[2] for action in writing}
    world.cloud.mood = lambda asked: None if asked.operation in operations else error("AccessDenied")
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
    """The table's figures follow from the default intervals and the prices beside them, and the README's from it."""
    text, settings = said(), sqs(tmp_path)
    assert settings.cloudwatch
    polls = DAYS * 86400 / settings.interval
    looks = DAYS * 86400 / settings.cloudwatch.interval
    requests, numbers = 2 * QUEUES * polls, QUEUES * len(cloudwatch.STATISTICS) * looks
    standard, fifo, listed = requests * 0.40 / 1e6, requests * 0.50 / 1e6, polls * 0.40 / 1e6
    published = DAYS * 86400 / EACH_MINUTE
    assert f"= {requests:,.0f} |" in text
    assert f"{QUEUES} queues × {len(cloudwatch.STATISTICS)} numbers × {looks:,.0f} = {numbers:,.0f} |" in text
    watched, told = numbers * 0.01 / 1e3, published * 0.01 / 1e3 + QUEUES * 0.30
    costs = [standard, fifo, listed, 0, watched, published * 0.01 / 1e3, QUEUES * 0.30]
    assert [float(cost) for cost in re.findall(r"\| (\d+\.\d\d) \|$", text, re.M)] == [round(cost, 2) for cost in costs]
    sums = (fifo, fifo + watched, fifo + watched + told)
    assert "${:.2f} with `cloudwatch: null`, ${:.2f} as it comes, ${:.2f} with".format(*sums) in " ".join(text.split())
    assert f"of {settings.interval:g} s, {QUEUES} FIFO queues with" in summary()
    assert f"cost ${sums[1]:.2f} a month, of which ${watched:.2f} are for CloudWatch's numbers." in summary()
    assert f"With `cloudwatch: null` it is ${sums[0]:.2f}, with `publish` ${sums[2]:.2f}." in summary()


@pytest.mark.parametrize(
    "text", [text for text in blocks("json", PAGE) if "TargetValue" in text], ids=["math", "published"]
)
def test_scaling_policies_are_what_aws_takes(text: str, tmp_path: Path) -> None:
    """The target is the acceptable backlog of the README's queue; the form is that of the API's own model."""
    given = json.loads(text)
    service = botocore.session.Session().get_service_model("application-autoscaling")
    model = service.operation_model("PutScalingPolicy").input_shape
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


def specification(having: str) -> dict[str, Any]:
    """What a policy tracks."""
    found: dict[str, Any] = json.loads(block("json", having, PAGE))["CustomizedMetricSpecification"]
    return found


def named(dimensions: list[dict[str, str]]) -> dict[str, str]:
    """Dimensions of a metric."""
    return {each["Name"]: each["Value"] for each in dimensions}


def test_what_is_published_is_what_is_tracked(tmp_path: Path) -> None:
    """The policy for `publish` reads the metric that is written, of the queue of the README's settings."""
    tracked = specification('"Statistic"')
    assert (tracked["Namespace"], tracked["MetricName"]) == (publish.NAMESPACE, publish.NAME)
    assert named(tracked["Dimensions"]) == {session.DIMENSION: sqs_name(sqs(tmp_path).address_of("notifications.fifo"))}
    assert tracked["Statistic"] == "Average"  # what comes twice must not count twice


@pytest.mark.parametrize(("ready", "running"), [(120, 2), (60, 1), (0, 4)])
def test_metric_math_is_the_backlog_per_task(ready: int, running: int, tmp_path: Path) -> None:
    """With AWS's own numbers for its two metrics, the one value that is returned is ready ÷ running."""
    settings = sqs(tmp_path)
    ecs = settings.queues["notifications.fifo"].ecs
    assert ecs
    queue = {"QueueName": sqs_name(settings.address_of("notifications.fifo"))}
    tasks = {"ClusterName": ecs.cluster, "ServiceName": ecs.service}
    known = {
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", *queue.items()): ready,
        ("ECS/ContainerInsights", "RunningTaskCount", *tasks.items()): running,
    }
    values, returned = {}, []
    for each in specification("Expression")["Metrics"]:
        if stat := each.get("MetricStat"):
            metric = stat["Metric"]
            at = (metric["Namespace"], metric["MetricName"], *named(metric["Dimensions"]).items())
            values[each["Id"]] = known[at]
        if each.get("ReturnData", True):
            returned.append(each["Expression"])
    (expression,) = returned
    assert eval(expression, {"__builtins__": {}}, values) == ready / running  # a division in the page


def test_the_commands_are_about_the_same_service(tmp_path: Path) -> None:
    """What is registered is the service of the README's settings, and each option is one of the API's."""
    script = block("sh", "put-scaling-policy", PAGE)
    ecs = sqs(tmp_path).queues["notifications.fifo"].ecs
    assert ecs
    assert f"service=service/{ecs.cluster}/{ecs.service}\n" in script
    service = botocore.session.Session().get_service_model("application-autoscaling")
    for command, options in re.findall(r"aws application-autoscaling ([a-z-]+) (.*(?:\\\n.*)*)", script):
        (operation,) = [name for name in service.operation_names if xform_name(name, "-") == command]
        members = {xform_name(name, "-") for name in service.operation_model(operation).input_shape.members}
        assert set(re.findall(r"--([a-z-]+)", options)) <= members
    assert "--min-capacity 1 " in script


def test_idle_is_what_it_says(tmp_path: Path) -> None:
    """Case 63: with none visible and three in flight a queue is not idle; the expression is false then."""
    (expression,) = re.findall(r"`(sum without [^`]+)`", said())
    busy = [f'{{connection="sqs",queue="mail",state="{state}"}}' for state in ("ready", "reserved", "delayed")]
    series = [
        {"series": f"laravel_queue_jobs{labels}", "values": values}
        for labels, values in zip(busy, ("0 0 0", "3 0 0", "2 2 0"), strict=True)
    ]
    idle = {"labels": '{connection="sqs",queue="mail"}', "value": 0}
    cases = [{"expr": expression, "eval_time": f"{m}m", "exp_samples": [idle][: int(m > 0)]} for m in (0, 1)]
    group = {"interval": "1m", "input_series": series, "promql_expr_test": cases}
    (tmp_path / "idle.yml").write_text(json.dumps({"tests": [group]}))
    done = subprocess.run(["promtool", "test", "rules", tmp_path / "idle.yml"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_versions_are_those_that_were_run() -> None:
    """What stood in for AWS is named, and that it was no more than that."""
    versions = README.read_text("utf-8").partition("## Versions")[2].partition("\n## ")[0]
    for library in ("botocore", "moto"):
        assert f"{library} {version(library)}" in " ".join(versions.split())
    assert "never against AWS itself" in versions


def test_the_incidents_are_named() -> None:
    """Who has no account finds what can be rehearsed."""
    assert all(f"`{name}`" in said() or f"INCIDENT={name}`" in said() for name in INCIDENTS)


def test_without_an_account_there_is_moto(tmp_path: Path) -> None:
    """Copied and pasted, the commands start moto's server, make a queue with a job in it, and show that."""
    script = block("sh", "moto_server", PAGE).replace("4566", str(free_port()))
    script = script.replace(".venv/bin/moto_server", str(Path(sys.executable).with_name("moto_server")))
    script = script.replace(" .venv/bin/queue-exporter", f" {sys.executable} -m exporter")
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
    assert f"up to {cloudwatch.MOST_QUERIES} numbers: up to {cloudwatch.MOST_QUEUES} queues" in " ".join(said().split())
