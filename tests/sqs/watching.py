"""An exporter of the queues on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from exporter import app, config
from exporter.app import App
from exporter.timing import Clock

from ..world import close
from .cloud import World


def settings(world: World, **changes: Any) -> config.Config:
    """Settings of one connection called `sqs`."""
    connection = {
        "driver": "sqs",
        "region": "eu-west-1",
        "prefix": world.aws.prefix,
        "endpoint_url": world.aws.url,
        "cloudwatch": None,
    } | changes
    return config.parse({"connections": {"sqs": connection}})


@contextmanager
def watch(world: World, clock: Clock = Clock(), **changes: Any) -> Iterator[App]:
    """An exporter that is wired but not running: poll it with `poll(app, source="sqs")`."""
    watching = app.build(settings(world, **changes), clock)
    try:
        yield watching
    finally:
        close(watching)
