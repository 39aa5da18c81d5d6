"""Scrapes as Prometheus makes them, timed."""

from __future__ import annotations

import gzip
import http.client
import time
from typing import NamedTuple

from ..world import Series
from .serving import series

HEADERS = {  # what Prometheus 2.42 sends
    "Accept": "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "Accept-Encoding": "gzip",
}
QUEUES = [f"queue-{number}" for number in range(50)]
POOLS = [f"vm-{number}" for number in range(16)]  # each listening to every queue: 800 series from the settings alone
SETTINGS = {
    "interval": "1s",
    "timeout": "30s",  # so that a poll that hangs does so for longer than the scrapes take
    "target_wait": "1m",
    "queues": dict.fromkeys(QUEUES),
    "pools": {pool: {"application_name": pool, "timeout": "1m", "queues": QUEUES} for pool in POOLS},
}
PATIENCE = 60.0  # seconds for all scrapes together


class Scrapes(NamedTuple):
    """How long each scrape took, in seconds, and the first and the last page."""

    seconds: list[float]
    first: Series
    last: Series

    def quantile(self, share: float) -> float:
        """So many seconds, or fewer, did this share of the scrapes take."""
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))]


def of_jobs(page: Series, name: str) -> float:
    """What a page says of the collector `jobs`."""
    return page[f"laravel_queue_source_{name}", (("collector", "jobs"), ("source", "database"))]


def in_trouble(page: Series) -> bool:
    """Whether the last poll failed, or the next one should have been over for some time."""
    due = of_jobs(page, "last_success_timestamp_seconds") + of_jobs(page, "poll_interval_seconds")
    return of_jobs(page, "up") == 0 or time.time() > due + 0.5


def scrape(target: str, times: int) -> Scrapes:
    """Scrape so often, one after the other, reading each page to its end; the time includes connecting anew."""
    connection = http.client.HTTPConnection(target, timeout=30)
    seconds, pages, until = [], [], time.perf_counter() + PATIENCE
    for number in range(times):
        began = time.perf_counter()
        assert began < until, f"{number} scrapes took {PATIENCE} s"
        connection.request("GET", "/metrics", headers=HEADERS)
        answer = connection.getresponse()
        body = answer.read()
        seconds.append(time.perf_counter() - began)
        assert answer.status == http.HTTPStatus.OK
        if number in (0, times - 1):
            pages.append(series(gzip.decompress(body)))
    connection.close()
    return Scrapes(seconds, *pages)
