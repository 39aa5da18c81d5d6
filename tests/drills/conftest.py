"""The database of the drills."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exporter.demo.postgres import Postgres

from .shortened import FACTOR


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL whose autovacuum looks as often as it does in life, FACTOR times as fast."""
    with Postgres(settings={"autovacuum_naptime": f"{60 // FACTOR}s"}) as server:
        yield server
