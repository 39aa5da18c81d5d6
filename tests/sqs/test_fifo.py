"""Message groups on the real protocol: what a FIFO queue lets run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from exporter.app import App
from exporter.demo.fargate.aws import EcsService
from exporter.status import report

from ..world import poll, value
from .cloud import World
from .watching import watch

TASKS = 3
Polled = Callable[..., App]
QUEUE = {"ecs": {"cluster": "workers", "service": "orders"}}


@pytest.fixture
def polled(world: World) -> Iterator[Polled]:
    """An exporter that has polled some times while three consumers work on a FIFO queue with so many groups."""
    with ExitStack() as ended:

        def polled(groups: int, messages: int = 12, times: int = 3) -> App:
            world.reset()
            url = world.queue("orders.fifo", messages, groups, VisibilityTimeout="600")
            world.aws.ecs.services["workers", "orders"] = EcsService(TASKS, TASKS)
            for _ in range(TASKS):
                world.receive(url)
            watching = ended.enter_context(watch(world, queues={"orders.fifo": QUEUE}))
            for _ in range(times):
                poll(watching, source="sqs")
            return watching

        yield polled


@pytest.mark.parametrize(("groups", "in_flight"), [(1, 1), (2, 2), (3, 3), (6, 3)])
def test_concurrency_is_the_lower_of_groups_and_tasks(polled: Polled, groups: int, in_flight: int) -> None:
    """One group and three consumers: in flight 1. Three groups: 3. What is visible hides it."""
    app = polled(groups)
    assert value(app, "jobs", queue="orders.fifo", state="reserved") == in_flight
    assert value(app, "jobs", queue="orders.fifo", state="ready") == 12 - in_flight
    assert value(app, "ecs_idle_tasks", queue="orders.fifo") == TASKS - in_flight


def test_idle_tasks_are_told_after_three_polls(polled: Polled) -> None:
    """Tasks without a job while jobs are ready: chance at one poll, too few groups at three."""
    assert value(polled(1, times=2), "ecs_idle_tasks", queue="orders.fifo") is None
    (finding,) = report(polled(1).board, runbooks=("LaravelQueueFifoStuck",)).findings
    assert (finding.where, finding.says) == ("sqs/orders.fifo", "2 tasks without a job while jobs are ready")


def test_tasks_without_work_are_no_trouble(polled: Polled) -> None:
    """With no more ready jobs than tasks, an idle task is what one wants to have."""
    assert value(polled(1, messages=4), "ecs_idle_tasks", queue="orders.fifo") == 0
