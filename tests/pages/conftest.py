"""One server for the tests that only ask it something."""

from __future__ import annotations

from collections.abc import Iterator

import bcrypt
import pytest

from exporter.queues import JOBS
from exporter.server import Server
from exporter.web import WebConfig

from .serving import board, serving

HOSTILE = '<script>alert("1")</script>&\n\x1b[2J\\'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Its pages show two queues, one of them with a name that must be escaped everywhere."""
    samples = [JOBS(3, "database", queue, "ready") for queue in ("default", HOSTILE)]
    with serving(board(samples)) as running:
        yield running


@pytest.fixture(scope="module")
def closed() -> Iterator[Server]:
    """Its pages are for those who know a password."""
    hashed = bcrypt.hashpw(b"a password", bcrypt.gensalt(4)).decode()
    with serving(board(), WebConfig.model_validate({"basic_auth_users": {"ann": hashed}})) as running:
        yield running
