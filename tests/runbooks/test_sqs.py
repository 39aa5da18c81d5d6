"""The blocks of the runbooks about SQS and Fargate, run in the incident that each page is for."""

from __future__ import annotations

import pytest

from ..patience import until
from .blocks import read
from .followed import follow
from .on_aws import NEVER, on_aws

PAGES = [  # the incident in which each page's commands are run, how many tasks it asks for, a step of the scaling
    ("LaravelQueueScaleFromZeroStuck", "scale-from-zero", 1, NEVER),
    ("LaravelQueueBacklogPerTaskHigh", "backlog-per-task", 6, NEVER),
    ("LaravelQueueFifoStuck", "single-group", 1, NEVER),
    ("LaravelQueueFifoStuck", "more-tasks-than-groups", 2, NEVER),
    ("LaravelQueueDeadLettersPresent", "dead-letters", 3, NEVER),
    ("LaravelQueueEcsTasksMissing", "tasks-missing", 2, NEVER),
    ("LaravelQueueEcsTasksFlapping", "flapping", 1, 1.0),
]

ELSEWHERE = {  # what the status page, which has no memory, does not tell
    "LaravelQueueScaleFromZeroStuck",
    "LaravelQueueEcsTasksMissing",
    "LaravelQueueEcsTasksFlapping",
}
TELLING = 30.0  # seconds until the status page names what was brought about


@pytest.mark.parametrize(("name", "incident", "tasks", "step"), PAGES)
def test_page_can_be_followed(name: str, incident: str, tasks: int, step: float) -> None:
    """Every command runs, prints what the page promises, and the cure ends the incident."""
    with on_aws(incident, tasks, step) as stage:
        until(lambda: name in stage.page or name in ELSEWHERE, TELLING)
        follow(read(name), stage)
