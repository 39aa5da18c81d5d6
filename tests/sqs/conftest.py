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
    clouds: list[Cloud] = []

    def around(inner):  # type: ignore[no-untyped-def]
        clouds.append(Cloud(inner))
        return clouds[-1]

    with Aws(around=around) as aws:
        yield World(aws, clouds[-1])


@pytest.fixture
def world(aws_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The services, with nothing in them; the exporter has credentials."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    aws_world.reset()
    return aws_world


@pytest.fixture
def hand() -> HandClock:
    """The clock of this test."""
    return HandClock()
