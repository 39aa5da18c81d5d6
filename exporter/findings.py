"""Which series are over their limits, or close to them, and in which words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from .amounts import Amount
from .model import Limit, Metric, Sample

Values = Mapping[str, Mapping[tuple[str, ...], float]]  # metric's name → label values → value


@dataclass(frozen=True, slots=True)
class Finding:
    """One series that is over its limit, or (`over` false) close to it."""

    where: str
    says: str
    alert: str  # "" while there is no runbook of that name
    over: bool
    page: bool  # whether its alert wakes somebody up
    ratio: float


def find(samples: Iterable[Sample], values: Values, runbooks: Collection[str]) -> Iterator[Finding]:
    """Every series whose metric names a limit, and that is over or near it."""
    for sample in samples:
        for limit in sample.metric.limits:
            if finding := compared(sample, limit, values, runbooks):
                yield finding


def compared(sample: Sample, limit: Limit, values: Values, runbooks: Collection[str]) -> Finding | None:
    """What one limit says of one series; None if it is neither over nor near it, or if that does not matter."""
    labels = sample.labelled
    if limit.where and labels[limit.where[0]] not in limit.where[1:]:
        return None
    if limit.given and not beside(limit.given, labels, values):
        return None
    if values.get(limit.unless, {}).get(sample.labels):
        return None
    bound = beside(limit.bound, labels, values) if isinstance(limit.bound, Metric) else limit.bound
    if bound is None:
        return None
    value = total(sample, limit.where[0], values) if limit.total else sample.value
    over, ratio = compare(limit, value, bound * limit.share)
    if not over and ratio <= limit.soon:
        return None
    says = limit.says.format(
        value=Amount(sample.metric, value),
        bound=Amount(sample.metric, bound),
        beside=Amount(limit.beside, beside(limit.beside, labels, values)) if limit.beside else None,
    )
    return Finding(
        where=path(value for label, value in labels.items() if (label, value) != limit.where),
        says=says if over else f"{says} (soon)",
        alert=limit.alert if limit.alert in runbooks else "",
        over=over,
        page=limit.page,
        ratio=ratio,
    )


def total(sample: Sample, label: str, values: Values) -> float:
    """The sum of all series of this metric that differ from this one in nothing but this label."""
    at = sample.metric.labels.index(label)
    return sum(
        value
        for labels, value in values.get(sample.metric.name, {}).items()
        if labels[:at] + labels[at + 1 :] == sample.labels[:at] + sample.labels[at + 1 :]
    )


def compare(limit: Limit, value: float, bound: float) -> tuple[bool, float]:
    """Whether a value is over its limit, and how far it has come towards it: 1 is at the limit."""
    if limit.below:
        return value < bound, 2.0 - value / bound
    size = abs(value) if limit.either_way else value
    if size <= limit.least:
        return False, 0.0
    return size > bound or (limit.reached and size == bound), size / bound if bound else inf


def beside(metric: Metric, labels: Mapping[str, str], values: Values) -> float | None:
    """The value of another metric for the series with these labels; None if there is none."""
    return values.get(metric.name, {}).get(tuple(labels[label] for label in metric.labels))


def path(names: Iterable[str]) -> str:
    """The names, one below the other; one that is empty or ends in spaces, so that one sees it."""
    return "/".join(name if name and name == name.strip() else repr(name) for name in names)
