"""What the collectors of one Redis share: the connection, its clock, and what one of them knows that others need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import SourceError
from ...model import Note
from ...queues import OTHER
from ...timing import BELIEF, Clock, Deadline
from ..classes import JobClasses
from ..readings import Reading, Readings
from ..remembered import Remembered, called_as_shown
from ..resp.cache import RedisCache
from ..resp.link import Command, Link
from ..resp.replies import Reply, answered, of_the_past
from .fleet import Fleet
from .settings import Redis

SET_ASIDE = 1.0  # seconds by which the clock may be off from what we took for the time, before we ask again

Commands = Callable[[int], Sequence[Command]]


class Answer(NamedTuple):
    """What a pipeline brought."""

    now: int  # Redis's clock in whole seconds, as the commands were told
    replies: list[Reply]
    withheld: Note | None  # why nothing of it may be shown


class Moment(NamedTuple):
    """By our own clocks."""

    mono: float
    wall: float


@dataclass
class Session:
    """One connection, asked by one pipeline at a time."""

    name: str
    settings: Redis
    readings: Readings
    clock: Clock = Clock()
    once: bool = False  # whether nobody will ask again

    def __post_init__(self) -> None:
        self.link = Link(self.settings.target())
        cache = self.settings.cache_target()
        self.cache = RedisCache(cache, self.settings.cache_prefixes()) if cache else None
        self.heard_at = Moment(0.0, 0.0)
        self.ahead: float | None = None  # Redis's clock minus our monotonic one, when it was last read
        self.remembered = Remembered(self.settings.queues, lambda _: OTHER)
        self.shown: Mapping[str, str] = {queue: queue for queue in self.settings.queues}
        self.classes = JobClasses()
        self._fleet: tuple[float, Fleet] | None = None  # of Horizon, and when it was told, on the monotonic clock

    def connection_of(self, queue: str) -> str:
        """Laravel's name of the connection that this queue's workers use."""
        return self.settings.connection_of(queue, self.name)

    def tell(self, fleet: Fleet | None) -> None:
        """Keep what is known of Horizon's supervisors, or that nothing is."""
        self._fleet = None if fleet is None else (self.clock.mono(), fleet)

    def fleet(self) -> Fleet | None:
        """Horizon's supervisors, for as long as what was told of them is believed."""
        if self._fleet is None or self.clock.mono() - self._fleet[0] > BELIEF * self.settings.interval:
            return None
        return self._fleet[1]

    def worker_timeout_of(self, queue: str) -> float | None:
        """Seconds that a worker may take for a job of this queue, by the settings or Horizon; None if nobody said."""
        own, fleet = self.settings.worker_timeout_of(queue), self.fleet()
        return fleet.timeout_of(queue) if own is None and fleet else own

    def called_as_shown(self) -> tuple[str, ...]:
        """The queues that are shown under their own names. A named one that cannot be read is none of them."""
        return called_as_shown((), self.shown, OTHER)

    def key(self, queue: str) -> bytes:
        """Of a queue's list; those of its sets begin with it. A name may have bytes in it that are no text."""
        return f"{self.settings.prefix}queues:{queue}".encode(errors="surrogateescape")

    def raise_shared(self, failures: Iterable[SourceError | None]) -> None:
        """Raise what all queues failed of, unless each has a key of a wrong type: that is a queue's own fault."""
        found = list(failures)
        reasons = {failure and failure.reason for failure in found}
        if len(reasons) == 1 and found[0] and reasons != {"wrong_type"}:
            keys = f" (of keys that begin with {self.settings.prefix}queues:)" if reasons == {"permission"} else ""
            raise SourceError(found[0].reason, f"{found[0]}{keys}", unreachable=found[0].unreachable)

    def close(self) -> None:
        """Close the connections; the next question opens a new one."""
        self.link.close()
        if self.cache:
            self.cache.close()

    def ask(self, deadline: Deadline, commands: Commands) -> Answer:
        """
        The replies to the commands for this time of Redis's clock. Raises `SourceError`.

        Which jobs are due depends on the time, so that has to be known before it is asked for.
        It comes from the last answer; only if the clock was set since, it is all asked once more.
        """
        if self.ahead is None:
            self._read_clock(self.link.ask([("TIME",)], deadline, self._heard)[0])
        for _ in range(2):
            before = self.ahead or 0.0
            supposed = self.clock.mono() + before
            questions: list[Command] = [("TIME",), ("INFO", "replication"), *commands(int(supposed))]
            sent = self.clock.wall()
            try:
                time, replication, *replies = self.link.ask(questions, deadline, self._heard)
            except SourceError:
                self.tell(None)  # what a Redis said of Horizon that is gone now is not told on
                raise
            now = self._read_clock(time)
            reading = Reading.between(f"redis:{self.name}", now, sent, self.heard_at.wall)
            self.readings.put(reading, BELIEF * self.settings.interval)
            if abs(now - self.heard_at.mono - before) < SET_ASIDE:
                break
        why = of_the_past(replication)
        return Answer(int(supposed), replies, Note(f"{why}: nothing is shown", withholds=True) if why else None)

    def _read_clock(self, reply: Reply) -> float:
        """Redis's clock: Unix time."""
        seconds, microseconds = map(int, answered(reply))
        now = seconds + microseconds / 1e6
        self.ahead = now - self.heard_at.mono
        return now

    def _heard(self) -> None:
        """Redis's clock was read just before the first reply came; those behind it may take seconds."""
        self.heard_at = Moment(self.clock.mono(), self.clock.wall())
