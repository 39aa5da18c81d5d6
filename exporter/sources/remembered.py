"""Which queues are shown: the named ones, and a bounded number of found ones, remembered for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..queues import OTHER

MOST = 100  # found queues that are shown under their own names
KEPT = 3600.0  # seconds for which a queue that has no rows any more still says zero


class Remembered:
    """Remembers queues from poll to poll. Its size is bounded whatever the tables hold."""

    def __init__(self, named: Iterable[str], most: int = MOST, kept: float = KEPT) -> None:
        self.named, self.most, self.kept = frozenset(named), most, kept
        self._seen: dict[str, float] = {}  # name → Unix time at which it was last shown for a queue with rows

    def shown(self, sizes: Mapping[str, int], now: float) -> dict[str, str]:
        """
        Each queue, those without rows included, and the name it is shown under: its own or `other`.

        `sizes` are those of the queues that have rows. Of queues that are new the largest are shown.
        """
        self._seen = {name: at for name, at in self._seen.items() if now - at < self.kept}
        shown = {}
        for queue in sorted(sizes.keys() - self.named, key=lambda queue: (-sizes[queue], queue)):
            is_room = len(self._seen) - (OTHER in self._seen) < self.most
            shown[queue] = queue if is_room or queue in self._seen else OTHER
            self._seen[shown[queue]] = now
        return {queue: queue for queue in (*self.named, *self._seen)} | shown
