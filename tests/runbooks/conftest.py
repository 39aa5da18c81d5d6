"""A stage for each incident, kept for all the pages that are about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from exporter.demo.postgres import Postgres

from ..demo.rehearsal import Servers
from .stage import Stage, incident

Staged = Callable[[str], Stage]


@pytest.fixture(scope="module")
def staged(postgres18: Postgres) -> Iterator[Staged]:
    """Brings an incident about; the one before ends when another is asked for."""
    servers, current, stack = Servers(postgres18.binaries), dict[str, Stage](), ExitStack()

    def stage(name: str) -> Stage:
        if name not in current:
            stack.close()
            current.clear()
            current[name] = stack.enter_context(incident(servers, name))
        return current[name]

    with servers.started, stack:
        yield stage
