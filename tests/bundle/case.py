"""What it takes for an alert to fire: a change in a healthy world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .rules import ALERTS
from .worlds import BEGINS, World, healthy


@dataclass(frozen=True)
class Case:
    """One way in which an alert fires, with what it then says."""

    alert: str  # without the prefix
    driver: str
    after: float  # minutes of the incident after which it fires
    labels: Mapping[str, str]  # of the series
    says: str
    changes: World
    also: tuple[str, ...] = ()  # other alerts that rightly fire by then

    @property
    def name(self) -> str:
        return f"{self.alert} on {self.driver} {' '.join(self.labels.values())}"

    @property
    def at(self) -> float:
        """The minute at which it fires."""
        return BEGINS + self.after

    @property
    def world(self) -> World:
        """The healthy world of the driver with the changes in it."""
        return healthy(self.driver) | self.changes

    @property
    def patience(self) -> float:
        """Minutes within which it has to fire: `for`, the longest window, and two rounds of scraping and evaluating."""
        alert = ALERTS[self.alert]
        return (alert.pending + alert.looks_back) / 60 + 2


def queue(connection: str, name: str) -> dict[str, str]:
    """The labels of a queue."""
    return {"connection": connection, "queue": name}


DEFAULT = queue("database", "default")
EMAILS = queue("database", "emails")
TABLE = {"connection": "database", "table": "jobs"}
ON_REDIS = queue("redis", "default")
MAIL = queue("sqs", "mail.fifo")
EXPORTS = queue("sqs", "exports")
QUEUES = {"database": DEFAULT, "redis": ON_REDIS, "sqs": EXPORTS}
