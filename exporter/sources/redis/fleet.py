"""
Horizon's masters and supervisors, as they tell of themselves.

Each keeps a hash that it renews every second and that Redis forgets 15 s (a master) or 30 s (a
supervisor) after its last word, by Redis's own clock: so whose hash is there is alive. The sorted
sets say who was there once; the names of the dead stay in them until a living master takes them out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from ...errors import SourceError
from .. import payloads
from ..resp.link import Command
from ..resp.replies import Reply, answered

MOST = 1000  # masters, and supervisors, that are asked about
LONGEST = 255  # characters of a queue's name; a longer one is shown nowhere
STATES = ("running", "paused")
SAYS = ("status", "master", "processes", "options")  # in a supervisor's hash


class Supervisor(NamedTuple):
    """One that is alive."""

    name: str
    pool: str  # its name without that of its master, in which the host's and four random letters are
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

    def queues_of(self, connections: Collection[str]) -> set[str]:
        """Those that somebody is there for on one of these connections of Laravel."""
        return {queue for each in self.supervisors if each.connection in connections for queue in each.queues}

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
        return {queue: number for queue, number in found.items() if 0 < len(queue) <= LONGEST}

    def pools(self) -> Counter[str]:
        """Worker processes by pool."""
        found = Counter[str]()
        for supervisor in self.supervisors:
            found[supervisor.pool] += sum(supervisor.processes.values())
        return found

    def connections(self) -> dict[str, set[str]]:
        """Laravel's connections on which somebody works for a queue of this name."""
        found = dict[str, set[str]]()
        for supervisor in self.supervisors:
            for queue in supervisor.queues:
                found.setdefault(queue, set()).add(supervisor.connection)
        return found

    def timeouts(self) -> dict[tuple[str, str], float]:
        """The longest timeout of the workers of each pool for each queue, in seconds."""
        found: dict[tuple[str, str], float] = {}
        for supervisor in self.supervisors:
            if supervisor.timeout is not None:
                for queue in supervisor.queues:
                    key = supervisor.pool, queue
                    found[key] = max(found.get(key, 0.0), supervisor.timeout)
        return found

    def timeout_of(self, queue: str) -> float | None:
        """The longest timeout of this queue's workers, in seconds; None if there are none."""
        return max((timeout for (_, of), timeout in self.timeouts().items() if of == queue), default=None)


class Names(NamedTuple):
    """Who is there, or was."""

    masters: list[str]
    supervisors: list[str]


def who(prefix: str) -> list[Command]:
    """Who is there, or was?"""
    return [("ZREVRANGE", f"{prefix}{names}", 0, MOST - 1) for names in ("masters", "supervisors")]


def names(masters: Reply, supervisors: Reply) -> Names:
    """The answers to `who`. Raises `SourceError`: without them nothing is known."""
    return Names(*([name.decode(errors="replace") for name in answered(reply)] for reply in (masters, supervisors)))


def each(prefix: str, names: Names) -> list[Command]:
    """What does each of them say of itself?"""
    return [
        *(("HMGET", f"{prefix}master:{name}", "status") for name in names.masters),
        *(("HMGET", f"{prefix}supervisor:{name}", *SAYS) for name in names.supervisors),
    ]


def fleet(names: Names, replies: Sequence[Reply]) -> Fleet:
    """Those who are alive, of the answers to `each`. A key that cannot be read is nobody's."""
    said = [
        [None] if isinstance(reply, SourceError) else [value and value.decode(errors="replace") for value in reply]
        for reply in replies
    ]
    masters = zip(names.masters, said, strict=False)
    supervisors = zip(names.supervisors, said[len(names.masters) :], strict=True)
    return Fleet(
        {name: status for name, (status,) in masters if status},
        tuple(supervisor(name, status, *more) for name, (status, *more) in supervisors if status),
    )


def supervisor(name: str, status: str, master: str | None, processes: str | None, options: str | None) -> Supervisor:
    """A supervisor by its hash. Numbers in its options may be texts."""
    given = members(options)
    timeout = payloads.seconds(given.get("timeout"))
    return Supervisor(
        name,
        (name.removeprefix(f"{master}:") if master else name.partition(":")[2]) or name,
        status,
        str(given.get("connection") or ""),
        tuple(queue for queue in str(given.get("queue") or "").split(",") if 0 < len(queue) <= LONGEST),
        None if timeout is None else timeout or inf,
        dict(counted(members(processes))),
    )


def counted(processes: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Queues and the number of their processes; before the queues stands the name of their connection."""
    for queues, number in processes.items():
        if type(number) is int and 0 <= number < payloads.LARGEST:  # True is none
            yield queues.partition(":")[2], number


def members(text: str | None) -> dict[str, Any]:
    """The members of a JSON object; an empty one may be written as a list, as PHP does."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
