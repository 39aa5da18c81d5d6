"""The settings of the documentation, as they are written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import config
from exporter.errors import ConfigError

from ..world import database_of
from .complaints import complaint, complaints, load

EXAMPLE = """
web: {listen: "0.0.0.0:10087", config_file: web.yml}       # TLS and basic auth in the format of the toolkit
connections:
  database:                                                # the connection's name in config/queue.php
    driver: database
    dsn: postgresql://queue_exporter@db.internal/app       # URL or keyword form; or the PG* variables
    password_file: secret
    schema: public
    table: jobs
    failed_table: failed_jobs
    retry_after: 90s                                       # Laravel's default; 60 if the key is missing there
    target_wait: 60s                                       # none by default
    interval: 15s
    timeout: 2s                                            # of one question
    queues:
      default: {}
      exports: {connection: database-long, retry_after: 25m, target_wait: 15m}   # a second connection on the table
    pools:
      default: {application_name: "worker-*", timeout: 60s, queues: [default]}
      web: {role: app_web}
    cache: {table: cache, prefix: laravel_cache_}          # where queue:restart and queue:pause are kept
clock: {ntp: [time1.internal, time2.internal], interval: 64s}
"""


def test_the_example(tmp_path: Path) -> None:
    """Every setting of the example arrives with its meaning."""
    (tmp_path / "queue.yml").write_text(EXAMPLE)
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{prometheus: $2y$10${'a' * 53}}}")
    (tmp_path / "secret").write_text("hunter2\n")
    settings = config.load(tmp_path / "queue.yml", {})
    database = database_of(settings)
    assert list(settings.web.config_file.basic_auth_users) == ["prometheus"]
    assert database.parameters() == {
        "host": "db.internal", "dbname": "app", "user": "queue_exporter", "password": "hunter2",
    }  # fmt: skip
    assert [database.retry_after_of(queue) for queue in ("default", "exports", "found")] == [90, 1500, 90]
    assert [database.target_wait_of(queue) for queue in ("default", "exports", "found")] == [60, 900, 60]
    assert [database.connection_of(queue, "database") for queue in ("default", "exports")] == [
        "database",
        "database-long",
    ]
    worker, web = database.pools.values()
    assert (worker.application_name, worker.timeout, worker.queues, web.role) == (
        "worker-*",
        60,
        ("default",),
        "app_web",
    )
    assert database.cache
    assert database.cache.prefix == "laravel_cache_"
    assert (settings.clock.ntp, settings.clock.interval) == (("time1.internal", "time2.internal"), 64)


def test_parts_that_can_be_switched_off() -> None:
    """Null means none: no failed_jobs table, no cache."""
    database = database_of(load("connections: {d: {driver: database, failed_table: null, cache: null}}"), "d")
    assert (database.failed_table, database.cache) == (None, None)


def test_two_places_cannot_give_one_name() -> None:
    """Laravel's name of a connection stands in the labels: two queues under one name would be taken for one."""
    shared = "queues: {exports: {connection: long}}"
    problem = complaint(
        f"connections: {{a: {{driver: database, {shared}}}, long: {{driver: database, queues: {{exports: }}}}}}"
    )
    path = "connections.a.queues.exports.connection"
    assert problem == f"{path}: expected a name that no other connection uses, and long does"
    problem = complaint(f"connections: {{a: {{driver: database, {shared}}}, b: {{driver: database, {shared}}}}}")
    path = "connections.b.queues.exports.connection"
    assert problem == f"{path}: expected a name that no other connection uses, and a does"


def test_queues_of_one_place_share_a_name() -> None:
    """Two queues on Laravel's second connection, and one that names its own connection."""
    assert complaints(
        "connections: {a: {driver: database, queues: {x: {connection: b}, y: {connection: b}, z: {connection: a}}}}"
    ) == []  # fmt: skip


def test_complaints_can_be_raised_from_data() -> None:
    """Settings need no file: the demo makes its own."""
    with pytest.raises(ConfigError, match="expected a mapping with the key connections at the top"):
        config.parse([])
