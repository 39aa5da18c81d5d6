"""
The nouns: a metric, its limit, a sample of it, the value of a histogram, and a note.

Plain frozen data. Imports nothing of ours and nothing that does I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

PREFIX = "laravel_queue_"
Column = Literal["now", "desired", "pending", "outdated"]
NAME = re.compile(rf"{PREFIX}[a-z0-9]+(_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric family. Call it with a value and its label values to get a `Sample`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter", "histogram"] = "gauge"
    limit: Limit | tuple[Limit, ...] = ()  # of several, the worst that is reached is told
    column: Column | None = None  # of the status page's table of workers, if it is shown there
    buckets: tuple[float, ...] = ()  # of a histogram: their upper bounds, rising; one more holds what is above

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"{self.name}: must be snake_case and start with {PREFIX}")
        if (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"{self.name}: counters, and only counters, end in _total")
        if (self.kind == "histogram") != bool(self.buckets):
            raise ValueError(f"{self.name}: histograms, and only histograms, have buckets")

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All that it is compared with."""
        return (self.limit,) if isinstance(self.limit, Limit) else self.limit

    def __call__(self, value: float, *labels: str) -> Sample:
        if len(labels) != len(self.labels) or not all(isinstance(label, str) for label in labels):
            raise ValueError(f"{self.name} takes texts for {self.labels}, got {labels}")
        counts = value.counts if isinstance(value, Distribution) else ()
        if len(counts) != (len(self.buckets) + 1 if self.buckets else 0):
            raise ValueError(f"{self.name} has {len(self.buckets)} buckets, got counts for {len(counts)}")
        return Sample(self, labels, value if self.buckets else float(value))


class Only(NamedTuple):
    """The series of a metric in which one label has this value."""

    metric: Metric
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Limit:
    """
    What a metric is compared with: it is over its limit when its value is above `bound`.

    `bound` is a constant, or a metric with the same labels: then each series has its own. With
    a `share` it is that share of it, and `slack` is another metric that is added to it: so far the
    value may be wrong. With `reached` a value at the bound is too much as well; with
    `either_way` one below minus the bound is, too; with `below` it is only a value below the bound.
    `says` is the sentence for a person; `{value}` and `{bound}` are filled in, in the unit
    that the metric's name ends in, and `{value:job}` as `1 job` or `2 jobs`. `where` is a label and
    those of its values that count. With `total` the series of all values of that label are added up first.
    From `soon` × bound on (0 < soon ≤ 1) the status page says that the limit is near. Values up
    to `least` are not worth a word whatever the bound is. `page` is whether its alert wakes somebody up.

    Other metrics are looked at beside it, in the series that agree with this one in all labels that
    both have: their sum is `{beside}`, that of `given` has to be above 0, those of the names in
    `unless` must not be, and nothing is wrong while the newest time of `since` is less than so many
    seconds ago.
    """

    bound: Metric | float
    says: str
    alert: str
    where: tuple[str, ...] = ()
    soon: float = 1.0
    beside: Metric | Only | None = None
    least: float = 0.0
    reached: bool = False
    either_way: bool = False
    below: bool = False
    share: float = 1.0
    slack: Metric | None = None
    given: Metric | Only | None = None
    unless: tuple[str, ...] = ()
    since: tuple[Metric, float] | None = None
    total: str = ""
    page: bool = False


class Distribution(float):
    """
    The value of a histogram: how many observations fell into each bucket, and their sum.

    As a number it is how many there were, so whoever treats all values alike may go on doing so.
    """

    __slots__ = ("counts", "sum")
    counts: tuple[int, ...]  # of each bucket alone; the last one is of what is above all bounds
    sum: float

    def __new__(cls, counts: tuple[int, ...], sum_: float) -> Distribution:
        made = super().__new__(cls, sum(counts))
        made.counts, made.sum = counts, sum_
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and (self.counts, self.sum) == (other.counts, other.sum)

    def __ne__(self, other: object) -> bool:  # a float brings its own
        return not self == other

    def __hash__(self) -> int:
        return hash((self.counts, self.sum))


class Sample(NamedTuple):
    """One value of one metric under one set of label values, in the order of the metric's labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: float

    @property
    def labelled(self) -> dict[str, str]:
        """The label values by their names."""
        return dict(zip(self.metric.labels, self.labels, strict=True))


class Note(NamedTuple):
    """
    Something that a person should know and no number says, in one sentence; not a failure.

    With `withholds` it says why nothing of the collector may be shown, although it was answered;
    with `doubts` why it may not be about what was meant, so that nobody may say that all is well.
    """

    text: str
    withholds: bool = False
    doubts: bool = False
