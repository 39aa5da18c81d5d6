"""
Horizon's masters and supervisors, as they tell of themselves.

Each keeps a hash that it renews every second and that Redis forgets 15 s (a master) or 30 s (a
supervisor) after its last word, by Redis's own clock: so whose hash is there is alive. The sorted
sets say who was there once; the names of the dead stay in them until a living master takes them out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from ..resp.link import Command
from ..resp.replies import Reply, answered

MOST = 1000  # masters, and supervisors, that are asked about
STATES = ("running", "paused")


class Supervisor(NamedTuple):
    """One that is alive."""

    name: str
    pool: str  # its name without its master's, which has the host's and four random letters in it
    status: str
    connection: str  # Laravel's name of it
    queues: tuple[str, ...]  # that its workers listen to
    timeout: float | None  # seconds, of its workers
    processes: Mapping[str, int]  # by queues: one, or several with commas between them


class Fleet(NamedTuple):
    """All that are alive."""

    masters: Mapping[str, str]  # name → status
    supervisors: tuple[Supervisor, ...]

    @property
    def queues(self) -> set[str]:
        """All that somebody is there for."""
        return {queue for supervisor in self.supervisors for queue in supervisor.queues}

    @property
    def paused(self) -> list[str]:
        """The names of masters and supervisors that are paused."""
        supervisors = (supervisor.name for supervisor in self.supervisors if supervisor.status == "paused")
        return [*(name for name, status in self.masters.items() if status == "paused"), *supervisors]

    def pauses(self, queue: str) -> bool:
        """Whether all who are there for this queue are paused."""
        states = {supervisor.status for supervisor in self.supervisors if queue in supervisor.queues}
        return states == {"paused"}

    def processes(self) -> dict[str, int]:
        """Worker processes by queue; one that works for several counts for each of them."""
        found = dict.fromkeys(self.queues, 0)
        for supervisor in self.supervisors:
            for queues, number in supervisor.processes.items():
                for queue in queues.split(","):
                    found[queue] = found.get(queue, 0) + number
        return found

    def connections(self) -> dict[str, set[str]]:
        """Laravel's connections on which somebody works for a queue of this name."""
        found = dict[str, set[str]]()
        for supervisor in self.supervisors:
            for queue in supervisor.queues:
                found.setdefault(queue, set()).add(supervisor.connection)
        return found

    def timeouts(self) -> dict[str, float]:
        """The longest timeout of each queue's workers, in seconds."""
        found: dict[str, float] = {}
        for supervisor in self.supervisors:
            for queue in supervisor.queues if supervisor.timeout is not None else ():
                found[queue] = max(found.get(queue, 0.0), supervisor.timeout or 0.0)
        return found


class Names(NamedTuple):
    """Who is there, or was."""

    masters: list[str]
    supervisors: list[str]


def who(prefix: str) -> list[Command]:
    """Who is there, or was?"""
    return [("ZREVRANGE", f"{prefix}{names}", 0, MOST - 1) for names in ("masters", "supervisors")]


def names(replies: Iterable[Reply]) -> Names:
    """The answers to `who`. Raises `SourceError`."""
    masters, supervisors = ([name.decode(errors="replace") for name in answered(reply)] for reply in replies)
    return Names(masters, supervisors)


def each(prefix: str, names: Names) -> list[Command]:
    """What does each of them say of itself?"""
    return [
        *(("HMGET", f"{prefix}master:{name}", "status") for name in names.masters),
        *(("HMGET", f"{prefix}supervisor:{name}", "status", "processes", "options") for name in names.supervisors),
    ]


def fleet(names: Names, replies: Sequence[Reply]) -> Fleet:
    """Those who are alive, of the answers to `each`. Raises `SourceError`."""
    said = [[value and value.decode(errors="replace") for value in answered(reply)] for reply in replies]
    masters = zip(names.masters, said, strict=False)
    supervisors = zip(names.supervisors, said[len(names.masters) :], strict=True)
    return Fleet(
        {name: status for name, (status,) in masters if status},
        tuple(supervisor(name, status, *more) for name, (status, *more) in supervisors if status),
    )


def supervisor(name: str, status: str, processes: str | None, options: str | None) -> Supervisor:
    """A supervisor by its hash. Numbers in its options may be texts."""
    given = members(options)
    timeout = str(given.get("timeout"))
    return Supervisor(
        name,
        name.rpartition(":")[2] or name,
        status,
        str(given.get("connection") or ""),
        tuple(queue for queue in str(given.get("queue") or "").split(",") if queue),
        (float(timeout) or inf) if timeout.isdecimal() else None,
        dict(counted(members(processes))),
    )


def counted(processes: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Queues and the number of their processes; before the queues stands the name of their connection."""
    for queues, number in processes.items():
        if isinstance(number, int):
            yield queues.partition(":")[2], number


def members(text: str | None) -> dict[str, Any]:
    """The members of a JSON object; an empty one may be written as a list, as PHP does."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
