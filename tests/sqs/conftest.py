"""AWS on this machine, started once and emptied for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exporter.demo.aws import CREDENTIALS, Aws

from ..world import HandClock
from .cloud import Cloud, World


@pytest.fixture(scope="session")
def aws_world() -> Iterator[World]:
    """The services, once a session."""
    with Aws() as aws:
        aws.front = cloud = Cloud(aws.front)
        yield World(aws, cloud)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter finds these and no others."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def world(aws_world: World) -> World:
    """The services, with nothing in them."""
    aws_world.reset()
    return aws_world


@pytest.fixture
def hand() -> HandClock:
    """The clock of this test."""
    return HandClock()
