"""What the status page calls over its limit is what an alert fires on: one threshold, not two, and none left out."""

from __future__ import annotations

import re

import pytest

from exporter.findings import metric_of
from exporter.model import Limit, Metric, Only
from exporter.queues import COUNTING

from ..readme.tables import METRICS
from .rules import ALERTS

LIMITED = [
    pytest.param(metric, limit, id=f"{metric.name}-{limit.alert}")
    for metric in sorted({*METRICS}, key=lambda metric: metric.name)
    for limit in metric.limits
]
WINDOW = "it is about a stretch of time, and a look has no memory"
MOMENT = "true for a moment in health, so its `for` is what it means"
APART = "the page says it of the source, beside why"
# Alerts of which the status page says nothing with a limit, and why. Whoever adds an alert decides that anew.
WITHOUT_A_LIMIT = {
    "WaitBudgetBurn": WINDOW,
    "Starved": WINDOW,
    "JobsReservedTwice": f"{WINDOW}; the last one is told under SOURCES",
    "JobsRerun": f"{WINDOW}; the last one is told under SOURCES",
    "FailureRatioHigh": WINDOW,
    "FailureRatioElevated": WINDOW,
    "CapacityLow": WINDOW,
    "DurationNearRetryAfter": WINDOW,
    "AutovacuumNotRunning": f"{MOMENT}: autovacuum comes once a minute, to a table that was quiet until then",
    "EcsTasksMissing": f"{MOMENT}: each scaling out begins with it; WORKERS has both numbers",
    "EcsTasksFlapping": WINDOW,
    "RedisEvictions": WINDOW,
    "SourceDown": f"{APART}, and is blind",
    "CollectorDown": APART,
    "PollSlow": APART,
    "ExporterDown": "whoever can read the page knows better",
    "ExporterAbsent": "whoever can read the page knows better",
}
NUMBER = re.compile(r"(?<![\w.\[\"-])(\d+(?:\.\d+)?)(?![\w\]\"])")


def thresholds(expr: str) -> set[float]:
    """The numbers that an expression compares or multiplies with; no windows."""
    return {float(said) for said in NUMBER.findall(expr)}


def expected(metric: Metric, limit: Limit) -> float:
    """The number that the rule should have."""
    assert not isinstance(limit.bound, Metric)
    if metric.name.endswith("_info"):
        return limit.bound + 1  # what is there is 1
    return limit.bound - 1 if limit.below else limit.bound * limit.share  # below 1 of what is counted is none


@pytest.mark.parametrize(("metric", "limit"), LIMITED)
def test_a_limit_is_its_alerts(metric: Metric, limit: Limit) -> None:
    """A metric that is the limit stands in the expression; a number does, too."""
    rule = ALERTS[limit.alert.removeprefix("LaravelQueue")]
    assert metric.name in rule.metrics
    if isinstance(limit.bound, Metric):
        assert limit.bound.name in rule.metrics
        assert limit.share == 1 or limit.share in thresholds(rule.expr)
    else:
        assert expected(metric, limit) in thresholds(rule.expr)
    assert not limit.page or rule.severity == "critical"


@pytest.mark.parametrize(("metric", "limit"), LIMITED)
def test_what_excuses_a_value_excuses_it_in_the_rule(metric: Metric, limit: Limit) -> None:
    """What has to be so as well stands in the rule, with its label and its seconds; what must not be, in both."""
    rule = ALERTS[limit.alert.removeprefix("LaravelQueue")]
    given, since = limit.given, limit.since
    named = {*limit.unless, *(metric_of(of).name for of in (given, limit.slack, since and since[0]) if of)}
    assert named <= rule.metrics
    assert not since or since[1] in thresholds(rule.expr)
    assert not isinstance(given, Only) or f'{given.label}="{given.value}"' in rule.expr
    excuses = re.findall(r"unless[^:]*?\b(laravel_queue_\w+)", rule.expr)
    assert {*excuses} == {*limit.unless, *([since[0].name] if since else [])}


def test_blind_is_what_the_page_on_blindness_is_about() -> None:
    """The page calls itself blind for the collectors that SourceDown names: another silent one is a ticket."""
    assert f'collector=~"{"|".join(COUNTING)}"' in ALERTS["SourceDown"].expr


def test_no_alert_is_left_out_by_chance() -> None:
    """Each is named by a limit, or stands in the list of those that cannot be, with the reason; a page as one."""
    limits = [(limit.alert.removeprefix("LaravelQueue"), limit) for metric in METRICS for limit in metric.limits]
    named = {alert for alert, _ in limits}
    assert named | WITHOUT_A_LIMIT.keys() == ALERTS.keys()
    assert not named & WITHOUT_A_LIMIT.keys()
    assert {a for a, limit in limits if limit.page} == {a for a in named if ALERTS[a].severity == "critical"}
