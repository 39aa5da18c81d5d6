"""What the collectors of one account share: its clients, and what each has learnt that another one needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...queues import OTHER
from ...timing import Clock, Deadline
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


NONE = Counts(float("-inf"), float("-inf"), {}, {})
HISTORY = 1800.0  # seconds for which counts are kept, to make means of


class Backlog(NamedTuple):
    """Ready jobs for each running task of a queue."""

    per_task: float
    counted: float  # when the jobs were, on the clock that never jumps


class Session:
    """One account, as its collectors see it."""

    def __init__(self, name: str, settings: Sqs, aws: Aws | None = None, clock: Clock = Clock()) -> None:
        self.name, self.settings, self.clock = name, settings, clock
        self.aws = aws or Aws(settings)
        self.remembered = Remembered(settings.queues, lambda _: OTHER)
        self.addresses: Mapping[str, str] = {}  # queue → URL, of all that answered last
        self.history: deque[Counts] = deque()  # the newest last
        self.ages_are_told = settings.cloudwatch is not None  # by CloudWatch: so while it answers
        self.seconds_per_job: Mapping[str, float] = {}  # as measured
        self.backlogs: Mapping[str, Backlog] = {}

    def ask(self, service: str, place: Place, operation: str, deadline: Deadline, **parameters: Any) -> dict[str, Any]:
        """The answer of one of AWS's services. Raises `SourceError`."""
        return self.aws.ask(Service(service, place), operation, deadline, **parameters)

    def elsewhere(self, queue: str) -> Place:
        """Where other services than SQS are asked about a queue."""
        address = self.addresses.get(queue) or self.settings.address_of(queue)
        return Place(self.settings.region_at(address) or self.settings.home, self.settings.endpoint_url)

    def tell(self, counts: Counts) -> None:
        """Keep these counts; the same ones twice are kept once."""
        if not self.history or self.history[-1].mono < counts.mono:
            self.history.append(counts)
        while self.history[0].mono < counts.mono - HISTORY:
            self.history.popleft()

    def recent(self) -> Counts:
        """The counts of the last poll, or of the one before it if that failed; else none."""
        last = self.history[-1] if self.history else NONE
        return last if self.clock.mono() - last.mono < 2 * self.settings.interval else NONE
