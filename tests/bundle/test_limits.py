"""What the status page calls over its limit is what an alert fires on: one threshold, not two."""

from __future__ import annotations

import re

import pytest

from exporter.model import Limit, Metric

from ..readme.tables import METRICS
from .rules import ALERTS

LIMITED = [
    pytest.param(metric, limit, id=f"{metric.name}-{limit.alert}")
    for metric in sorted({*METRICS}, key=lambda metric: metric.name)
    for limit in metric.limits
]
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
    assert metric.name in rule.expr
    if isinstance(limit.bound, Metric):
        assert limit.bound.name in rule.expr
        assert limit.share == 1 or limit.share in thresholds(rule.expr)
    else:
        assert expected(metric, limit) in thresholds(rule.expr)
