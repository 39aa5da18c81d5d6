"""
What follows from the answers of the others: how long the oldest job waits, and how much was asked.

It asks nobody, so it can always tell; and it looks more often than they do, so nothing is shown
for longer than it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ... import queues
from ...model import Metric
from ...source import Result
from ...timing import Deadline
from . import metrics
from .session import Age, Session

OFTEN = 15.0  # seconds
TOO_OLD = 180.0  # seconds; an age that is of longer ago is not shown


class Raw(NamedTuple):
    """What the others have learnt."""

    ready: Mapping[str, int]
    ages: Mapping[str, Age]
    requests: Mapping[tuple[str, str], int]


class Derived:
    """Joins what SQS and CloudWatch said of each queue."""

    name = "derived"
    metrics: tuple[Metric, ...] = (queues.OLDEST_JOB_AGE, metrics.REQUESTS)

    def __init__(self, session: Session) -> None:
        self.session = session
        # How long it is believed is decided by what stands here at first: for as long as all others may take.
        self.interval = max(session.settings.interval, 2 * session.settings.timeout)

    def fetch(self, deadline: Deadline) -> Raw:
        session = self.session
        self.interval = min(OFTEN, session.settings.interval / 4)  # so soon again after a failure of all as well
        return Raw(session.recent().ready, session.recently_measured().ages, session.aws.requests.counts())

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        """
        CloudWatch's age counts messages in flight as well, so with ready ones it is an upper bound.

        With none ready it says nothing, and nobody waits.
        """
        for queue, ready in raw.ready.items():
            age = raw.ages.get(queue)
            if not ready:
                yield queues.OLDEST_JOB_AGE(0, self.session.name, queue)
            elif age and now - age.at <= TOO_OLD:
                yield queues.OLDEST_JOB_AGE(age.seconds, self.session.name, queue)
        for (operation, outcome), count in raw.requests.items():
            yield metrics.REQUESTS(count, self.session.name, operation, outcome)
