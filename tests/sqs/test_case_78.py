"""Beside another source, and before several scrapers."""

from __future__ import annotations

from typing import Any

import psycopg

from exporter import app as application
from exporter import config

from ..world import add_jobs, close, poll, value
from .cloud import World
from .watching import settings, watch


def test_case_78_aws_out_of_reach_hides_no_database(world: World, dsn18: str, db18: psycopg.Connection[Any]) -> None:
    """Case 78: with AWS down, the database's series are complete, and nothing of the queues is shown."""
    add_jobs(db18, ("default", None, 5))
    connections = {
        "database": {"driver": "database", "dsn": dsn18},
        "sqs": settings(world, queues={"mail": {}}, endpoint_url="http://127.0.0.1:9").connections["sqs"].model_dump(),
    }
    app = application.build(config.parse({"connections": connections}))
    poll(app, source="sqs")
    poll(app)
    assert value(app, "jobs", connection="database", queue="default", state="ready") == 1
    assert value(app, "jobs", connection="sqs", state="ready") is None
    assert value(app, "source_errors_total", source="sqs", collector="queues", reason="refused") == 1
    close(app)


def test_case_78_scrapes_cost_no_request(world: World) -> None:
    """Case 78: two scrapers see the same values, and AWS is asked as often as for none."""
    world.queue("mail", 3)
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        pages = [app.exposition.page("text").partition(b"process_")[0] for _ in range(50)]
        assert len(world.cloud.asked) == 1
        assert len(set(pages)) == 1
