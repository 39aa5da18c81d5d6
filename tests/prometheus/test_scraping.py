"""A real Prometheus scrapes the real exporter: everything arrives, unchanged, and costs the database nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

import psycopg
import pytest

from exporter import exposition, queues
from exporter.demo import laravel
from exporter.demo.postgres import Postgres
from exporter.sources.clock import source as clock
from exporter.sources.database import source as database

from ..conftest import new_database
from ..patience import until
from ..world import add_jobs
from .prometheus import Prometheus
from .serving import Serving

READY = {"default": 3.0, 'a"b\\c\nd': 2.0, "очередь-🚀": 1.0, " ": 4.0}
STILL = '{__name__=~"laravel_queue_.+", source!="clock", reference=""}'  # all but what is polled during the tests
PROMTOOL = ("promtool", "check", "metrics")
SETTINGS: dict[str, Any] = {"interval": "1h", "target_wait": "30s", "queues": {"mail": None, "}'{": None}}


class Scraped(NamedTuple):
    """An exporter, and two Prometheus servers: one reads OpenMetrics, the other the text format."""

    exporter: Serving
    openmetrics: Prometheus
    text: Prometheus
    server: Postgres


class TextOnly:
    """
    A relay in front of the exporter that asks for the text format, whatever the client asked for.

    This Prometheus always asks for OpenMetrics, and no setting of it changes that.
    """

    def __init__(self, exporter: Serving) -> None:
        class Relay(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.get(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in the base class
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
        self.target = f"127.0.0.1:{self.server.server_port}"
        self.thread = Thread(target=self.server.serve_forever)

    def __enter__(self) -> TextOnly:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope="module")
def scraped(postgres_debian: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """One set-up for all tests in here; the exporter polls once, at its start, so all numbers stand still."""
    for dsn in new_database(postgres_debian):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(laravel.TABLES)
            add_jobs(connection, *[(queue, None, 5) for queue, count in READY.items() for _ in range(int(count))])
        with (
            Serving(tmp_path_factory.mktemp("exporter"), dsn, **SETTINGS) as exporter,
            TextOnly(exporter) as relay,
            Prometheus(exporter.target) as openmetrics,
            Prometheus(relay.target) as text,
        ):
            for prometheus in (openmetrics, text):
                until(partial(prometheus.query, 'min(laravel_queue_source_up{source="database"}) == 1'))
            yield Scraped(exporter, openmetrics, text, postgres_debian)


@pytest.fixture(params=["openmetrics", "text"])
def prometheus(scraped: Scraped, request: pytest.FixtureRequest) -> Prometheus:
    """Each Prometheus in turn."""
    found: Prometheus = getattr(scraped, request.param)
    return found


def test_target_is_up_and_its_page_is_read_whole(scraped: Scraped, prometheus: Prometheus) -> None:
    """Prometheus finds the target healthy, reports no error, and reads every sample of the page."""
    (target,) = prometheus.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    assert prometheus.value("min_over_time(up[1m])") == 1
    assert prometheus.value("scrape_samples_scraped") == len(scraped.exporter.series())


def test_every_series_of_the_page_arrives_with_its_value(scraped: Scraped, prometheus: Prometheus) -> None:
    """What Prometheus holds is what is on the page: the same series with the same values."""
    page = {
        (name, labels): value
        for (name, labels), value in scraped.exporter.series().items()
        if name.startswith("laravel_queue_") and ("source", "clock") not in labels and "reference" not in dict(labels)
    }
    assert {(found.name, found.pairs): found.value for found in prometheus.query(STILL)} == page
    assert len(page) > 100


def test_types_and_help_texts_arrive(scraped: Scraped, prometheus: Prometheus) -> None:
    """Prometheus knows each metric as it is declared; in the text format alone a counter's name says `_total` there."""
    known = {name: (entry["type"], entry["help"]) for name, (entry,) in prometheus.ask("metadata").items()}
    ours = {name: entry for name, entry in known.items() if name.startswith("laravel_queue_")}
    total = "_total" if prometheus is scraped.text else ""
    declared = {
        metric.name.removesuffix("_total") + (total if metric.kind == "counter" else ""): (metric.kind, metric.help)
        for metric in (*exposition.METRICS, *database.METRICS, *clock.METRICS)
        if total or metric is not queues.FAILED_TOTAL
    }
    untyped = {queues.FAILED_TOTAL.name: ("unknown", queues.FAILED_TOTAL.help)}  # in OpenMetrics the gauge has its name
    assert ours == {name: (declared | (untyped if not total else {}))[name] for name in ours}
    assert {"laravel_queue_jobs", f"laravel_queue_table_rows_inserted{total}"} <= ours.keys()


def test_case_27_and_29_names_come_back_unchanged(prometheus: Prometheus) -> None:
    """Cases 27 and 29: queues with quotes, backslashes, newlines, emoji or a blank for a name keep it to the end."""
    ready = {found.labels["queue"]: found.value for found in prometheus.query('laravel_queue_jobs{state="ready"}')}
    assert ready == READY | {"mail": 0.0, "}'{": 0.0}


def test_promtool_has_nothing_to_say(scraped: Scraped) -> None:
    """`promtool check metrics` accepts the live page in silence."""
    done = subprocess.run(PROMTOOL, input=scraped.exporter.get(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_case_78_two_scrapers_see_the_same_and_ask_the_database_nothing(scraped: Scraped) -> None:
    """Case 78: however often two servers scrape, they hold the same values, and no question reaches the database."""

    def last_question() -> list[tuple[Any, ...]]:
        with psycopg.connect(scraped.server.dsn()) as connection:
            ask = "SELECT pid, query_start, state FROM pg_stat_activity WHERE application_name = 'queue-exporter'"
            return connection.execute(ask).fetchall()

    def scrapes() -> list[float]:
        return [server.value("count_over_time(up[1h])") or 0.0 for server in (scraped.openmetrics, scraped.text)]

    asked, before = last_question(), scrapes()
    assert len(asked) == 1
    until(lambda: all(now >= then + 3 for now, then in zip(scrapes(), before, strict=True)))
    assert last_question() == asked
    first, second = (server.query(STILL) for server in (scraped.openmetrics, scraped.text))
    assert [(found.labels, found.value) for found in first] == [(found.labels, found.value) for found in second]
