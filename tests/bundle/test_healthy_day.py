"""A healthy day, with all that comes with one, pages nobody."""

from __future__ import annotations

from pathlib import Path
from random import Random

from ..readme.blocks import DOCS
from .day.database import Database
from .day.line import DAY, MINUTE
from .day.services import Clocks, Redis, Sqs
from .day.watched import SCRAPE, Scraped
from .promtool import a_test, complaints, series, value, write
from .rules import ALERTS
from .worlds import JOB

SEED = 20
FAR_SIDES = (Database, Redis, Sqs, Clocks)
DEFAULT, EXPORTS = 'connection="database", queue="default"', 'connection="database-long", queue="exports"'
NIGHTLY, ON_REDIS = 'connection="database", queue="nightly"', 'connection="redis", queue="default"'
DUMP = 'connection="database", holder="active"'
TICKETS = {  # and why a healthy day has them
    "XminHeld": ((DUMP,), "the dump of 20 minutes is one transaction"),
    "OrphanedReservations": (
        (DEFAULT, EXPORTS, ON_REDIS),
        "one worker is killed for want of memory, and all of them lose the database when it fails over",
    ),
    "JobsRerun": ((DEFAULT, EXPORTS), "what those workers held is started again after `retry_after`"),
    "DurationNearRetryAfter": ((DEFAULT,), "jobs that nobody works on any more are held for all of `retry_after`"),
    "RetryStorm": ((NIGHTLY,), "2 % of 50,000 jobs fail at first and wait for their next try behind all others"),
}
FIRED = 'count by (alertname, connection, queue, holder) (last_over_time(ALERTS{alertstate="firing", severity%s}[1d]))'


def test_a_healthy_day_pages_nobody(tmp_path: Path) -> None:
    """On no driver is there a page at any moment, and the tickets are those that are listed, and no other."""
    inputs = [
        each
        for number, far in enumerate(FAR_SIDES)
        for each in series(
            Scraped(far(Random(SEED + number))).run(Random(SEED - number)),
            {"job": JOB, "instance": f"exporter-{number}:10087"},
        )
    ]
    tickets = [
        (f'{{alertname="{ALERTS[name].full_name}", {labels}}}', 1.0)
        for name, (those, _) in TICKETS.items()
        for labels in those
    ]
    end = DAY / MINUTE
    fired = [value(end, FIRED % '="critical"'), value(end, FIRED % '!="critical"', *tickets)]
    assert complaints(write(tmp_path / "day.yml", [a_test("day", inputs, (), fired, f"{SCRAPE}s")])) == ""


def test_the_page_on_alerts_lists_the_tickets_of_a_healthy_day() -> None:
    """Each with the reason."""
    text = " ".join((DOCS / "alerts.md").read_text("utf-8").split())
    assert [name for name, (_, why) in TICKETS.items() if f"`{ALERTS[name].full_name}`: {why}" not in text] == []
