"""The one thing that is written: the backlog per task, for target tracking. Only where it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...errors import SourceError
from ...model import Metric, Note
from ...source import Result
from ...timing import Deadline
from . import metrics, parts
from .names import Place
from .session import Backlog, Session
from .settings import EACH_MINUTE

NAMESPACE, NAME = "Custom/QueueWorker", "BacklogPerTask"
MOST_DATA = 1000  # in one request
PUBLISHED_FOR = 120.0  # seconds after the counting; what is older is not published


class Raw(NamedTuple):
    """What was published."""

    published: Mapping[str, float]  # by queue
    failures: tuple[SourceError, ...]


class Publish:
    """
    PutMetricData, for each number until it has gone through: one that did is not sent again.

    Where the answer got lost CloudWatch may have it twice, at the same time, which moves no average.
    """

    name = "publish"
    metrics: tuple[Metric, ...] = (metrics.PUBLISHED,)

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asker = parts.Asker[tuple[Place, tuple[str, ...]]]()
        self.interval = EACH_MINUTE
        self.published: dict[str, float] = {}  # queue → when the jobs were counted whose backlog was published last

    def fetch(self, deadline: Deadline) -> Raw:
        asking = parts.asking(deadline)
        young = self.session.clock.mono() - PUBLISHED_FOR
        fresh = {
            queue: backlog
            for queue, backlog in self.session.backlogs.items()
            if backlog.mono > max(young, self.published.get(queue, young))
        }

        def put(request: tuple[Place, tuple[str, ...]], left: Deadline) -> dict[str, Any]:
            place, together = request
            data = [self._datum(queue, fresh[queue]) for queue in together]
            return self.session.ask("cloudwatch", place, "PutMetricData", left, Namespace=NAMESPACE, MetricData=data)

        done, failures = self.asker.each(parts.batches(fresh, self.session.place_of_services, MOST_DATA), put, asking)
        if failures and not done:
            raise parts.whole([*failures.values()])
        published = {queue: fresh[queue] for _, together in done for queue in together}
        self.published |= {queue: backlog.mono for queue, backlog in published.items()}
        return Raw({queue: backlog.per_task for queue, backlog in published.items()}, tuple(failures.values()))

    def _datum(self, queue: str, backlog: Backlog) -> dict[str, Any]:
        dimensions = self.session.dimensions(queue)
        at = datetime.fromtimestamp(backlog.wall, UTC)
        return {
            "MetricName": NAME, "Dimensions": dimensions, "Timestamp": at, "Value": backlog.per_task, "Unit": "Count"
        }  # fmt: skip

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        for queue, backlog in raw.published.items():
            yield metrics.PUBLISHED(backlog, self.session.name, queue)
        if not raw.published:
            yield Note("there is no fresh backlog per task, so nothing was published")
        yield from parts.told(raw.failures)
