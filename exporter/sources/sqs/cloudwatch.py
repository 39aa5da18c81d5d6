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
from . import errors, metrics, names, parts
from .names import Place
from .pace import MINUTE, WINDOW, seconds_per_job
from .session import Age, Measured, Session

NAMESPACE = "AWS/SQS"
AGE, SENT, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "NumberOfMessagesDeleted"
STATISTICS = {AGE: "Maximum", SENT: "Sum", DELETED: "Sum"}
MOST_QUERIES = 500  # in one request
SETTLED = 120  # seconds after which a minute's number is taken to be complete
LONGEST_GAP = 3 * 3600  # seconds that are made up for after a time without answers

MOST = 1e15  # no queue has seen more messages, nor seconds
WELL = ("Complete", "PartialData")  # what is said of a number's minutes

Minutes = Mapping[int, float]  # Unix time at which a minute began → its number
Numbers = Mapping[str, Minutes]  # by name in CloudWatch


class Counted(NamedTuple):
    """What has been counted of one queue so far."""

    until: int  # Unix time
    sent: float
    deleted: float


class Raw(NamedTuple):
    """What a poll brought."""

    mono: float
    wall: float
    wanted: frozenset[str]  # queues
    answers: Mapping[str, Numbers]
    failures: tuple[SourceError, ...]
    past: Mapping[str, Counted]


class CloudWatch:
    """One GetMetricData for the queues of each region."""

    name = "cloudwatch"
    metrics: tuple[Metric, ...] = (metrics.SENT, metrics.DELETED)

    def __init__(self, session: Session, interval: float) -> None:
        self.session, self.interval = session, interval
        self.asker = parts.Asker[tuple[Place, tuple[str, ...]]]()
        self.past: Mapping[str, Counted] = {}

    def fetch(self, deadline: Deadline) -> Raw:
        asking, mono, wall = parts.asking(deadline), self.session.clock.mono(), self.session.clock.wall()
        requests = self._requests()
        said, failures = self.asker.each(requests, lambda request, left: self._numbers(*request, wall, left), asking)
        answers: dict[str, Numbers] = {}
        for queue, answer in (each for together in said.values() for each in together.items()):
            if isinstance(answer, SourceError):
                failures.append(answer)
            else:
                answers[queue] = answer
        if failures and not answers:
            raise parts.whole(failures)
        wanted = frozenset(queue for _, together in requests for queue in together)
        return Raw(mono, wall, wanted, answers, tuple(failures), self.past)

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
    ) -> Mapping[str, Numbers | SourceError]:
        """The numbers of each minute for these queues; why there are none for one of them."""
        queries = {
            f"q{n}": (queue, name) for n, (queue, name) in enumerate((q, m) for q in together for m in STATISTICS)
        }
        how: dict[str, Any] = {
            "MetricDataQueries": [self._query(id_, *query) for id_, query in queries.items()],
            "StartTime": datetime.fromtimestamp(self._since(together, wall), UTC),
            "EndTime": datetime.fromtimestamp(wall, UTC),
        }
        found: dict[str, dict[str, dict[int, float]]] = {queue: {name: {} for name in STATISTICS} for queue in together}
        refused: dict[str, SourceError] = {}
        while True:
            page = self.session.ask("cloudwatch", place, "GetMetricData", deadline, **how)
            with errors.reading("GetMetricData"):
                for result in page.get("MetricDataResults", []):
                    queue, name = queries[result["Id"]]
                    found[queue][name] |= minutes(result)
                    if (status := result.get("StatusCode", WELL[0])) not in WELL:
                        failure = errors.refused({"Error": {"Code": status}}, "GetMetricData")
                        refused[queue] = parts.of(queue, failure)
            if not page.get("NextToken"):
                return found | refused
            how["NextToken"] = page["NextToken"]

    def _since(self, together: Iterable[str], wall: float) -> float:
        """From when on numbers are needed: those not counted yet, and those that a mean is made of."""
        counted = min((self.past[queue].until for queue in together if queue in self.past), default=wall)
        return min(max(counted, wall - LONGEST_GAP), wall - SETTLED - WINDOW) // MINUTE * MINUTE

    def _query(self, id_: str, queue: str, name: str) -> dict[str, Any]:
        address = self.session.addresses.get(queue) or self.session.settings.address_of(queue)
        dimensions = [{"Name": "QueueName", "Value": names.sqs_name(address)}]
        metric = {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": dimensions}
        return {"Id": id_, "MetricStat": {"Metric": metric, "Period": MINUTE, "Stat": STATISTICS[name]}}

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        settled = int((raw.wall - SETTLED) // MINUTE * MINUTE)
        before = {queue: counted for queue, counted in raw.past.items() if queue in raw.wanted}
        self.past = before | {
            queue: counted(before.get(queue, Counted(settled, 0, 0)), numbers, settled, raw.wall)
            for queue, numbers in raw.answers.items()
        }
        self.session.measured = Measured(raw.mono, dict(self._ages(raw)), dict(self._paces(raw, settled)))
        for queue, total in sorted(self.past.items()):
            yield metrics.SENT(total.sent, self.session.name, queue)
            yield metrics.DELETED(total.deleted, self.session.name, queue)
        yield from parts.told(raw.failures)

    def _ages(self, raw: Raw) -> Iterator[tuple[str, Age]]:
        for queue, numbers in raw.answers.items():
            if ages := numbers[AGE]:
                yield queue, Age(max(ages) + MINUTE, ages[max(ages)])

    def _paces(self, raw: Raw, until: int) -> Iterator[tuple[str, float]]:
        for queue, numbers in raw.answers.items():
            pace = seconds_per_job(self.session.history, queue, numbers[DELETED], until)
            if pace is not None:
                yield queue, pace


def counted(before: Counted, numbers: Numbers, settled: int, wall: float) -> Counted:
    """What has been counted with these numbers as well. Where the clock was put back, from there on."""
    since = before.until if before.until <= wall else settled

    def more(name: str) -> float:
        return sum(count for at, count in numbers[name].items() if since <= at < settled)

    return Counted(max(since, settled), before.sent + more(SENT), before.deleted + more(DELETED))


def minutes(result: Mapping[str, Any]) -> dict[int, float]:
    """The minutes of one result with their numbers. Raises an error of `errors.ODD`."""
    at = [int(each.timestamp()) for each in result.get("Timestamps", [])]
    values = [float(each) for each in result.get("Values", [])]
    if not all(0 <= each <= MOST for each in values):
        raise ValueError
    return dict(zip(at, values, strict=True))
