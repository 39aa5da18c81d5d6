"""Which queues are shown: the named ones, and a bounded number of found ones, remembered for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

MOST = 100  # found queues that are shown under their own names
NO_TEXT = "\ufffd"  # stands for bytes that are no text
KEPT = 3600.0  # seconds for which a queue that is not seen any more is remembered

Name = TypeVar("Name", str, tuple[str, str])  # of a queue; of a connection; of a connection and a queue of it


class Remembered(Generic[Name]):
    """Remembers names from poll to poll. Its size is bounded whatever the tables hold."""

    def __init__(
        self, named: Iterable[Name], other: Callable[[Name], Name], most: int = MOST, kept: float = KEPT
    ) -> None:
        self.named: frozenset[Name] = frozenset(named)
        self.other: Callable[[Name], Name] = other
        self.most, self.kept = most, kept
        self._seen: dict[Name, float] = {}  # name → Unix time at which it was last shown for one with rows

    def shown(self, sizes: Mapping[Name, int], now: float) -> dict[Name, Name]:
        """
        Each name, those without rows included, and the one it is shown under: its own or `other`.

        `sizes` are those of the names that have rows. Of new ones the largest are shown.
        """
        self._seen = {name: at for name, at in self._seen.items() if now - at < self.kept}
        room = self.most - sum(name != self.other(name) for name in self._seen)
        shown: dict[Name, Name] = {}
        for name in sorted(sizes.keys() - self.named, key=lambda name: (-sizes[name], name)):
            is_new = name not in self._seen and name != self.other(name)
            shown[name] = self.other(name) if is_new and room <= 0 else name
            room -= is_new
            self._seen[shown[name]] = now
        return {name: name for name in self.named} | {name: name for name in self._seen} | shown


def called_as_shown(named: Iterable[str], shown: Mapping[str, str], other: str) -> tuple[str, ...]:
    """
    The queues that can be asked for by the name that they are shown under, the named ones first.

    Where a name has bytes in it that are no text, nobody knows what the queue is called.
    """
    own = sorted(queue for queue, name in shown.items() if queue == name)
    return tuple(queue for queue in dict.fromkeys((*named, *own)) if queue != other and NO_TEXT not in queue)
