"""Scrapes while pollers publish: every page is whole."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread

import pytest

from exporter.board import Board, Key, State
from exporter.queues import JOBS
from exporter.server import Server
from exporter.timing import Clock

from ..world import series
from .serving import get, serving

QUEUES = [f"queue-{number}" for number in range(100)]
ACCEPT = ("text/plain", "application/openmetrics-text")


def publish(shown: Board, number: int) -> None:
    """Two collectors at once say the same number for every queue."""
    clock = Clock()
    taken, good_until = clock.wall(), clock.mono() + 1000
    states = {}
    for collector in ("jobs", "reservations"):
        samples = tuple(JOBS(number, collector, queue, "ready") for queue in QUEUES)
        states[Key("database", collector)] = State(15, 15, samples, polls=number, taken_at=taken, good_until=good_until)
    shown.publish(states)


@pytest.fixture
def server() -> Iterator[Server]:
    """Its board is published to without a pause."""
    shown, stop = Board(), Event()
    publish(shown, 1)

    def poll() -> None:
        number = 1
        while not stop.wait(0.003):
            number += 1
            publish(shown, number)

    poller = Thread(target=poll)
    poller.start()
    with serving(shown) as running:
        yield running
    stop.set()
    poller.join()


@pytest.mark.parametrize("accept", ACCEPT)
def test_no_page_is_torn(server: Server, accept: str) -> None:
    """What two collectors publish together is on a page together: all of the old or all of the new."""
    seen = set()
    for _ in range(40):
        page = get(server, headers={"Accept": accept}).body.decode().replace("# EOF\n", "")
        numbers = {value for (name, _), value in series(page.encode()).items() if name == "laravel_queue_jobs"}
        assert len(numbers) == 1
        seen |= numbers
    assert len(seen) > 5
