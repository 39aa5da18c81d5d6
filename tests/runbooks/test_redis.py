"""The blocks of the runbooks about Redis and Horizon, run in the incident that each page is for."""

from __future__ import annotations

import pytest

from .blocks import read
from .followed import follow
from .on_redis import on_redis

PAGES = [  # the incident in which each page's commands are run, and the queue
    ("LaravelQueueRedisMemoryHigh", "redis-memory", "default"),
    ("LaravelQueueRedisEvictionPolicy", "redis-memory", "default"),
    ("LaravelQueueRedisEvictions", "redis-memory", "default"),
    ("LaravelQueueHorizonInactive", "horizon-down", "default"),
    ("LaravelQueueHorizonPaused", "horizon-paused", "default"),
    ("LaravelQueueHorizonNoProcesses", "no-processes", "exports"),
    ("LaravelQueueHorizonNoProcesses", "overdue", "exports"),
]


@pytest.mark.parametrize(("name", "incident", "queue"), PAGES)
def test_page_can_be_followed(name: str, incident: str, queue: str) -> None:
    """Every command runs, prints what the page promises, and the cure ends the incident."""
    with on_redis(incident, queue) as stage:
        follow(read(name), stage)
