"""Which queues are shown: the named ones, and a bounded number of found ones, remembered for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from ...model import Metric
from ...queues import STATES
from .session import Row

OTHER = "other"
MOST = 100  # found queues that are shown under their own names
KEPT = 3600.0  # seconds for which a queue that has no rows any more still says zero

DROPPED = Metric(
    "laravel_queue_labels_dropped_total",
    "Label values that were counted under 'other', at each poll, because there were too many of them.",
    ("source", "collector", "label"),
    "counter",
)


class Found:
    """Remembers queues from poll to poll. Its size is bounded whatever the table holds."""

    def __init__(self, named: Iterable[str], most: int = MOST, kept: float = KEPT) -> None:
        self.named, self.most, self.kept = frozenset(named), most, kept
        self.dropped = 0
        self._seen: dict[str, float] = {}  # found queue → Unix time at which it last had rows

    def fold(self, rows: Iterable[Row], now: float) -> dict[str, Row]:
        """
        One row for each queue that is shown, zeros for those without rows; the rest becomes `other`.

        Of queues that are new the largest are shown. Two rows may carry one name: where the
        database promises no encoding, bytes that are no text look alike.
        """
        by_queue: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            by_queue[row["queue"]].append(row)
        self._seen = {queue: at for queue, at in self._seen.items() if now - at < self.kept}
        rest = []
        for queue in sorted(by_queue.keys() - self.named, key=lambda queue: (-_size(by_queue[queue]), queue)):
            if queue in self._seen or len(self._seen) < self.most:
                self._seen[queue] = now
            else:
                rest.append(queue)
        shown = {queue: by_queue.get(queue, []) for queue in sorted({*self.named, *self._seen})}
        if rest:
            self.dropped += len(rest)
            shown[OTHER] = [*shown.get(OTHER, ()), *chain.from_iterable(by_queue[queue] for queue in rest)]
        return {queue: _total(rows) for queue, rows in shown.items()}


def _size(rows: list[Row]) -> int:
    return sum(int(row[state]) for row in rows for state in STATES)


def _total(rows: list[Row]) -> Row:
    """Several rows as one; none as zeros. One answer has one `now`."""
    total: Row = {count: sum(row[count] for row in rows) for count in (*STATES, "implausible")}
    for time in ("ready_since", "reserved_since"):
        total[time] = min((row[time] for row in rows if row[time] is not None), default=None)
    return total | {"now": rows[0]["now"] if rows else 0}
