"""The bundle as data: what each alert says, and which metrics stand behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "alerts"
RULES, ALERTING, ALERTMANAGER = (
    FOLDER / name for name in ("laravel-queue.rules.yml", "laravel-queue.alerts.yml", "alertmanager.yml")
)
DRIVERS = ("database", "redis", "sqs")
ANY = "any"  # an alert that needs no driver: it is about a clock or the exporter
METRIC = re.compile(r"\b(?:laravel_queue_\w+|up)\b(?=[{\s\[(),]|$)")
RECORD = re.compile(r"\b\w+:laravel_queue_\w+:\w+\b")
SELECTOR = re.compile(r"\b(laravel_queue_\w+|up)\{(.*?)\}")
RANGE = re.compile(r"\[(\w+)\]|offset (\w+)")
SINCE = re.compile(r"time\(\) - [^<>]+ < (\d+)")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str) -> int:
    """A duration of Prometheus's in seconds: `1h30m` is 5400."""
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", duration))


@dataclass(frozen=True)
class Alert:
    """One alert of the bundle."""

    name: str  # without the prefix that all of them share
    expr: str
    severity: str
    pending: int  # `for`, in seconds
    keeps: int  # `keep_firing_for`
    annotations: dict[str, str]
    labels: dict[str, str]

    @property
    def full_name(self) -> str:
        return f"LaravelQueue{self.name}"

    @property
    def drivers(self) -> tuple[str, ...]:
        """The drivers that it works for; `any` alone where it needs none."""
        return tuple(self.annotations["drivers"].split(", "))

    @property
    def looks_back(self) -> int:
        """Seconds of the longest window in the expression and in the rules behind it."""
        return longest_range(self.expr)

    @property
    def metrics(self) -> frozenset[str]:
        """The exporter's metrics behind the expression."""
        return metrics_behind(self.expr)


def groups(path: Path) -> list[dict[str, Any]]:
    """The groups of a file of rules."""
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text("utf-8"))["groups"]
    return found


RECORDS: dict[str, str] = {rule["record"]: rule["expr"] for group in groups(RULES) for rule in group["rules"]}


def metrics_behind(expr: str) -> frozenset[str]:
    """Every metric that an expression names, by itself or through a recording rule."""
    names = set(METRIC.findall(RECORD.sub("", expr)))
    return frozenset(names.union(*(metrics_behind(RECORDS[record]) for record in RECORD.findall(expr))))


def longest_range(expr: str) -> int:
    """The longest window of an expression; that of a recording rule comes on top, as it looks back from there."""
    own = max((*(sum(map(seconds, found)) for found in RANGE.findall(expr)), *map(int, SINCE.findall(expr))), default=0)
    return own + max((longest_range(RECORDS[record]) for record in RECORD.findall(expr)), default=0)


@cache
def alerts() -> dict[str, Alert]:
    """All alerts by their names without the prefix."""
    return {alert.name: alert for group in groups(ALERTING) for alert in map(read, group["rules"])}


def read(rule: dict[str, Any]) -> Alert:
    """An alert as it stands in the file."""
    return Alert(
        rule["alert"].removeprefix("LaravelQueue"),
        rule["expr"],
        rule["labels"]["severity"],
        seconds(rule.get("for", "0s")),
        seconds(rule.get("keep_firing_for", "0s")),
        rule["annotations"],
        rule["labels"],
    )


ALERTS = alerts()
