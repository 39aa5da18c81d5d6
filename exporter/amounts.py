"""Values as people read them: numbers in the unit that their metric's name ends in, and names."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf
from typing import NamedTuple

from .model import Metric

UNKNOWN = "-"
UNITS = ("bytes", "kB", "MB", "GB", "TB")


class Amount(NamedTuple):
    """
    A value in the unit that its metric's name ends in.

    A noun as the format makes it `1 job` or `2 jobs`; the format `ahead`, `2s ahead` or `2s behind`.
    """

    metric: Metric
    value: float | None

    def __format__(self, noun: str) -> str:
        if noun == "ahead" and self.value is not None:
            return f"{amount(self.metric, abs(self.value))} {'behind' if self.value < 0 else noun}"
        counted = f" {noun}" if noun and self.value == 1 else f" {noun}s" if noun else ""
        return f"{UNKNOWN if self.value is None else amount(self.metric, self.value)}{counted}"


def amount(metric: Metric, value: float) -> str:
    """A value in the unit that the metric's name ends in."""
    if metric.name.endswith("_seconds"):
        return f"{1000 * value:.0f}ms" if 0 < value < 1 else duration(value)
    if metric.name.endswith("_bytes"):
        return size(value)
    if metric.name.endswith("_ratio"):
        return f"{100 * value:.0f} %"
    return f"{value:,.0f}"


def size(number: float) -> str:
    """`870 MB`, `1.5 GB`: in powers of 1024, as Redis and PostgreSQL count in their settings."""
    power = max(0, min(int(number).bit_length() - 1, 40)) // 10
    scaled = number / 1024**power
    return f"{scaled:.{1 if power and scaled < 10 else 0}f} {UNITS[power]}"


def duration(seconds: float) -> str:
    """`45s`, `12m 40s`, `3h 5m`, `2d 4h`: two units at most; `none` if it has no end."""
    if isinf(seconds):
        return "none"
    if seconds < 0:
        return f"-{duration(-seconds)}"
    whole = int(seconds)
    for unit, below, small, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= unit:
            rest = whole % unit // small
            return f"{whole // unit}{below} {rest}{smaller}" if rest else f"{whole // unit}{below}"
    return f"{whole}s"


def cell(value: float | None, shown: Callable[[float], str] = "{:,.0f}".format) -> str:
    """A value, or that there is none."""
    return UNKNOWN if value is None else shown(value)


def printable(value: str) -> str:
    """A value from outside, without what could move a terminal's cursor."""
    return value if value.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
