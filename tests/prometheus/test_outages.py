"""What Prometheus sees while the database is slow, stopped and back."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg

from exporter.demo.postgres import Postgres

from ..patience import until
from ..world import add_jobs
from .prometheus import Prometheus
from .serving import Serving

JOBS = 'laravel_queue_jobs{queue="default", state="ready"}'
UP, FRESH, TOOK, LAST_SUCCESS = (
    f'laravel_queue_source_{what}{{collector="jobs"}}'
    for what in ("up", "fresh", "poll_duration_seconds", "last_success_timestamp_seconds")
)
VIEW = "CREATE OR REPLACE VIEW seen AS SELECT jobs.* FROM jobs, pg_sleep({seconds}) AS slept"


def test_values_vanish_while_the_database_is_gone_and_come_back(own_server: Postgres, tmp_path: Path) -> None:
    """A stopped database: up is 0 at once, the second failure withdraws the values, and they return by themselves."""
    with psycopg.connect(own_server.dsn(), autocommit=True) as connection:
        add_jobs(connection, ("default", None, 5), ("default", None, 5))
    with Serving(tmp_path, own_server.dsn(), interval="1s") as exporter, Prometheus(exporter.target) as prometheus:
        until(lambda: prometheus.value(JOBS) == 2)
        own_server.stop(signal.SIGINT)
        until(lambda: prometheus.value(UP) == 0)
        until(lambda: prometheus.query(JOBS) == [])
        assert prometheus.value(FRESH) == 0
        own_server.start()
        with psycopg.connect(own_server.dsn(), autocommit=True) as connection:
            add_jobs(connection, ("default", None, 5))
        until(lambda: prometheus.value(JOBS) == 3)
        assert (prometheus.value(UP), prometheus.value(FRESH)) == (1, 1)

        shown, fresh = (dict(prometheus.query(f"{series}[1h]")[0].samples) for series in (JOBS, FRESH))
        assert shown.keys() == {at for at, is_fresh in fresh.items() if is_fresh}, (
            "a value is fresh, or not on the page"
        )
        assert set(fresh.values()) == {0, 1}
        assert set(shown.values()) == {2, 3}
        assert prometheus.value("min_over_time(up[1h])") == 1
        for counter in prometheus.query('{__name__=~"laravel_queue_.+_total"}[1h]'):
            values = [value for _, value in counter.samples]
            assert values == sorted(values), counter.labels


def test_case_11_slow_question_outlives_the_scrapes(own_server: Postgres, tmp_path: Path) -> None:
    """Case 11: a question that takes longer than a scrape may is answered, while every scrape is answered at once."""
    settings = {"table": "seen", "timeout": "10s", "interval": "1s"}
    with psycopg.connect(own_server.dsn(), autocommit=True) as connection:
        connection.execute(VIEW.format(seconds=0))
        add_jobs(connection, ("default", None, 5))
        with Serving(tmp_path, own_server.dsn(), **settings) as exporter, Prometheus(exporter.target) as prometheus:
            until(lambda: prometheus.value(JOBS) == 1)
            connection.execute(VIEW.format(seconds=3))
            add_jobs(connection, ("default", None, 5))
            until(lambda: prometheus.value(JOBS) == 2)
            until(lambda: (prometheus.value(TOOK) or 0) > 3)
            answered_at = prometheus.value(LAST_SUCCESS) or 0
            scrapes = [at for at, _ in prometheus.query("up[1h]")[0].samples]
            assert sum(answered_at - 3 < at < answered_at for at in scrapes) >= 2
            assert prometheus.value("min_over_time(up[1h])") == 1
            assert prometheus.value("max_over_time(scrape_duration_seconds[1h]) < 1")
