"""Message groups on the real protocol: what a FIFO queue lets run at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.demo.fargate.aws import EcsService
from exporter.status import report

from ..world import poll, value
from .cloud import World
from .watching import watch

TASKS = 3
QUEUE = {"ecs": {"cluster": "workers", "service": "orders"}}


def polled(world: World, groups: int, messages: int = 12, times: int = 3) -> Any:
    """An exporter that has polled while three consumers work on a FIFO queue with so many groups."""
    url = world.queue("orders.fifo", messages, groups, VisibilityTimeout="600")
    world.aws.ecs.services["workers", "orders"] = EcsService(TASKS, TASKS)
    for _ in range(TASKS):
        world.receive(url)
    app = watch(world, queues={"orders.fifo": QUEUE})
    watching = app.__enter__()
    for _ in range(times):
        poll(watching, source="sqs")
    app.__exit__(None, None, None)
    return watching


@pytest.mark.parametrize(("groups", "in_flight"), [(1, 1), (2, 2), (3, 3), (6, 3)])
def test_concurrency_is_the_lower_of_groups_and_tasks(world: World, groups: int, in_flight: int) -> None:
    """One group and three consumers: in flight 1. Three groups: 3. What is visible hides it."""
    app = polled(world, groups)
    assert value(app, "jobs", queue="orders.fifo", state="reserved") == in_flight
    assert value(app, "jobs", queue="orders.fifo", state="ready") == 12 - in_flight
    assert value(app, "ecs_idle_tasks", queue="orders.fifo") == TASKS - in_flight


def test_idle_tasks_are_told_after_three_polls(world: World) -> None:
    """Tasks without a job while jobs are ready: chance at one poll, too few groups at three."""
    assert value(polled(world, 1, times=2), "ecs_idle_tasks", queue="orders.fifo") is None
    world.reset()
    (finding,) = report(polled(world, 1).board, runbooks=("LaravelQueueFifoStuck",)).findings
    assert (finding.where, finding.says) == ("sqs/orders.fifo", "2 tasks without a job while jobs are ready")


def test_tasks_without_work_are_no_trouble(world: World) -> None:
    """With no more ready jobs than tasks, an idle task is what one wants to have."""
    assert value(polled(world, 1, messages=4), "ecs_idle_tasks", queue="orders.fifo") == 0
