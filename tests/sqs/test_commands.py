"""The commands with queues on SQS, as processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from exporter.demo.daemon import free_port
from exporter.demo.fargate.aws import EcsService

from ..commands.running import Serving, run
from ..commands.test_footprint import MIB, footprint
from ..patience import until
from ..world import series
from .cloud import World

WORKER = {"target_wait": "30s", "seconds_per_job": "0.5", "ecs": {"cluster": "workers", "service": "mail"}}


@pytest.fixture
def file(world: World, tmp_path: Path) -> Path:
    """Settings of an exporter of two queues, of which one has tasks."""
    world.queue("mail", 90)
    world.queue("exports", 1)
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    connection = {
        "driver": "sqs",
        "region": "eu-west-1",
        "prefix": world.aws.prefix,
        "endpoint_url": world.aws.url,
        "interval": "1s",
        "publish": "true",
        "queues": {"mail": WORKER, "exports": {"timeout": "60s"}},
    }
    settings = {"web": {"listen": f"127.0.0.1:{free_port()}"}, "connections": {"sqs": connection}}
    path = tmp_path / "queue.yml"
    path.write_text(yaml.safe_dump(settings))
    return path


def test_once_prints_all(file: Path) -> None:
    """Every collector is asked, and nothing is written to standard error."""
    done = run("--config", file, "once")
    assert (done.status, done.err) == (0, "")
    page = series(done.out.encode())
    at = (("connection", "sqs"), ("queue", "mail"))
    assert page["laravel_queue_backlog_per_task", at] == 90
    assert page["laravel_queue_acceptable_backlog_per_task", at] == 60
    assert page["laravel_queue_source_up", (("collector", "cloudwatch"), ("source", "sqs"))] == 1


def test_status_tells_what_is_over_its_limit(file: Path) -> None:
    """Without a running exporter: one poll of its own, findings of this driver in the words of all."""
    done = run("--config", file, "status")
    assert done.status == 1
    assert "sqs/mail             90 jobs waiting per task, 60 can be done in time" in done.out
    assert "sqs/workers/exports  the workers' timeout 1m, not below retry_after 30s" in done.out


def test_a_queue_without_an_answer_is_no_good_news(file: Path) -> None:
    """A queue that somebody named is not there: `once` names it and fails, and `status` calls nothing fine."""
    settings = yaml.safe_load(file.read_text("utf-8"))
    settings["connections"]["sqs"]["queues"]["exprots"] = {}
    file.write_text(yaml.safe_dump(settings))
    once, status = run("--config", file, "once"), run("--config", file, "status")
    assert (once.status, status.status) == (1, 3)
    assert once.err.startswith("queue-exporter: sqs: not_found: exprots: GetQueueAttributes: ")
    assert 'laravel_queue_jobs{connection="sqs",queue="mail",state="ready"} 90.0' in once.out
    assert status.out.startswith("BLIND: nothing may be shown of sqs/exprots\nOVER ITS LIMIT\n")


def test_check_knows_what_the_settings_know(file: Path) -> None:
    """The VisibilityTimeout is SQS's, so check says nothing of it."""
    done = run("--config", file, "check")
    assert done.status == 0
    assert "connections 1, named queues 2" in done.out


def test_memory_stays_under_120_mib(file: Path) -> None:
    """With three services' clients in memory, polled each second."""
    with Serving(file) as running:
        until(lambda: b"200 OK" in running.get("/-/ready"), 20)
        until(
            lambda: b'source_polls_total{collector="queues",source="sqs"} 5' in running.get(),
            20,
        )
        assert footprint(running).memory < 120 * MIB
        assert footprint(running).memory > 40 * MIB  # it is really in memory
        assert footprint(running).threads < 12
