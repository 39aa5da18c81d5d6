"""
What only CloudWatch knows: the age of the oldest message, and how many were sent and deleted.

One request for all queues of a region. It is about the past: each number is of a minute, and
comes a minute or two after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...errors import SourceError
from ...model import Metric
from ...source import Result
from ...timing import Deadline
from . import metrics, names, parts
from .names import Place
from .pace import MINUTE, WINDOW, seconds_per_job
from .session import Age, Measured, Session

NAMESPACE = "AWS/SQS"
AGE, SENT, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "NumberOfMessagesDeleted"
STATISTICS = {AGE: "Maximum", SENT: "Sum", DELETED: "Sum"}
MOST_QUERIES = 500  # in one request
SETTLED = 120  # seconds after which a minute's number is taken to be complete
LONGEST_GAP = 3 * 3600  # seconds that are made up for after a time without answers

Minutes = Mapping[int, float]  # Unix time at which a minute began → its number


class Past(NamedTuple):
    """What has been counted so far."""

    until: int | None  # Unix time
    sent: Mapping[str, float]
    deleted: Mapping[str, float]


class Raw(NamedTuple):
    """What a poll brought."""

    mono: float
    wall: float
    asked: frozenset[str]  # queues
    numbers: Mapping[tuple[str, str], Minutes]  # by queue and name in CloudWatch
    failures: tuple[SourceError, ...]
    past: Past


class CloudWatch:
    """One GetMetricData for the queues of each region."""

    name = "cloudwatch"
    metrics: tuple[Metric, ...] = (metrics.SENT, metrics.DELETED)

    def __init__(self, session: Session, interval: float) -> None:
        self.session, self.interval = session, interval
        self.asker = parts.Asker[tuple[Place, tuple[str, ...]]]()
        self.past = Past(None, {}, {})

    def fetch(self, deadline: Deadline) -> Raw:
        asking, mono, wall = parts.asking(deadline), self.session.clock.mono(), self.session.clock.wall()
        answers, failures = self.asker.each(
            self._requests(), lambda request, left: self._numbers(*request, wall, left), asking
        )
        if failures and not answers:
            raise parts.whole(failures)
        numbers = {key: minutes for answer in answers.values() for key, minutes in answer.items()}
        asked = frozenset(queue for _, together in answers for queue in together)
        return Raw(mono, wall, asked, numbers, tuple(failures), self.past)

    def _requests(self) -> list[tuple[Place, tuple[str, ...]]]:
        """The queues to ask for in each request, by where it goes."""
        by_place: dict[Place, list[str]] = {}
        for queue in {**self.session.settings.queues, **self.session.addresses}:
            by_place.setdefault(self.session.elsewhere(queue), []).append(queue)
        most = MOST_QUERIES // len(STATISTICS)
        return [
            (place, tuple(there[first : first + most]))
            for place, there in by_place.items()
            for first in range(0, len(there), most)
        ]

    def _numbers(
        self, place: Place, together: tuple[str, ...], wall: float, deadline: Deadline
    ) -> dict[tuple[str, str], Minutes]:
        """The numbers of each minute for these queues."""
        queries = {
            f"q{n}": (queue, name) for n, (queue, name) in enumerate((q, m) for q in together for m in STATISTICS)
        }
        how: dict[str, Any] = {
            "MetricDataQueries": [self._query(id_, *query) for id_, query in queries.items()],
            "StartTime": datetime.fromtimestamp(self._since(wall), UTC),
            "EndTime": datetime.fromtimestamp(wall, UTC),
        }
        found: dict[tuple[str, str], dict[int, float]] = {query: {} for query in queries.values()}
        while True:
            page = self.session.ask("cloudwatch", place, "GetMetricData", deadline, **how)
            for result in page.get("MetricDataResults", []):
                minutes = (int(at.timestamp()) for at in result.get("Timestamps", []))
                found[queries[result["Id"]]].update(zip(minutes, result.get("Values", []), strict=False))
            if not page.get("NextToken"):
                return dict(found)
            how["NextToken"] = page["NextToken"]

    def _since(self, wall: float) -> float:
        """From when on numbers are needed: those not counted yet, and those that a mean is made of."""
        counted = wall if self.past.until is None else max(self.past.until, wall - LONGEST_GAP)
        return min(counted, wall - SETTLED - WINDOW) // MINUTE * MINUTE

    def _query(self, id_: str, queue: str, name: str) -> dict[str, Any]:
        address = self.session.addresses.get(queue) or self.session.settings.address_of(queue)
        dimensions = [{"Name": "QueueName", "Value": names.sqs_name(address)}]
        metric = {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": dimensions}
        return {"Id": id_, "MetricStat": {"Metric": metric, "Period": MINUTE, "Stat": STATISTICS[name]}}

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        until = int((raw.wall - SETTLED) // MINUTE * MINUTE)
        since = until if raw.past.until is None else raw.past.until

        def counted(name: str, before: Mapping[str, float]) -> dict[str, float]:
            return {
                queue: before.get(queue, 0)
                + sum(count for at, count in raw.numbers[queue, name].items() if since <= at < until)
                for queue in raw.asked
            }

        self.past = Past(max(since, until), counted(SENT, raw.past.sent), counted(DELETED, raw.past.deleted))
        self.session.measured = Measured(raw.mono, dict(self._ages(raw)), dict(self._paces(raw, until)))
        for queue in sorted(raw.asked):
            yield metrics.SENT(self.past.sent[queue], self.session.name, queue)
            yield metrics.DELETED(self.past.deleted[queue], self.session.name, queue)
        yield from parts.told(raw.failures)

    def _ages(self, raw: Raw) -> Iterator[tuple[str, Age]]:
        for queue in raw.asked:
            if ages := raw.numbers[queue, AGE]:
                yield queue, Age(max(ages) + MINUTE, ages[max(ages)])

    def _paces(self, raw: Raw, until: int) -> Iterator[tuple[str, float]]:
        for queue in raw.asked:
            pace = seconds_per_job(self.session.history, queue, raw.numbers[queue, DELETED], until)
            if pace is not None:
                yield queue, pace
