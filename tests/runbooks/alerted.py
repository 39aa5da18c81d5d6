"""Whether an alert's own expression holds, as a real Prometheus sees it: before its runbook is followed, and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import yaml

from exporter.timing import LONGEST_BACKOFF

from ..patience import until
from ..prometheus.prometheus import Prometheus
from .blocks import RUNBOOKS, Page
from .followed import ENDING, follow
from .stage import Stage

SEEN_HEALED = 1.5 * LONGEST_BACKOFF  # seconds; after failures the exporter may be so long in asking again
RULES = RUNBOOKS.with_name("alerts") / "laravel-queue.alerts.yml"


@cache
def rules() -> dict[str, Any]:
    """The rule of each alert, by name."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def holds(prometheus: Prometheus, alert: str) -> bool:
    """Whether the expression gives anything now, whatever its `for`."""
    return bool(prometheus.query(rules()[alert]["expr"]))


@contextmanager
def resolved(prometheus: Prometheus, alert: str) -> Iterator[None]:
    """The expression holds before what is done in here, and no longer afterwards."""
    until(lambda: holds(prometheus, alert), ENDING)
    yield
    until(lambda: not holds(prometheus, alert), SEEN_HEALED)


def follow_until_resolved(page: Page, stage: Stage) -> set[str]:
    """Follow the page while a Prometheus watches: what it recommends ends the alert. Returns what `follow` does."""
    target = stage.variables["EXPORTER"].removeprefix("http://")
    with Prometheus(target) as prometheus, resolved(prometheus, page.name):
        return follow(page, stage)
