"""
The board: the last word of each collector, and until when it may be believed.

A poller publishes by replacing the map of frozen states; a reader keeps the one it got.
So a reader sees each collector whole or not at all, and waits for none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from .errors import Reason
from .model import Sample
from .source import Join, Joined


class Key(NamedTuple):
    """What a state belongs to: one collector of one source."""

    source: str
    collector: str


@dataclass(frozen=True, slots=True)
class State:
    """What is known of one collector. Seconds everywhere."""

    configured_interval: float
    interval: float  # in force now: longer than configured when the duty or a failure asks for it
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()  # all that a person should know of the last success
    failures: tuple[str, ...] = ()  # those of them that tell of a part that failed
    withheld: bool = False  # whether a note says why nothing may be shown
    doubted: bool = False  # whether the samples may not be about what was meant
    taken_at: float | None = None  # Unix time of the last success
    good_until: float = float("-inf")  # on the monotonic clock
    polls: int = 0
    streak: int = 0  # failures in a row
    reason: Reason | None = None  # of the last failure; None after a success
    error: str = ""
    errors: Mapping[Reason, int] = field(default_factory=dict)  # since the start
    duration: float = 0.0  # of the last poll
    busy: float = 0.0  # spent in the far side since the start

    @property
    def up(self) -> bool:
        """Whether the last poll succeeded."""
        return self.polls > 0 and self.streak == 0

    def fresh(self, mono: float) -> bool:
        """Whether the samples may be shown: a second failure in a row, or age, withdraws them."""
        return self.streak < 2 and mono <= self.good_until


class Board:
    """The one place where pollers and readers meet."""

    def __init__(
        self,
        constants: Iterable[Sample] = (),
        joins: Mapping[str, Join] = {},  # of each source
        named: Mapping[str, Collection[tuple[str, str]]] = {},  # of each source: connection and name of its queues
    ) -> None:
        self.constants, self.joins, self.named = tuple(constants), joins, named
        self._lock = Lock()
        self._states: dict[Key, State] = {}
        self._readers: list[Callable[[], None]] = []

    def subscribe(self, reader: Callable[[], None]) -> None:
        """Have `reader` called, in the poller's thread, after each publication."""
        self._readers.append(reader)

    def publish(self, states: Mapping[Key, State]) -> None:
        """Replace these states, all at once."""
        with self._lock:
            self._states = {**self._states, **states}
        for reader in self._readers:
            reader()

    def read(self) -> Mapping[Key, State]:
        """All states, as of now; the mapping never changes afterwards."""
        with self._lock:
            return self._states


class Shown(NamedTuple):
    """All samples that may be shown at one moment, and until when none of them has to go."""

    samples: tuple[Sample, ...]
    until: float  # on the monotonic clock


def shown(board: Board, states: Mapping[Key, State], mono: float) -> Shown:
    """What the settings say, the states that are fresh, and what follows from several of them."""
    fresh = {key: state for key, state in states.items() if state.fresh(mono)}
    parts = [
        Joined(board.constants),
        *(join({key.collector for key in fresh if key.source == source}) for source, join in board.joins.items()),
        *(Joined(state.samples, state.good_until) for state in fresh.values()),
    ]
    samples = tuple(sample for part in parts for sample in part.samples)
    return Shown(samples, min(part.until for part in parts))
