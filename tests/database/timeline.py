"""
Hours in seconds, on a real table: time passes in the pauses of the real loop, by hand.

While it does, workers do what they do, and then every row is moved into the past by as much. So
the loop's own pace decides what it sees of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from exporter.app import App
from exporter.timing import Clock

from ..world import HandClock
from .holding import Db, ago, hand_out_again, hold

LOOK = 0.0002  # seconds that each look at the clock takes, so that a poll takes some time as well


class TickingClock(HandClock):
    """A clock moved by hand, in which nothing is done in no time."""

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.wall, self._look)

    def _look(self) -> float:
        self.pass_(LOOK)
        return self.mono


@dataclass
class Timeline:
    """What happens when; handed to the loop as what it waits with."""

    hand: HandClock
    db: Db
    taken: dict[int, float] = field(default_factory=dict)  # when each job that is held was, on the hand clock
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def at(self, when: float, event: Callable[[], None]) -> None:
        """Something that will happen so many seconds from now."""
        heapq.heappush(self.events, (self.hand.mono + when, next(self.numbers), event))

    def double_run(self, when: float, retry_after: int, late: float = 5) -> None:
        """A job that runs for too long: a second worker takes it as soon as it may, and the first one ends it."""

        def begin() -> None:
            id_ = hold(self.db)
            self.taken[id_] = self.hand.mono
            self.at(retry_after, lambda: again(id_))
            self.at(retry_after + late, lambda: end(id_))

        def again(id_: int) -> None:
            hand_out_again(self.db, id_)
            self.taken[id_] = self.hand.mono

        def end(id_: int) -> None:
            self.db.execute("DELETE FROM jobs WHERE id = %s", [id_])
            del self.taken[id_]

        self.at(when, begin)

    def run(self, app: App) -> None:
        """Have the database polled until nothing happens any more."""
        (poller,) = [poller for poller in app.pollers if poller.source.name == "database"]
        poller.run(self)

    def wait(self, timeout: float) -> bool:
        """A pause of the loop."""
        end = self.hand.mono + timeout
        while self.events and self.events[0][0] <= end:
            at, _, event = heapq.heappop(self.events)
            self._pass_until(at)
            event()
        self._pass_until(end)
        self._move_rows()
        return not self.events

    def _pass_until(self, at: float) -> None:
        self.hand.pass_(max(0.0, at - self.hand.mono))

    def _move_rows(self) -> None:
        ages = [(id_, self.hand.mono - at) for id_, at in self.taken.items()]
        moved = f"UPDATE jobs SET reserved_at = {ago('%s')} WHERE id = %s"
        self.db.cursor().executemany(moved.encode(), [(age, id_) for id_, age in ages])
