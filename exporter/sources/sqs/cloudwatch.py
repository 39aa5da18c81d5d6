"""
What only CloudWatch knows: the age of the oldest message, and how many were sent and deleted.

One request for all queues of a region, or for 166 of them if there are more. It is about the past:
each number is of a minute, and comes a minute or two after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...errors import SourceError
from ...model import Metric, Note
from ...queues import OTHER
from ...source import Result
from ...timing import Deadline
from . import errors, metrics, parts
from .attributes import MOST
from .minutes import MINUTE, SETTLED, WINDOW, Minutes, Tally, beginning, seconds_per_job
from .names import Place
from .session import Age, Counts, Measured, Session

NAMESPACE = "AWS/SQS"
AGE, SENT, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "NumberOfMessagesDeleted"
STATISTICS = {AGE: "Maximum", SENT: "Sum", DELETED: "Sum"}
MOST_QUERIES = 500  # in one request
MOST_QUEUES = MOST_QUERIES // len(STATISTICS)
MOST_PAGES = 10  # of one answer; all numbers of the longest gap fit on one
AGE_SHOWN = 180.0  # seconds after the end of its minute
LONGEST_GAP = 3 * 3600  # seconds that are made up for after a time without answers
MOST_NAMED = 5  # queues in one sentence

WELL = ("Complete", "PartialData")  # what is said of a number's minutes

Numbers = Mapping[str, Minutes]  # by name in CloudWatch


class Totals(NamedTuple):
    """How much of one queue has been counted so far."""

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
    totals: Mapping[str, Totals]  # so far
    counts: Counts  # of the queues, as far as they are believed
    history: tuple[Counts, ...]


class CloudWatch:
    """GetMetricData, for as many queues of a region at a time as it takes."""

    name = "cloudwatch"
    metrics: tuple[Metric, ...] = (metrics.SENT, metrics.DELETED)

    def __init__(self, session: Session, interval: float) -> None:
        self.session, self.interval = session, interval
        self.asker = parts.Asker[tuple[Place, tuple[str, ...]]]()
        self.totals: Mapping[str, Totals] = {}

    def fetch(self, deadline: Deadline) -> Raw:
        asking, mono, wall = parts.asking(deadline), self.session.clock.mono(), self.session.clock.wall()
        requests = self._requests()
        self.session.ready("cloudwatch", (place for place, _ in requests), asking)

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
        counts, history = self.session.recent(), tuple(self.session.history)
        return Raw(mono, wall, wanted, answers, tuple(failures), self.totals, counts, history)

    def _requests(self) -> list[tuple[Place, tuple[str, ...]]]:
        """The queues to ask for in each request, by where it goes."""
        ours = filter(self.session.is_ours, {**self.session.settings.queues, **self.session.addresses})
        return parts.batches(ours, self.session.place_of_services, MOST_QUEUES)

    def _needed(self, together: Iterable[str], mono: float) -> float:
        """Of how many seconds numbers are needed: those since the last answer, and those that a mean is made of."""
        answered = min((self.totals[queue].mono for queue in together if queue in self.totals), default=mono)
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
        for page in self.session.pages("cloudwatch", place, "GetMetricData", deadline, MOST_PAGES, **how):
            with errors.reading("GetMetricData"):
                for result in page.get("MetricDataResults", []):
                    queue, name = queries[result["Id"]]
                    try:
                        found[queue][name] |= minutes(result)
                    except SourceError as failure:
                        refused[queue] = parts.of(queue, failure)
        return found | refused

    def _query(self, id_: str, queue: str, name: str) -> dict[str, Any]:
        metric = {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": self.session.dimensions(queue)}
        return {"Id": id_, "MetricStat": {"Metric": metric, "Period": MINUTE, "Stat": STATISTICS[name]}}

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        before = {queue: totals for queue, totals in raw.totals.items() if queue in raw.wanted}
        self.totals = before | {
            queue: added(before.get(queue), numbers, raw.mono, raw.wall) for queue, numbers in raw.answers.items()
        }
        settled = beginning(raw.wall - SETTLED)
        self.session.measured = Measured(raw.mono, ages := dict(self._ages(raw)), dict(self._paces(raw, settled)))
        for queue, totals in sorted(self.totals.items()):
            yield metrics.SENT(totals.sent.total, self.session.name, queue)
            yield metrics.DELETED(totals.deleted.total, self.session.name, queue)
        yield from without_age(raw, ages)
        yield from parts.told(raw.failures)

    def _ages(self, raw: Raw) -> Iterator[tuple[str, Age]]:
        for queue, numbers in raw.answers.items():
            if ages := numbers[AGE]:
                passed = max(0.0, raw.wall - (max(ages) + MINUTE))
                yield queue, Age(ages[max(ages)], raw.mono - passed, raw.mono + AGE_SHOWN - passed)

    def _paces(self, raw: Raw, until: int) -> Iterator[tuple[str, float]]:
        for queue, numbers in raw.answers.items():
            pace = seconds_per_job(raw.history, queue, numbers[DELETED], until)
            if pace is not None:
                yield queue, pace


def added(before: Totals | None, numbers: Numbers, mono: float, now: float) -> Totals:
    """What has been counted with these numbers as well."""
    if before is None:
        return Totals(mono, Tally.begun(numbers[SENT], now), Tally.begun(numbers[DELETED], now))
    return Totals(mono, before.sent.after(numbers[SENT], now), before.deleted.after(numbers[DELETED], now))


def without_age(raw: Raw, ages: Mapping[str, Age]) -> Iterator[Note]:
    """Why nobody knows how long the ready jobs of some queues wait."""
    waiting = {queue for queue, ready in raw.counts.ready.items() if ready}
    if silent := sorted(q for q in waiting & raw.answers.keys() if q not in ages or ages[q].until < raw.mono):
        yield Note(f"no age of {listed(silent)}: CloudWatch has told none of the last three minutes")
    if strangers := sorted(waiting - raw.wanted - {OTHER}):
        yield Note(f"no age of {listed(strangers)}: CloudWatch knows the queues of our own account alone")


def listed(queues: Collection[str]) -> str:
    """The names in one sentence."""
    some, more = ", ".join([*queues][:MOST_NAMED]), len(queues) - MOST_NAMED
    return f"{some} and {more} more" if more > 0 else some


def minutes(result: Mapping[str, Any]) -> dict[int, float]:
    """The minutes of one result with their numbers. Raises `SourceError`."""
    if (status := result.get("StatusCode", WELL[0])) not in WELL:
        raise errors.refused({"Error": {"Code": status}}, "GetMetricData")
    with errors.reading("GetMetricData"):
        at = [int(each.timestamp()) for each in result.get("Timestamps", [])]
        values = [float(each) for each in result.get("Values", [])]
        if not all(0 <= each <= MOST for each in values):
            raise ValueError
        return dict(zip(at, values, strict=True))
