"""As much of Grafana's panels as we use: queries over one Prometheus, and the limits that judge what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf, nextafter
from pathlib import Path
from typing import Any

import yaml

from .promql import chosen

Json = dict[str, Any]
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
RUNBOOKS = "http://${exporter:raw}/runbooks/"  # the exporter serves them
ALERTS = Path(__file__).parents[1] / "alerts" / "laravel-queue.alerts.yml"
COLOURS = {"critical": "red", "warning": "orange"}  # a page, a ticket
NEUTRAL, PLAIN = "blue", "transparent"  # what nobody judges; what is judged, and not over: no colour calls it good
LEAST_STEP = "2m"  # between two points of a rate: then there are two scrapes in it, even if they are a minute apart
NONE = "–"  # where nothing is known, or nothing is there


@cache
def severities() -> Mapping[str, str]:
    """Each alert of the shipped rules → its severity."""
    groups = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule["labels"]["severity"] for group in groups for rule in group["rules"]}


def runbook(name: str = "", title: str = "") -> Json:
    """A link to the runbook of an alert, or to all of them."""
    return {
        "type": "link",
        "title": title or name,
        "url": RUNBOOKS + name,
        "icon": "doc",
        "tooltip": "What to do",
        "tags": [],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": False,
        "targetBlank": True,
    }


@dataclass(frozen=True, slots=True)
class Limit:
    """Where an alert draws the line: above `bound`, at it (`reached`), `below` it. What is counted is over 0 at 1."""

    alert: str
    bound: float
    below: bool = False
    reached: bool = False
    either_way: bool = False  # as far below 0 as well

    @property
    def colour(self) -> str:
        """Red where it pages, orange where it is a ticket."""
        return COLOURS[severities()[self.alert]]

    @property
    def step(self) -> float:
        """From which value on it is over, as Grafana counts: there a step begins at its value."""
        exact = self.reached or self.below or not self.bound
        return (self.bound or 1) if exact else nextafter(self.bound, inf)


def thresholds(limits: Sequence[Limit], good: str = NEUTRAL) -> Json:
    """The colour of each limit, and `good` before it. Without a limit nothing is judged."""
    steps: list[Json] = [{"color": good, "value": None}]
    for limit in sorted(limits, key=lambda limit: limit.bound):
        if limit.below:  # from 0 on, as the colour of the first step is also that of what nobody knows
            steps += [{"color": limit.colour, "value": 0}, {"color": good, "value": limit.step}]
        elif limit.either_way:
            low: list[Json] = [{"color": limit.colour, "value": None}, {"color": good, "value": -limit.step}]
            steps = [*low, {"color": limit.colour, "value": limit.step}]
        else:
            steps.append({"color": limit.colour, "value": limit.step})
    return {"mode": "absolute", "steps": steps}


@dataclass(frozen=True, slots=True)
class Query:
    """One question; a dashed line is a limit, drawn beside what it limits. Where it may find nothing, it says why."""

    expr: str
    legend: str = ""
    dashed: bool = False
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Column(Query):
    """A column of a table: what it is called is its `legend`."""

    unit: str = "short"
    limits: tuple[Limit, ...] = ()
    says: tuple[tuple[str, str, str], ...] = ()  # value, the word for it, its colour
    width: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of some queries. `says` is what it shows, `normal` what one sees when all is well."""

    kind: str
    title: str
    says: str
    normal: str
    queries: tuple[Query, ...]
    unit: str = "short"
    limits: tuple[Limit, ...] = ()
    good: str = NEUTRAL  # the colour of what is not over its limit
    alerts: tuple[str, ...] = ()  # whose runbooks to open, besides those of the limits
    width: int = 8
    height: int = 9
    options: Json = field(default_factory=dict)
    custom: Json = field(default_factory=dict)
    defaults: Json = field(default_factory=dict)
    overrides: tuple[Json, ...] = ()
    transformations: tuple[Json, ...] = ()

    @property
    def runbooks(self) -> tuple[str, ...]:
        """The alerts whose runbooks say what to do."""
        return tuple(dict.fromkeys((*(limit.alert for limit in self.limits), *self.alerts)))

    def json(self, number: int, x: int, y: int, variables: Mapping[str, str]) -> Json:
        """The panel at its place in the grid."""
        to_open = f" Runbook: {', '.join(self.runbooks)}." if self.runbooks else ""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": f"{self.says} Normal: {self.normal}{to_open}",
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [
                self._target(letter, query, variables) for letter, query in zip(LETTERS, self.queries, strict=False)
            ],
            **({"interval": LEAST_STEP} if any("$__rate_interval" in query.expr for query in self.queries) else {}),
            "links": [runbook(name) for name in self.runbooks],
            "fieldConfig": {
                "defaults": {
                    "unit": self.unit,
                    "noValue": NONE,
                    "thresholds": thresholds(self.limits, self.good),
                    "custom": self.custom,
                    **self.defaults,
                },
                "overrides": [*self.overrides],
            },
            "options": self.options,
            "transformations": [*self.transformations],
        }

    def _target(self, letter: str, query: Query, variables: Mapping[str, str]) -> Json:
        over_time = self.kind == "timeseries"  # all else is as of now: the last number there was would be an old one
        return {
            "refId": letter,
            "datasource": SOURCE,
            "expr": chosen(" ".join(query.expr.split()), variables),
            "legendFormat": query.legend,
            "range": over_time,
            "instant": not over_time,
            "format": "table" if self.kind == "table" else "time_series",
        }


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one question, from left to right and then down."""

    title: str
    panels: tuple[Panel, ...]
