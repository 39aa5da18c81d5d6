"""What `status` prints, for the README: an evening on which a sale was not announced to anybody."""

from __future__ import annotations

from collections.abc import Iterator

from exporter import queues, runbooks, status, terminal
from exporter.board import Board, Key, State
from exporter.model import Sample
from exporter.sources.database import metrics, statistics

from ..world import HandClock

INTERVAL = 15.0
QUEUES = {  # queue → jobs in each state, the oldest one's age, target
    "default": ((5210, 3, 7, 1), 760, 60),
    "emails": ((4, 0, 3, 0), 2, 60),
    "exports": ((0, 0, 1, 0), 0, 900),
}
CONNECTIONS = {"web": 61, "default": 16, "other": 5}
MAX, RESERVED = 100, 3


def samples() -> Iterator[Sample]:
    """What the collectors said."""
    for queue, (counts, age, target) in QUEUES.items():
        at = ("database", queue)
        for state, count in zip(queues.STATES, counts, strict=True):
            yield queues.JOBS(count, *at, state)
        yield queues.OLDEST_JOB_AGE(age, *at)
        yield queues.RETRY_AFTER(90, *at)
        yield queues.TARGET_WAIT(target, *at)
    yield statistics.DEAD(111_575, "database", "jobs")
    yield statistics.TRIGGER(120_050, "database", "jobs")
    for pool, count in CONNECTIONS.items():
        yield metrics.CONNECTIONS(count, "database", pool, "idle")
    yield metrics.CONNECTIONS_MAX(MAX, "database")
    yield metrics.CONNECTIONS_RESERVED(RESERVED, "database")
    yield metrics.USAGE(sum(CONNECTIONS.values()) / (MAX - RESERVED), "database")
    yield queues.WORKERS(CONNECTIONS["default"], "database", "default")
    yield metrics.OUTDATED(2, "database", "default")


def page() -> str:
    """The report as `status` prints it."""
    clock = HandClock()
    board = Board()
    for source, age in (("database", 4.0), ("clock", 31.0)):
        said = tuple(samples()) if source == "database" else ()
        state = State(INTERVAL, INTERVAL, said, taken_at=clock.wall - age, good_until=clock.mono, polls=1)
        board.publish({Key(source, "jobs" if source == "database" else "databases"): state})
    return f"```text\n{terminal.text(status.report(board, runbooks.names(), clock.clock))}```\n"
