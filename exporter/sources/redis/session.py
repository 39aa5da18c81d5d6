"""What the collectors of one Redis share: the connection, its clock, and what one of them knows that others need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...model import Note
from ...queues import OTHER
from ...timing import BELIEF, Clock, Deadline
from ..classes import JobClasses
from ..readings import Reading, Readings
from ..remembered import Remembered, called_as_shown
from ..resp.cache import RedisCache
from ..resp.link import Command, Link
from ..resp.replies import Reply, answered, of_the_past
from .settings import Redis

SET_ASIDE = 1.0  # seconds by which the clock may be off from what we took for the time, before we ask again

Commands = Callable[[int], Sequence[Command]]


class Answer(NamedTuple):
    """What a pipeline brought."""

    now: int  # Redis's clock in whole seconds, as the commands were told
    replies: list[Reply]
    withheld: Note | None  # why nothing of it may be shown


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
        self.ahead: float | None = None  # Redis's clock minus our monotonic one, as of the last answer
        self.remembered = Remembered(self.settings.queues, lambda _: OTHER)
        self.shown: Mapping[str, str] = {queue: queue for queue in self.settings.queues}
        self.classes = JobClasses()
        self.worker_timeouts: Mapping[str, float] = {}  # by queue, as Horizon's supervisors say

    def connection_of(self, queue: str) -> str:
        """Laravel's name of the connection that this queue's workers use."""
        return self.settings.connection_of(queue, self.name)

    def worker_timeout_of(self, queue: str) -> float | None:
        """Seconds that a worker may take for a job of this queue, by the settings or Horizon; None if nobody said."""
        own = self.settings.worker_timeout_of(queue)
        return self.worker_timeouts.get(queue) if own is None else own

    def called_as_shown(self) -> tuple[str, ...]:
        """The queues that are shown under their own names. A named one that cannot be read is none of them."""
        return called_as_shown((), self.shown, OTHER)

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
            self._read_clock(self.link.ask([("TIME",)], deadline)[0])
        for _ in range(2):
            supposed = self.clock.mono() + (self.ahead or 0.0)
            sent = self.clock.wall()
            questions: list[Command] = [("TIME",), ("INFO", "replication"), *commands(int(supposed))]
            time, replication, *replies = self.link.ask(questions, deadline)
            now = self._read_clock(time)
            reading = Reading.between(f"redis:{self.name}", now, sent, self.clock.wall())
            self.readings.put(reading, BELIEF * self.settings.interval)
            if abs(now - supposed) < SET_ASIDE:
                break
        why = of_the_past(replication)
        return Answer(int(supposed), replies, Note(f"{why}: nothing is shown", withholds=True) if why else None)

    def _read_clock(self, reply: Reply) -> float:
        """Redis's clock: Unix time."""
        seconds, microseconds = map(int, answered(reply))
        now = seconds + microseconds / 1e6
        self.ahead = now - self.clock.mono()
        return now
