"""AWS on this machine, emptied for each test."""

from __future__ import annotations

import pytest

from exporter.demo.fargate.aws import CREDENTIALS

from ..world import HandClock
from .cloud import World


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
