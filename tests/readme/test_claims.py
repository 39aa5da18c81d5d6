"""What the README and its page on PostgreSQL tell people to run is run, and what they say comes true."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import yaml

from exporter import config
from exporter.demo.postgres import Postgres

from ..world import add_jobs, database_of, poll, state, states, value, watched
from .blocks import DOCS, README, block
from .tables import METRICS

Db = psycopg.Connection[Any]


def as_role(dsn: str) -> str:
    """The same database for the README's role."""
    return dsn.replace("postgres@", "queue_exporter:change-me@", 1)


def drop_role(db: Db) -> None:
    db.execute("DROP OWNED BY queue_exporter; DROP ROLE queue_exporter")


def test_role_can_do_all_that_is_asked(dsn: str, db: Db) -> None:
    """With the role that the README makes every collector is up, and none has anything to complain about."""
    db.execute(block("sql", "CREATE ROLE"))
    try:
        with watched(as_role(dsn), queues={"default": {}}) as app:
            poll(app)
            for collector, said in states(app).items():
                assert said.up, (collector, said.error)
                assert not said.notes
            assert value(app, "jobs", queue="default", state="ready") == 0
    finally:
        drop_role(db)


def test_role_can_do_nothing_else(dsn: str, db: Db) -> None:
    """The README's role can neither change nor remove a job."""
    db.execute(block("sql", "CREATE ROLE"))
    add_jobs(db, ("default", None, 1))
    try:
        with psycopg.connect(as_role(dsn), autocommit=True) as limited:
            for forbidden in ("DELETE FROM jobs", "UPDATE jobs SET attempts = 9", "TRUNCATE jobs", "DROP TABLE jobs"):
                try:
                    limited.execute(forbidden)
                except psycopg.errors.InsufficientPrivilege:
                    continue
                raise AssertionError(f"{forbidden} went through")
    finally:
        drop_role(db)


def test_without_pg_monitor_the_rest_is_there(dsn: str, db: Db) -> None:
    """Without pg_monitor jobs, tuples, sizes and workers stay; what is hidden is absent, and a note says so."""
    db.execute(block("sql", "CREATE ROLE").replace("GRANT pg_monitor TO queue_exporter;", ""))
    pools = {"default": {"application_name": "worker-*", "queues": ["default"]}}
    try:
        with watched(as_role(dsn), pools=pools) as app:
            poll(app)
            assert value(app, "workers", pool="default") == 0
            assert value(app, "table_dead_tuples") == 0
            assert value(app, "table_size_bytes", part="heap") == 0
            assert value(app, "database_connection_usage_ratio") is None
            assert value(app, "database_connections", pool="default", state="idle") is None
            assert "pg_monitor" in state(app, "activity").notes[0]
    finally:
        drop_role(db)


def test_indexes_are_used_once_they_exist(dsn: str, db: Db) -> None:
    """The two indexes that the page on PostgreSQL offers are found, and the jobs table itself is not read any more."""
    for statement in block("sql", "CREATE INDEX", DOCS / "postgresql.md").strip().split("\n"):
        db.execute(statement)
    add_jobs(db, *[("default", None, age) for age in range(2000)])
    db.execute("VACUUM (ANALYZE) jobs")

    def passes() -> int:
        db.execute("SELECT pg_stat_force_next_flush()")
        row = db.execute("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'jobs'").fetchone()
        return int(row[0]) if row else -1

    before = passes()
    with watched(dsn) as app:
        poll(app, "jobs")
        assert value(app, "jobs", queue="default", state="ready") == 2000
    assert passes() == before


def test_costs_in_short_are_those_of_the_table() -> None:
    """The README names a few of the figures that the page on PostgreSQL has from the benchmark."""
    readme, page = (path.read_text("utf-8") for path in (README, DOCS / "postgresql.md"))
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| \d", line)]
    took = {(row[0], row[1]): row[2] for row in rows}
    short = " ".join(readme.partition("## What it costs the database")[2].partition("\n## ")[0].split())
    for rows_in_all in ("100,000", "1,000,000"):
        without, with_them = took[rows_in_all, "no"], took[rows_in_all, "yes"]
        assert re.search(rf"{rows_in_all} rows (in `jobs` the question about the jobs|it) took {without} ms, or", short)
        assert f" or {with_them} ms" in short
    assert max(float(each) for row in rows for each in row[4:-1]) < 3
    assert "No other question took 3 ms" in short
    for figure in (r"12 to 49 ms", r"took 1\.8 ms", r"resident memory was 53 MiB"):
        assert re.search(figure, short)
        assert re.search(figure, " ".join(page.split()))


def test_settings_are_accepted(tmp_path: Path) -> None:
    """The README's settings file is one, and its second queue belongs to a second connection."""
    text = block("yaml", "driver: database")
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    (tmp_path / "file.yml").write_text(text.replace("/run/secrets/queue-exporter", str(secret)))
    settings = config.load(tmp_path / "file.yml", {})
    connection = database_of(settings)
    assert connection.connection_of("exports", "database") == "database-long"
    assert connection.retry_after_of("exports") == 1500
    assert connection.pools["default"].queues == ("default",)


def test_scrape_configuration_is_one(tmp_path: Path) -> None:
    """Prometheus itself accepts the README's scrape configuration."""
    (tmp_path / "prometheus.yml").write_text(block("yaml", "scrape_configs"))
    command = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert yaml.safe_load(block("yaml", "scrape_configs"))["scrape_configs"][0]["job_name"] == "laravel-queue-exporter"


def test_alerts_are_rules_on_metrics_that_exist(tmp_path: Path) -> None:
    """Prometheus accepts the expressions to begin with, and every metric in them is one of ours."""
    page = DOCS / "alerts.md"
    expressions = (block("promql", "target_wait", page) + block("promql", "past_timeout", page)).strip().split("\n")
    rules = [{"alert": f"First{n}", "expr": expression} for n, expression in enumerate(expressions)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "first", "rules": rules}]}))
    command = ["promtool", "check", "rules", str(tmp_path / "rules.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    named = {name for expression in expressions for name in re.findall(r"laravel_queue_\w+", expression)}
    assert named <= {metric.name for metric in METRICS}
    assert len(expressions) == 6 + 10


def test_versions_are_those_that_were_run(postgres18: Postgres, postgres_debian: Postgres) -> None:
    """The PostgreSQL versions that the README names are those that the tests have run."""
    said = README.read_text("utf-8").partition("## Versions")[2]
    for server in (postgres18, postgres_debian):
        with psycopg.connect(server.dsn()) as connection:
            major = connection.info.server_version // 10000
            assert f"PostgreSQL {major}" in said or f"and {major}" in said
