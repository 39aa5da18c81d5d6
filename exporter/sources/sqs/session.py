"""What the collectors of one account share: its clients, and what each has learnt that another one needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...queues import OTHER
from ...timing import BELIEF, Clock, Deadline
from ..remembered import Remembered
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
    until: float  # how long it is shown, on the clock that never jumps


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
HISTORY = 1800.0  # seconds for which counts are kept, to make means of


class Session:
    """One account, as its collectors see it."""

    def __init__(self, name: str, settings: Sqs, aws: Aws | None = None, clock: Clock = Clock()) -> None:
        self.name, self.settings, self.clock = name, settings, clock
        self.aws = aws or Aws(settings)
        self.remembered = Remembered(settings.queues, lambda _: OTHER)
        self.addresses: Mapping[str, str] = {}  # queue → URL, of all that answered last
        self.history: deque[Counts] = deque()  # the newest last
        self.measured = UNMEASURED
        self.backlogs: Mapping[str, Backlog] = {}

    def ask(self, service: str, place: Place, operation: str, deadline: Deadline, **parameters: Any) -> dict[str, Any]:
        """The answer of one of AWS's services. Raises `SourceError`."""
        return self.aws.ask(Service(service, place), operation, deadline, **parameters)

    def address_of(self, queue: str) -> str:
        """The queue's URL; where it is not known, its name in SQS."""
        return self.addresses.get(queue) or self.settings.address_of(queue)

    def elsewhere(self, queue: str) -> Place:
        """Where other services than SQS are asked about a queue."""
        region = self.settings.region_at(self.address_of(queue))
        return Place(region or self.settings.home, self.settings.endpoint_url)

    def tell(self, counts: Counts) -> None:
        """Keep these counts; the same ones twice are kept once."""
        if not self.history or self.history[-1].mono < counts.mono:
            self.history.append(counts)
        while self.history[0].mono < counts.mono - HISTORY:
            self.history.popleft()

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
