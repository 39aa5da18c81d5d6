"""Reports on a board on which one collector has answered just now."""

from __future__ import annotations

from exporter.board import Board, Key, State
from exporter.model import Sample
from exporter.status import Report, report

from ..world import HandClock


def board(*samples: Sample, hand: HandClock, constants: tuple[Sample, ...] = (), **changes: object) -> Board:
    """A board on which one collector has answered just now."""
    made = Board(constants)
    state = State(15, 15, samples, polls=1, taken_at=hand.wall, good_until=hand.mono + 50, **changes)  # type: ignore[arg-type]
    made.publish({Key("database", "jobs"): state})
    return made


def reported(*samples: Sample, constants: tuple[Sample, ...] = (), runbooks: tuple[str, ...] = ()) -> Report:
    """The report on these samples."""
    hand = HandClock()
    return report(board(*samples, hand=hand, constants=constants), runbooks, hand.clock)
