"""Which series are over their limits, or close to them, and in which words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from .amounts import Amount
from .model import Limit, Metric, Only, Sample

Values = Mapping[str, Mapping[tuple[str, ...], float]]  # metric's name → label values → value


@dataclass(frozen=True, slots=True)
class Finding:
    """One series that is over its limit, or (`over` false) close to it."""

    series: tuple[str, tuple[str, ...]]  # the metric's name, and the label values
    where: str
    says: str
    alert: str  # "" while there is no runbook of that name
    over: bool
    page: bool  # whether its alert wakes somebody up
    ratio: float

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Of two findings, the worse one has the higher: first what wakes somebody up, then what is furthest over."""
        return self.over, self.page, self.ratio

    @property
    def weight(self) -> str:
        """In a word, how bad it is."""
        return ("page" if self.page else "over") if self.over else "near"


def find(samples: Iterable[Sample], values: Values, runbooks: Collection[str], now: float) -> Iterator[Finding]:
    """The worst that its limits say of each series, if it is over or near one; `now` is the Unix time."""
    for sample in samples:
        worst: Finding | None = None
        for limit in sample.metric.limits:
            found = compared(sample, limit, values, runbooks, now)
            if found and (worst is None or found.rank > worst.rank):
                worst = found
        if worst:
            yield worst


def compared(sample: Sample, limit: Limit, values: Values, runbooks: Collection[str], now: float) -> Finding | None:
    """What one limit says of one series; None if it is neither over nor near it, or if that does not matter."""
    if limit.where and sample.labels[sample.metric.labels.index(limit.where[0])] not in limit.where[1:]:
        return None
    labels = sample.labelled
    value = total(sample, limit.total, values) if limit.total else sample.value
    bound = beside(limit.bound, labels, values) if isinstance(limit.bound, Metric) else limit.bound
    slack = beside(limit.slack, labels, values) if limit.slack else 0.0
    if value is None or bound is None or slack is None:
        return None
    over, ratio = compare(limit, value, bound * limit.share + slack)
    if (not over and ratio <= limit.soon) or excused(limit, labels, values, now):
        return None
    says = limit.says.format(
        value=Amount(sample.metric, value),
        bound=Amount(sample.metric, bound),
        beside=Amount(metric_of(limit.beside), beside(limit.beside, labels, values)) if limit.beside else None,
    )
    return Finding(
        series=(sample.metric.name, sample.labels),
        where=path(said for label, said in labels.items() if label != limit.total and (label, said) != limit.where),
        says=says if over else f"{says} (soon)",
        alert=limit.alert if limit.alert in runbooks else "",
        over=over,
        page=limit.page,
        ratio=ratio,
    )


def total(sample: Sample, label: str, values: Values) -> float | None:
    """The sum of all series that differ from this one in nothing but this label; told by the first of them alone."""
    at = sample.metric.labels.index(label)
    rest = sample.labels[:at] + sample.labels[at + 1 :]
    series = values.get(sample.metric.name, {})
    together = {labels: value for labels, value in series.items() if labels[:at] + labels[at + 1 :] == rest}
    return sum(together.values()) if sample.labels == min(together) else None


def compare(limit: Limit, value: float, bound: float) -> tuple[bool, float]:
    """Whether a value is over its limit, and how far it has come towards it: 1 is at the limit."""
    if limit.below:
        return value < bound, 2.0 - value / bound
    size = abs(value) if limit.either_way else value
    if size <= limit.least:
        return False, 0.0
    return size > bound or (limit.reached and size == bound), size / bound if bound else inf


def excused(limit: Limit, labels: Mapping[str, str], values: Values, now: float) -> bool:
    """Whether what else is known of the series says that its value does not matter."""
    if limit.given and not beside(limit.given, labels, values):
        return True
    if any(values.get(name, {}).get(tuple(labels.values())) for name in limit.unless):
        return True
    return limit.since is not None and any(now - at < limit.since[1] for at in agreeing(limit.since[0], labels, values))


def beside(of: Metric | Only, labels: Mapping[str, str], values: Values) -> float | None:
    """The sum of the series of another metric that agree with these labels; None if there is none."""
    found = agreeing(of, labels, values)
    return sum(found) if found else None


def agreeing(of: Metric | Only, labels: Mapping[str, str], values: Values) -> list[float]:
    """The values of another metric in the series that agree with these labels, as far as it has them."""
    metric = metric_of(of)
    wanted = {**labels, of.label: of.value} if isinstance(of, Only) else labels
    series = values.get(metric.name, {})
    if wanted.keys() >= set(metric.labels):
        only = series.get(tuple(wanted[label] for label in metric.labels))
        return [] if only is None else [only]
    at = {place: wanted[label] for place, label in enumerate(metric.labels) if label in wanted}
    return [value for key, value in series.items() if all(key[place] == name for place, name in at.items())]


def metric_of(of: Metric | Only) -> Metric:
    """The metric, be it all of its series or only some."""
    return of.metric if isinstance(of, Only) else of


def path(names: Iterable[str]) -> str:
    """The names, one below the other; one that is empty or ends in spaces, so that one sees it."""
    return "/".join(name if name and name == name.strip() else repr(name) for name in names)
