"""What the running exporter takes of its machine: memory, threads, descriptors, time to start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from ..patience import until
from ..world import add_jobs
from .running import Serving, settings_file

MIB = 1024  # KiB
SCRAPES = 10_000
ACCEPT = ("text/plain", "application/openmetrics-text")
ENCODING = ("gzip", "identity")


class Footprint(NamedTuple):
    """Of one process."""

    memory: int  # KiB, resident
    threads: int
    descriptors: int


def footprint(exporter: Serving) -> Footprint:
    """What it takes now."""
    folder = Path(f"/proc/{exporter.process.pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Footprint(int(status["VmRSS"].split()[0]), int(status["Threads"]), len(list((folder / "fd").iterdir())))


@pytest.fixture
def exporter(tmp_path: Path, dsn18: str, db18: psycopg.Connection[Any]) -> Iterator[Serving]:
    """It watches a database with fifty queues, polled every second."""
    add_jobs(db18, *((f"queue-{number % 50}", None, 5) for number in range(200)))
    began = time.monotonic()
    with Serving(settings_file(tmp_path, dsn18, interval="1s")) as running:
        assert time.monotonic() - began < 10
        until(lambda: b"200 OK" in running.get("/-/ready"))
        yield running


def test_ten_thousand_scrapes_leave_nothing_behind(exporter: Serving) -> None:
    """Memory stays under 60 MiB; it, threads and descriptors are after ten thousand scrapes where they were before."""

    def scrape(number: int) -> bool:
        headers = f"Accept: {ACCEPT[number % 2]}\r\nAccept-Encoding: {ENCODING[number // 2 % 2]}\r\n"
        return exporter.get("/metrics" if number % 10 else "/", headers).startswith(b"HTTP/1.1 200 OK\r\n")

    with ThreadPoolExecutor(2) as clients:
        assert all(clients.map(scrape, range(1000)))
        before = footprint(exporter)
        assert all(clients.map(scrape, range(1000, SCRAPES)))
    until(lambda: footprint(exporter).threads <= before.threads)
    after = footprint(exporter)
    assert after.memory < 60 * MIB
    assert after.memory - before.memory < 2 * MIB
    assert after.descriptors <= before.descriptors
