"""The one loop that polls a source: pace, duty, backoff, failure and publication live here, once."""

from __future__ import annotations

import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .board import Board, Key, State
from .errors import Reason, SourceError
from .model import Note, Sample
from .source import Collector, Result, Source
from .timing import BELIEF, PAID_OVER, Clock, Deadline, Need, backoff, stretch

log = logging.getLogger(__name__)

MOST_SAID = 500  # characters of one message: a far side may say as much as it likes


class Stop(Protocol):
    """As much of `threading.Event` as the loop needs."""

    def wait(self, timeout: float) -> bool:
        """Whether to stop, after up to `timeout` seconds."""


@dataclass(slots=True)
class Turn:
    """A collector and when it is its turn."""

    collector: Collector[Any]
    key: Key
    state: State
    due: float  # on the monotonic clock
    took: float = 0.0  # seconds that its last poll kept the far side busy
    costs: deque[float] = field(default_factory=lambda: deque(maxlen=PAID_OVER))  # the same of those that succeeded

    @property
    def need(self) -> Need:
        """What it costs on average, so that one slow answer does not silence it for minutes."""
        return Need(self.collector.interval, sum(self.costs) / max(1, len(self.costs)))


class Poller:
    """
    Polls the collectors of one source, one at a time, until told to stop.

    A poll that succeeds is paid for by the source's duty. Those that fail are paid for apart:
    where there is a duty, retries of one source together take two seconds a minute at most, in
    turns, so a far side in trouble is not asked in vain by each collector. With a timeout of up
    to two seconds it is seen healed within a minute.

    A poll stuck past its deadline needs no watchdog: its state grows old, and whoever
    reads the board sees that.
    """

    def __init__(
        self,
        source: Source,
        board: Board,
        clock: Clock = Clock(),
        roll: Callable[[], float] = random.random,
        hide: Callable[[str], str] = str,  # takes secrets out of a message
    ) -> None:
        self.source, self.board, self.clock, self.roll, self.hide = source, board, clock, roll, hide
        now = clock.mono()
        self.turns = [Turn(c, Key(source.name, c.name), State(c.interval, c.interval), now) for c in source.collectors]
        self.retry_at = now  # no collector that fails is asked before, on the monotonic clock
        board.publish({turn.key: turn.state for turn in self.turns})

    def run(self, stop: Stop) -> None:
        """Poll who is due first, of those the most important, and rest in between; until told to stop."""
        while True:
            turn = min(self.turns, key=lambda turn: (self._may_begin(turn), turn.due))
            if stop.wait(max(0.0, self._may_begin(turn) - self.clock.mono())):
                return self.source.close()
            self.poll(turn)

    def poll_all(self) -> None:
        """Poll every collector once, in order; one that an unreachable source has answered for is not asked again."""
        for turn in self.turns:
            if turn.state.polls == 0:
                self.poll(turn)

    def poll(self, turn: Turn) -> None:
        """One attempt, one publication, one log line. Never raises."""
        began = self.clock.mono()
        try:
            results = self._ask(turn, began)
        except SourceError as error:
            failed = self.turns if error.unreachable else [turn]
            self._fail(turn, failed, began, error.reason, str(error))
        except Exception as error:  # a bug of ours must not end the loop
            log.exception("a collector broke", extra={"source": turn.key.source, "collector": turn.key.collector})
            self._fail(turn, [turn], began, "unexpected", repr(error))
        else:
            self._succeed(turn, began, results)

    def _may_begin(self, turn: Turn) -> float:
        return max(turn.due, self.retry_at) if turn.state.streak else turn.due

    def _ask(self, turn: Turn, began: float) -> tuple[Result, ...]:
        deadline = Deadline(began + self.source.timeout, self.clock.mono)
        try:
            raw = turn.collector.fetch(deadline)
        finally:
            # If we were stopped in the middle, the far side is not to blame for the time.
            turn.took = min(self.clock.mono() - began, self.source.timeout)
        deadline.left()  # raises: what comes after its time is about the past
        return tuple(turn.collector.measure(raw, self.clock.wall()))

    def _succeed(self, turn: Turn, began: float, results: tuple[Result, ...]) -> None:
        """Publish what was answered. A part that failed is counted and told like a failure, but fails alone."""
        turn.costs.append(turn.took)
        notes = [result for result in results if isinstance(result, Note)]
        parts = [result for result in results if isinstance(result, SourceError)]
        failures = tuple(dict.fromkeys(self._said(f"{part.reason}: {part}") for part in parts))
        texts = tuple(dict.fromkeys(self._said(note.text) for note in notes))
        withheld = any(note.withholds for note in notes)
        was, interval = turn.state, self._interval(turn)
        turn.due = began + interval
        turn.state = replace(
            was,
            interval=interval,
            samples=tuple(r for r in results if isinstance(r, Sample)),
            notes=texts + failures,
            failures=failures,
            withheld=withheld,
            doubted=any(note.doubts for note in notes),
            taken_at=self.clock.wall(),
            # Looking more closely for a while makes a number no less believable.
            good_until=float("-inf") if withheld else began + BELIEF * max(interval, was.configured_interval),
            polls=was.polls + 1,
            streak=0,
            reason=None,
            error="",
            errors=dict(Counter(was.errors) + Counter(part.reason for part in parts)),
            duration=self.clock.mono() - began,
            busy=was.busy + turn.took,
        )
        self._publish([turn], turn, was)

    def _interval(self, turn: Turn) -> float:
        """The interval that the duty allows this collector, by what each has cost of late."""
        return stretch([other.need for other in self.turns], self.source.duty)[self.turns.index(turn)]

    def _fail(self, asked: Turn, failed: Sequence[Turn], began: float, reason: Reason, message: str) -> None:
        """Record a failure for all that it stands for: with an unreachable source, for every collector."""
        was, duration = asked.state, self.clock.mono() - began
        self.retry_at = max(self.retry_at, began + self.source.failures_paid * asked.took)
        for turn in failed:
            turn.due = began + backoff(turn.collector.interval, turn.state.streak + 1, self.roll())
            turn.state = replace(
                turn.state,
                interval=max(turn.due, self.retry_at) - began,
                polls=turn.state.polls + 1,
                streak=turn.state.streak + 1,
                reason=reason,
                error=self._said(message),
                errors={**turn.state.errors, reason: turn.state.errors.get(reason, 0) + 1},
                duration=duration if turn is asked else turn.state.duration,
                busy=turn.state.busy + (asked.took if turn is asked else 0.0),
            )
        self._publish(failed, asked, was)

    def _said(self, message: str) -> str:
        """A message that can be shown. What is cut in the middle of a secret would not be known for one any more."""
        hidden = self.hide(message)
        return hidden if len(hidden) <= MOST_SAID else f"{hidden[:MOST_SAID]}…"

    def _publish(self, turns: Sequence[Turn], asked: Turn, was: State) -> None:
        state = asked.state
        try:
            self.board.publish({turn.key: turn.state for turn in turns})
        except Exception:  # a bug of ours in a reader must not end the loop either
            log.exception("a reader of the board broke")
        fields = {
            "source": asked.key.source,
            "collector": asked.key.collector,
            "outcome": state.reason or "ok",
            "samples": len(state.samples) if state.up else 0,
            "seconds": round(state.duration, 4),
            "next_in": round(state.interval, 1),
        }
        if not state.up:
            fields |= {"failures_in_a_row": state.streak, "error": state.error}
        elif state.notes:
            fields["note"] = "; ".join(state.notes)
        log.log(_level(was, state), "poll", extra=fields)


def _level(was: State, now: State) -> int:
    if not now.up:
        return logging.WARNING
    if was.notes != now.notes and was.errors != now.errors:  # a part has failed, and not for the same reason as before
        return logging.WARNING
    return logging.INFO if was.streak > 0 or was.notes != now.notes else logging.DEBUG
