"""What the collectors of one account share: its clients, and what each has learnt that another one needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...errors import SourceError
from ...queues import OTHER
from ...timing import BELIEF, Clock, Deadline
from ..remembered import Remembered
from . import names
from .aws import Aws, Service
from .names import Place
from .settings import Sqs


class Counts(NamedTuple):
    """Messages of each queue that answered, for who computes with them."""

    mono: float  # when they were asked for, on the clock that never jumps
    wall: float  # the same as Unix time
    ready: Mapping[str, int]
    reserved: Mapping[str, int]


class Age(NamedTuple):
    """How old the oldest message of a queue was in the newest minute that is known."""

    seconds: float
    at: float  # the end of that minute, on the clock that never jumps
    until: float  # how long it is shown, on the same clock


class Backlog(NamedTuple):
    """Ready jobs for each running task of a queue."""

    per_task: float
    mono: float  # when the jobs were counted, on the clock that never jumps
    wall: float  # the same as Unix time


class Measured(NamedTuple):
    """What CloudWatch's answer says of each queue."""

    mono: float  # when it was asked
    ages: Mapping[str, Age]
    seconds_per_job: Mapping[str, float]


NONE = Counts(float("-inf"), float("-inf"), {}, {})
UNMEASURED = Measured(float("-inf"), {}, {})
DIMENSION = "QueueName"  # as CloudWatch has it for AWS's own metrics of a queue
SPARSE = 15.0  # seconds between two counts that are kept; more of them would only take memory
HISTORY = 1800.0  # seconds for which counts are kept, to make means of


class Session:
    """One account, as its collectors see it."""

    def __init__(self, name: str, settings: Sqs, aws: Aws | None = None, clock: Clock = Clock()) -> None:
        self.name, self.settings, self.clock = name, settings, clock
        self.aws = aws or Aws(settings)
        self.remembered = Remembered(settings.queues, lambda _: OTHER)
        self.addresses: Mapping[str, str] = {}  # queue → URL, of all that answered last
        self.history: deque[Counts] = deque()  # the newest last
        self.emptied: Mapping[str, float] = {}  # queue → when nothing of it was ready last, on the monotonic clock
        self.measured = UNMEASURED
        self.backlogs: Mapping[str, Backlog] = {}

    def ask(self, service: str, place: Place, operation: str, deadline: Deadline, **parameters: Any) -> dict[str, Any]:
        """The answer of one of AWS's services. Raises `SourceError`."""
        return self.aws.ask(Service(service, place), operation, deadline, **parameters)

    def ready(self, service: str, places: Iterable[Place], deadline: Deadline) -> None:
        """Have what it takes to ask a service in these places. Raises `SourceError`."""
        self.aws.ready((Service(service, place) for place in places), deadline)

    def address_of(self, queue: str) -> str:
        """The queue's URL; where it is not known, its name in SQS."""
        return self.addresses.get(queue) or self.settings.address_of(queue)

    def pages(
        self, service: str, place: Place, operation: str, deadline: Deadline, most: int, **parameters: Any
    ) -> Iterator[dict[str, Any]]:
        """The pages of an answer, so many at most. Raises `SourceError`, also where they do not come to an end."""
        seen = set[str]()
        while len(seen) < most:
            page = self.ask(service, place, operation, deadline, **parameters)
            yield page
            if not (token := page.get("NextToken")):
                return
            if not isinstance(token, str) or token in seen:
                break
            seen.add(token)
            parameters["NextToken"] = token
        raise SourceError("malformed", f"{operation}: the pages of the answer do not come to an end")

    def is_ours(self, queue: str) -> bool:
        """Whether it is in the account of our credentials, as all are that were looked up, or found, by name."""
        said = self.settings.address_of(queue) if queue in self.settings.queues else ""
        return names.account_in(said) in (None, self.settings.account)

    def age_of(self, queue: str) -> Age | None:
        """
        CloudWatch's age of a queue with ready jobs, as far as it is of them.

        An age of 0, or of before nothing was ready, is that of others. Nobody waits since before that moment.
        """
        age, emptied, now = self.measured.ages.get(queue), self.emptied.get(queue, float("-inf")), self.clock.mono()
        if not age or not age.seconds or age.at <= emptied or now > age.until:
            return None
        return age._replace(seconds=min(age.seconds, now - emptied))

    def dimensions(self, queue: str) -> list[dict[str, str]]:
        """What CloudWatch knows a queue by."""
        return [{"Name": DIMENSION, "Value": names.sqs_name(self.address_of(queue))}]

    def place_of_services(self, queue: str) -> Place:
        """Where other services than SQS are asked about a queue."""
        region = self.settings.region_at(self.address_of(queue))
        return Place(region or self.settings.home, self.settings.endpoint_url)

    def tell(self, counts: Counts) -> None:
        """Keep these counts, the newest always, and older ones not closer together than means need them."""
        history = self.history
        if history and history[-1].mono >= counts.mono:
            return
        if len(history) > 1 and history[-1].mono - history[-2].mono < SPARSE:
            history.pop()
        history.append(counts)
        empty = {queue: counts.mono for queue, ready in counts.ready.items() if not ready}
        known = {queue: at for queue, at in self.emptied.items() if at > counts.mono - HISTORY}
        self.emptied = known | empty
        while history[0].mono < counts.mono - HISTORY:
            history.popleft()

    def counted(self) -> Counts:
        """The counts of the last poll that succeeded, however long ago."""
        return self.history[-1] if self.history else NONE

    def recent(self) -> Counts:
        """The counts of the last poll, or of the one before it if that failed; else none."""
        last, interval = self.counted(), self.settings.interval
        believed = max(2 * interval, interval + 2 * self.settings.timeout)
        return last if self.clock.mono() - last.mono < believed else NONE

    def seconds_per_job(self, queue: str) -> float | None:
        """As the settings say, or else as measured, for as long as that is believed."""
        if said := self.settings.of(queue).seconds_per_job:
            return said
        cloudwatch, age = self.settings.cloudwatch, self.clock.mono() - self.measured.mono
        believed = cloudwatch is not None and age < BELIEF * cloudwatch.interval
        return self.measured.seconds_per_job.get(queue) if believed else None
