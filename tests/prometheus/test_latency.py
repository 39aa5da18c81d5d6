"""A scrape waits for nobody, whatever becomes of the database. `python -m benchmarks.scrape` says how fast it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from exporter.demo.postgres import Postgres

from ..conftest import debian_postgres
from ..patience import until
from ..world import create_jobs
from .latency import SETTINGS, in_trouble, of_jobs, scrape
from .serving import Serving
from .troubles import ROLE, TROUBLES, Trouble, create_role, hangs

SCRAPES = 1000
SLOWEST = 0.05  # seconds for 99 in 100: ten times what an idle machine takes, and far below any poll that hangs


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server in which trouble can be made."""
    with Postgres(debian_postgres()) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            create_jobs(connection)
            create_role(connection)
        yield server


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
def test_no_scrape_waits_while_the_database_is_in_trouble(server: Postgres, tmp_path: Path, trouble: Trouble) -> None:
    """The database hangs, refuses, is locked or gone: a thousand scrapes of a thousand series are answered."""
    with Serving(tmp_path, server.dsn(user=ROLE), **SETTINGS) as exporter:
        until(lambda: of_jobs(exporter.series(), "up") == 1)
        with trouble(server):
            until(lambda: in_trouble(exporter.series()))
            scrapes = scrape(exporter.target, SCRAPES)
        assert min(len(scrapes.first), len(scrapes.last)) >= 1000
        assert scrapes.quantile(0.99) < SLOWEST
        if trouble is hangs:
            polls = [of_jobs(page, "polls_total") for page in (scrapes.first, scrapes.last)]
            assert polls[0] == polls[1], "one poll hung during all of the scrapes"
