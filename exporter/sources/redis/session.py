"""What the collectors of one Redis share: the connection, its clock, and what one of them knows that others need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import SourceError
from ...model import Note
from ...queues import OTHER
from ...timing import BELIEF, Clock, Deadline
from ..classes import JobClasses
from ..readings import Reading, Readings
from ..remembered import Remembered
from .connection import Command, Link, Reply
from .settings import Redis

SET_ASIDE = 1.0  # seconds by which the clock may be off from what we took for the time, before we ask again

Commands = Callable[[int], Sequence[Command]]


class Answer(NamedTuple):
    """What a pipeline brought."""

    now: int  # Redis's clock in whole seconds, as the commands were told
    replies: list[Reply]
    of_the_past: Note | None  # why nothing of it may be shown


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
        self.ahead: float | None = None  # Redis's clock minus our monotonic one, as of the last answer
        self.remembered = Remembered(self.settings.queues, lambda _: OTHER)
        self.shown: Mapping[str, str] = {queue: queue for queue in self.settings.queues}
        self.classes = JobClasses()
        self.worker_timeouts: Mapping[str, float] = {}  # by queue, as Horizon's supervisors say

    def worker_timeout_of(self, queue: str) -> float | None:
        """Seconds that a worker may take for a job of this queue, by the settings or Horizon; None if nobody said."""
        own = self.settings.worker_timeout_of(queue)
        return self.worker_timeouts.get(queue) if own is None else own

    def close(self) -> None:
        """Close the connection; the next question opens a new one."""
        self.link.close()

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
        return Answer(int(supposed), replies, lost_its_master(replication))

    def _read_clock(self, reply: Reply) -> float:
        """Redis's clock: Unix time."""
        seconds, microseconds = map(int, answered(reply))
        now = seconds + microseconds / 1e6
        self.ahead = now - self.clock.mono()
        return now


def answered(reply: Reply) -> Reply:
    """The reply, if it is none of failure: raises the `SourceError` that it is."""
    if isinstance(reply, SourceError):
        raise reply
    return reply


def pairs(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Members and their scores, which come one after the other."""
    return zip(items[::2], items[1::2], strict=True)


def info(reply: Reply) -> dict[str, str]:
    """What INFO says, by name. Raises `SourceError`."""
    lines = answered(reply).decode(errors="replace").splitlines()
    return {name: value for name, found, value in (line.partition(":") for line in lines) if found}


def lost_its_master(reply: Reply) -> Note | None:
    """Why a replica's data may not be shown: without its master it goes on telling the past."""
    replication = info(reply)
    if replication.get("master_link_status", "up") == "up":
        return None
    since = replication.get("master_link_down_since_seconds", "?")
    return Note(f"the replica has had no connection to its master for {since} s: nothing is shown", withholds=True)
