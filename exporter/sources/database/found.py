"""Which queues are shown: the named ones, and a bounded number of found ones, remembered for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...model import Metric
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

COUNTS = ("ready", "delayed", "reserved", "expired", "implausible")
TIMES = ("ready_since", "reserved_since")


class Found:
    """Remembers queues from poll to poll. Its size is bounded whatever the table holds."""

    def __init__(self, named: Iterable[str], most: int = MOST, kept: float = KEPT) -> None:
        self.named, self.most, self.kept = tuple(named), most, kept
        self.dropped = 0
        self._seen: dict[str, float] = {}  # found queue → Unix time at which it last had rows

    def fold(self, rows: Mapping[str, Row], now: float) -> dict[str, Row]:
        """One row for each queue that is shown, zeros for those without rows; the rest becomes `other`."""
        self._seen = {queue: at for queue, at in self._seen.items() if now - at < self.kept}
        shown, rest = {*self.named, *self._seen}, []
        for queue in sorted(rows, key=lambda queue: (-_size(rows[queue]), queue)):
            if queue in self.named:
                continue
            if queue in self._seen or len(self._seen) < self.most:
                self._seen[queue] = now
                shown.add(queue)
            else:
                rest.append(queue)
        folded = {queue: rows.get(queue, _total([])) for queue in sorted(shown)}
        if rest:
            self.dropped += len(rest)
            folded[OTHER] = _total([rows[queue] for queue in rest] + [folded[o] for o in (OTHER,) if o in folded])
        return folded


def _size(row: Row) -> int:
    return sum(int(row[count]) for count in COUNTS)


def _total(rows: list[Row]) -> Row:
    """Several rows as one; none as zeros."""
    total: Row = {count: sum(row[count] for row in rows) for count in COUNTS}
    for time in TIMES:
        total[time] = min((row[time] for row in rows if row[time] is not None), default=None)
    return total | {"now": max((row["now"] for row in rows if "now" in row), default=0)}
