"""A source that follows a script, and a rest between polls that moves the clock by hand: hours pass in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from exporter.board import Board, Key, State
from exporter.errors import Reason, SourceError
from exporter.model import Metric
from exporter.poller import Poller
from exporter.source import Collector, Result, Source
from exporter.timing import Deadline

from ..world import HandClock

THINGS = Metric("laravel_queue_things", "Things of a kind.", ("kind",))


@dataclass
class Act:
    """What the far side does in one poll: take some time, then answer or fail."""

    cost: float = 0.0
    answer: tuple[Result, ...] = (THINGS(1, "a"),)
    failure: Exception | None = None


def fails(reason: Reason, cost: float = 0.0, message: str = "no", *, unreachable: bool = False) -> Act:
    """A poll that fails by a reason of the closed set."""
    return Act(cost, failure=SourceError(reason, message, unreachable=unreachable))


@dataclass
class Scripted:
    """A collector that plays its acts in turn and then the last one for ever, and notes when it was asked."""

    hand: HandClock
    acts: Sequence[Act] | Callable[[float], Act] = (Act(),)  # or the act that belongs to a time
    name: str = "jobs"
    interval: float = 15.0
    metrics: tuple[Metric, ...] = (THINGS,)
    asked: list[float] = field(default_factory=list)

    def fetch(self, deadline: Deadline) -> Act:
        """Play the next act."""
        now = self.hand.mono
        act = self.acts(now) if callable(self.acts) else self.acts[min(len(self.asked), len(self.acts) - 1)]
        self.asked.append(now)
        self.hand.pass_(act.cost)
        if isinstance(act.failure, SourceError):
            raise act.failure
        return act

    def measure(self, raw: Act, now: float) -> Iterable[Result]:
        """The act's answer; a bug of ours, where the script says so, comes up here."""
        if raw.failure is not None:
            raise raw.failure
        return raw.answer


@dataclass
class Rest:
    """The pauses of the loop: each moves the clock by hand; at `until` the loop is told to stop."""

    hand: HandClock
    until: float
    taken: list[float] = field(default_factory=list)

    def wait(self, timeout: float) -> bool:
        """Let the time pass at once."""
        if self.hand.mono + timeout >= self.until:
            self.hand.pass_(max(0.0, self.until - self.hand.mono))
            return True
        self.taken.append(timeout)
        self.hand.pass_(timeout)
        return False


class Stage:
    """A poller over scripted collectors, with its board and a clock moved by hand."""

    def __init__(self, hand: HandClock, *collectors: Scripted, duty: float = 1.0, roll: float = 0.0) -> None:
        self.hand, self.began, self.board = hand, hand.mono, Board()
        made: tuple[Collector[Act], ...] = collectors
        self.source = Source("database", made, timeout=2.0, duty=duty)
        self.poller = Poller(self.source, self.board, hand.clock, lambda: roll)

    def play(self, seconds: float) -> list[float]:
        """Run the loop for so many seconds; the pauses that it took."""
        rest = Rest(self.hand, self.hand.mono + seconds)
        self.poller.run(rest)
        return rest.taken

    def state(self, collector: str = "jobs") -> State:
        """What the board says of a collector."""
        return self.board.read()[Key("database", collector)]

    def fresh(self, collector: str = "jobs") -> bool:
        """Whether the collector's values may be shown at this moment."""
        return self.state(collector).fresh(self.hand.mono)
