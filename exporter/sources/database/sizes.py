"""How large the jobs table is on disk."""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Limit, Metric, Note, Sample
from ...timing import Deadline
from .session import Row, Session
from .statistics import LIVE

SIZE = Metric(
    "laravel_queue_table_size_bytes",
    "Size on disk: heap (the rows), toast (values too long for a row), indexes; summed over partitions.",
    ("connection", "table", "part"),
    limit=Limit(
        LIVE,
        "{value} on disk for {beside:row}",
        "LaravelQueueTableBloated",
        share=100_000,
        least=268_435_456,
        total="part",
        beside=LIVE,
    ),
)
PARTS = ("heap", "toast", "indexes")
SLOWER = 4  # a table grows slowly, so once in so many intervals is enough


class Sizes:
    """The size functions wait behind DDL, so this may fail by `lock_timeout` while the others go on."""

    name = "sizes"
    metrics: tuple[Metric, ...] = (SIZE,)

    def __init__(self, session: Session) -> None:
        self.session, self.interval = session, SLOWER * session.settings.interval

    def fetch(self, deadline: Deadline) -> Row:
        (sizes,) = self.session.poll(deadline).ask("sizes")
        return sizes

    def measure(self, raw: Row, now: float) -> Iterable[Sample | Note]:
        for part in PARTS if raw["parts"] else ():  # no table, or a view, has no size
            yield SIZE(raw[part], self.session.name, self.session.settings.table, part)
