"""Exit statuses against a real PostgreSQL: fine, over a limit, a question that failed, blind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.demo.daemon import free_port
from exporter.sources.database.source import COLLECTORS

from ..world import add_jobs
from .running import run, settings_file

Db = psycopg.Connection[Any]


@pytest.fixture
def settings(tmp_path: Path, dsn18: str, db18: Db) -> Path:
    """Settings that watch a database with an empty jobs table."""
    return settings_file(tmp_path, dsn18, target_wait="60s", queues={"default": None})


def test_fine(settings: Path) -> None:
    """Nothing waits: `status` and `once` end with 0."""
    status, once = run("status", "--config", settings), run("once", "--config", settings)
    assert (status.status, once.status) == (0, 0)
    assert status.out.startswith("NOTHING IS OVER ITS LIMIT\n")
    assert once.err == ""
    families = {family.name for family in text_string_to_metric_families(once.out)}
    assert {"laravel_queue_jobs", "laravel_queue_table_live_tuples", "laravel_queue_clock_offset_seconds"} <= families


def test_over_a_limit(settings: Path, db18: Db) -> None:
    """A job is held past retry_after and another waits too long: `status` says so and ends with 1, `once` with 0."""
    add_jobs(db18, ("default", 120, 200), ("default", None, 760))
    status, once = run("status", "--config", settings), run("once", "--config", settings)
    assert (status.status, once.status) == (1, 0)
    title, waiting, expired = status.out.splitlines()[:3]
    assert title == "OVER ITS LIMIT"
    assert " ".join(expired.split()).startswith("database/default 1 job held past retry_after 1m 30s")
    assert waiting.split()[:4] == ["database/default", "oldest", "job", "12m"]


def test_a_question_that_failed(settings: Path, db18: Db) -> None:
    """The table is not there: the other questions are answered, `once` names the failure and ends with 1."""
    db18.execute("DROP TABLE jobs")
    once = run("once", "--config", settings)
    assert once.status == 1
    assert once.err.startswith("queue-exporter: database: undefined_table: there is no table public.jobs (jobs)\n")
    assert once.err.endswith(" (reservations)\n")
    assert 'laravel_queue_source_up{collector="activity",source="database"} 1.0' in once.out
    assert "laravel_queue_jobs" not in once.out


def test_blind(tmp_path: Path) -> None:
    """The database is gone: nobody knows, so `status` ends with 3; `once` names the failure once and ends with 1."""
    settings = settings_file(tmp_path, f"postgresql://app@127.0.0.1:{free_port()}/app", queues={"default": None})
    status, once = run("status", "--config", settings), run("once", "--config", settings)
    assert (status.status, once.status) == (3, 1)
    assert status.out.startswith("BLIND: nothing may be shown of database/jobs\nQUEUES ")
    assert "NOTHING IS OVER" not in status.out
    (line,) = once.err.splitlines()
    assert line.startswith("queue-exporter: database: refused: ")
    assert line.endswith(f" ({', '.join(collector.name for collector in COLLECTORS)})")


def test_a_dsn_in_the_environment_is_enough(dsn18: str, db18: Db) -> None:
    """No file is needed to see what is waiting."""
    add_jobs(db18, ("mail", None, 5))
    once = run("once", env={"QUEUE_EXPORTER_DSN": dsn18})
    assert once.status == 0
    assert 'laravel_queue_jobs{connection="database",queue="mail",state="ready"} 1.0' in once.out


def test_the_variables_of_libpq_are_enough(tmp_path: Path, dsn18: str, db18: Db) -> None:
    """A connection without a DSN goes where PGHOST and the others lead."""
    add_jobs(db18, ("mail", None, 5))
    (tmp_path / "queue.yml").write_text("connections: {database: {driver: database}}")
    info = db18.info
    env = {"PGHOST": info.host, "PGPORT": str(info.port), "PGUSER": info.user, "PGDATABASE": info.dbname}
    once = run("once", "--config", tmp_path / "queue.yml", env=env)
    assert (once.status, once.err) == (0, "")
    assert 'queue="mail",state="ready"} 1.0' in once.out
