"""
What only CloudWatch knows: the age of the oldest message, and how many were sent and deleted.

One request for all queues of a region, or for 166 of them if there are more. It is about the past:
each number is of a minute, and comes a minute or two after it.
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
from .minutes import MINUTE, SETTLED, WINDOW, Minutes, Tally, beginning, seconds_per_job
from .names import Place
from .session import Age, Measured, Session

NAMESPACE = "AWS/SQS"
AGE, SENT, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "NumberOfMessagesDeleted"
STATISTICS = {AGE: "Maximum", SENT: "Sum", DELETED: "Sum"}
MOST_QUERIES = 500  # in one request
MOST_QUEUES = MOST_QUERIES // len(STATISTICS)
TOO_OLD = 180.0  # seconds; an age of a minute that ended longer ago is not shown
LONGEST_GAP = 3 * 3600  # seconds that are made up for after a time without answers

MOST = 1e15  # no queue has seen more messages, nor seconds
WELL = ("Complete", "PartialData")  # what is said of a number's minutes

Numbers = Mapping[str, Minutes]  # by name in CloudWatch


class Past(NamedTuple):
    """What has been counted of one queue so far."""

    mono: float  # when CloudWatch was asked, on the clock that never jumps
    sent: Tally
    deleted: Tally


class Raw(NamedTuple):
    """What a poll brought."""

    mono: float
    wall: float
    wanted: frozenset[str]  # queues
    answers: Mapping[str, Numbers]
    failures: tuple[SourceError, ...]
    past: Mapping[str, Past]


class CloudWatch:
    """GetMetricData, for as many queues of a region at a time as it takes."""

    name = "cloudwatch"
    metrics: tuple[Metric, ...] = (metrics.SENT, metrics.DELETED)

    def __init__(self, session: Session, interval: float) -> None:
        self.session, self.interval = session, interval
        self.asker = parts.Asker[tuple[Place, tuple[str, ...]]]()
        self.past: Mapping[str, Past] = {}

    def fetch(self, deadline: Deadline) -> Raw:
        asking, mono, wall = parts.asking(deadline), self.session.clock.mono(), self.session.clock.wall()
        requests = self._requests()

        def ask(request: tuple[Place, tuple[str, ...]], left: Deadline) -> Mapping[str, Numbers | SourceError]:
            place, together = request
            return self._numbers(place, together, wall - self._needed(together, mono), wall, left)

        said, lost = self.asker.each(requests, ask, asking)
        answers: dict[str, Numbers] = {}
        failures = [*lost.values()]
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
        return [
            (place, tuple(there[first : first + MOST_QUEUES]))
            for place, there in by_place.items()
            for first in range(0, len(there), MOST_QUEUES)
        ]

    def _needed(self, together: Iterable[str], mono: float) -> float:
        """Of how many seconds numbers are needed: those since the last answer, and those that a mean is made of."""
        answered = min((self.past[queue].mono for queue in together if queue in self.past), default=mono)
        return min(mono - answered, LONGEST_GAP) + SETTLED + WINDOW

    def _numbers(
        self, place: Place, together: tuple[str, ...], since: float, until: float, deadline: Deadline
    ) -> Mapping[str, Numbers | SourceError]:
        """The numbers of each minute for these queues; why there are none for one of them."""
        queries = {
            f"q{n}": (queue, name) for n, (queue, name) in enumerate((q, m) for q in together for m in STATISTICS)
        }
        how: dict[str, Any] = {
            "MetricDataQueries": [self._query(id_, *query) for id_, query in queries.items()],
            "StartTime": datetime.fromtimestamp(beginning(since), UTC),
            "EndTime": datetime.fromtimestamp(until, UTC),
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

    def _query(self, id_: str, queue: str, name: str) -> dict[str, Any]:
        dimensions = [{"Name": "QueueName", "Value": names.sqs_name(self.session.address_of(queue))}]
        metric = {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": dimensions}
        return {"Id": id_, "MetricStat": {"Metric": metric, "Period": MINUTE, "Stat": STATISTICS[name]}}

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        before = {queue: past for queue, past in raw.past.items() if queue in raw.wanted}
        self.past = before | {
            queue: told(before.get(queue), numbers, raw.mono, raw.wall) for queue, numbers in raw.answers.items()
        }
        settled = beginning(raw.wall - SETTLED)
        self.session.measured = Measured(raw.mono, dict(self._ages(raw)), dict(self._paces(raw, settled)))
        for queue, past in sorted(self.past.items()):
            yield metrics.SENT(past.sent.total, self.session.name, queue)
            yield metrics.DELETED(past.deleted.total, self.session.name, queue)
        yield from parts.told(raw.failures)

    def _ages(self, raw: Raw) -> Iterator[tuple[str, Age]]:
        for queue, numbers in raw.answers.items():
            if ages := numbers[AGE]:
                passed = max(0.0, raw.wall - (max(ages) + MINUTE))
                yield queue, Age(ages[max(ages)], raw.mono + TOO_OLD - passed)

    def _paces(self, raw: Raw, until: int) -> Iterator[tuple[str, float]]:
        for queue, numbers in raw.answers.items():
            pace = seconds_per_job(self.session.history, queue, numbers[DELETED], until)
            if pace is not None:
                yield queue, pace


def told(before: Past | None, numbers: Numbers, mono: float, now: float) -> Past:
    """What has been counted with these numbers as well."""
    if before is None:
        return Past(mono, Tally.begun(numbers[SENT], now), Tally.begun(numbers[DELETED], now))
    return Past(mono, before.sent.after(numbers[SENT], now), before.deleted.after(numbers[DELETED], now))


def minutes(result: Mapping[str, Any]) -> dict[int, float]:
    """The minutes of one result with their numbers. Raises an error of `errors.ODD`."""
    at = [int(each.timestamp()) for each in result.get("Timestamps", [])]
    values = [float(each) for each in result.get("Values", [])]
    if not all(0 <= each <= MOST for each in values):
        raise ValueError
    return dict(zip(at, values, strict=True))
