"""
The board: the last word of each collector, and until when it may be believed.

A poller publishes by replacing the map of frozen states; a reader keeps the one it got.
So a reader sees each collector whole or not at all, and waits for none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from .errors import Reason
from .model import Sample


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
    notes: tuple[str, ...] = ()
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

    def __init__(self, constants: Iterable[Sample] = (), queues: Iterable[tuple[str, str]] = ()) -> None:
        self.constants = tuple(constants)
        self.queues = tuple(queues)  # connection and queue of those that are named, whatever is known of them
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


def shown(constants: Iterable[Sample], states: Mapping[Key, State], mono: float) -> Iterator[Sample]:
    """All samples that may be shown at this moment: the settings', and those of the states that are fresh."""
    yield from constants
    for state in states.values():
        if state.fresh(mono):
            yield from state.samples
