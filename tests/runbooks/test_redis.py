"""The blocks of the runbooks about Redis and Horizon, run in the incident that each page is for."""

from __future__ import annotations

import pytest

from ..patience import until
from .blocks import read
from .followed import follow
from .on_redis import on_redis

PAGES = [  # the incident in which each page's commands are run, and the queue
    ("LaravelQueueRedisMemoryHigh", "redis-memory", "default"),
    ("LaravelQueueRedisFull", "redis-full", "default"),
    ("LaravelQueueRedisEvictionPolicy", "redis-memory", "default"),
    ("LaravelQueueRedisEvictions", "redis-memory", "default"),
    ("LaravelQueueHorizonInactive", "horizon-down", "default"),
    ("LaravelQueueHorizonPaused", "horizon-paused", "default"),
    ("LaravelQueueHorizonNoProcesses", "no-processes", "exports"),
    ("LaravelQueueHorizonNoProcesses", "overdue", "exports"),
]

ELSEWHERE = {"LaravelQueueRedisFull", "LaravelQueueRedisEvictions"}  # the status page tells of the memory alone
TELLING = 30.0  # seconds until the status page names what was brought about


@pytest.mark.parametrize(("name", "incident", "queue"), PAGES)
def test_page_can_be_followed(name: str, incident: str, queue: str) -> None:
    """Every command runs, prints what the page promises, and the cure ends the incident."""
    with on_redis(incident, queue) as stage:
        until(lambda: name in stage.page or name in ELSEWHERE, TELLING)
        follow(read(name), stage)
