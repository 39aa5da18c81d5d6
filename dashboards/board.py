"""
Boards: rows of panels in Grafana's grid, and what one can choose on them.

Classic JSON of schema version 41, which Grafana 11 and later read from a file and in the import form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .grafana import COLOURS, NEUTRAL, SOURCE, Json, Panel, Row, runbook
from .promql import chosen

SCHEMA = 41
ACROSS = 24  # columns of the grid


@dataclass(frozen=True, slots=True)
class Variable:
    """Something to choose: the values of a label. All of them are `every`, or exactly those there are."""

    name: str
    of: str  # the series that carry the label
    every: str = ".+"
    hidden: bool = False  # then it is the instance of one that is there now, and none chooses it

    def json(self, variables: Mapping[str, str]) -> Json:
        """The variable, with everything chosen."""
        of = chosen(self.of, variables)
        every = {"allValue": self.every} if self.every else {}
        many: Json = {"current": {"text": "All", "value": "$__all"}, **every}
        one = {"regex": '/instance="([^"]+)"/'}
        query = f"query_result({of})" if self.hidden else f"label_values({of}, {self.name})"
        return {
            "name": self.name,
            "label": self.name,
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": self.name},
            "refresh": 2,
            "sort": 1,
            "multi": not self.hidden,
            "includeAll": not self.hidden,
            "hide": 2 if self.hidden else 0,
            **(one if self.hidden else many),
        }


@dataclass(frozen=True, slots=True)
class Annotation:
    """Moments or spans of time that every graph shows. With `at_value`, the value is the moment, in milliseconds."""

    name: str
    expr: str
    colour: str
    title: str
    text: str
    at_value: bool = False

    def json(self, variables: Mapping[str, str]) -> Json:
        """The annotation, of what is chosen."""
        return {
            "name": self.name,
            "datasource": SOURCE,
            "enable": True,
            "iconColor": self.colour,
            "expr": chosen(self.expr, variables),
            "titleFormat": self.title,
            "textFormat": self.text,
            "useValueForTime": self.at_value,
        }


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard. `variables` are chosen from left to right; `matched` says which of them a label is held to."""

    uid: str
    title: str
    variables: tuple[Variable, ...]
    matched: Mapping[str, str]
    rows: tuple[Row, ...]

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, in the order in which one reads."""
        return (panel for row in self.rows for panel in row.panels)

    def text(self) -> str:
        """The file."""
        return json.dumps(self.json(), indent=2, ensure_ascii=False) + "\n"

    def json(self) -> Json:
        """What Grafana reads."""
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": ["laravel-queue"],
            "schemaVersion": SCHEMA,
            "editable": False,
            "graphTooltip": 1,
            "timezone": "browser",
            "time": {"from": "now-3h", "to": "now"},
            "refresh": "30s",
            "links": LINKS,
            "annotations": {"list": [each.json(self.matched) for each in ANNOTATIONS]},
            "templating": {"list": [DATASOURCE, *(each.json(self._before(each)) for each in self.variables)]},
            "panels": list(self._flow()),
        }

    def _before(self, variable: Variable) -> Mapping[str, str]:
        """What is chosen to the left of a variable."""
        names = [each.name for each in self.variables]
        left = names[: names.index(variable.name)]
        return {label: name for label, name in self.matched.items() if name in left}

    def _flow(self) -> Iterator[Json]:
        number, y = 0, 0
        for row in self.rows:
            number += 1
            box = {"x": 0, "y": y, "w": ACROSS, "h": 1}
            yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": box}
            x, y, tallest = 0, y + 1, 0
            for panel in row.panels:
                if x + panel.width > ACROSS:
                    x, y, tallest = 0, y + tallest, 0
                number += 1
                yield panel.json(number, x, y, self.matched)
                x, tallest = x + panel.width, max(tallest, panel.height)
            y += tallest


DATASOURCE: Json = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
    "hide": 0,
}
LINKS: list[Json] = [
    {
        "type": "dashboards",
        "title": "Laravel queues",
        "tags": ["laravel-queue"],
        "keepTime": True,
        "includeVars": True,
        "asDropdown": False,
        "targetBlank": False,
        "icon": "dashboard",
        "tooltip": "",
        "url": "",
    },
    runbook(title="Runbooks"),
]
ANNOTATIONS = (
    Annotation(
        "Restarts",
        "max by (connection) (laravel_queue_restart_signal_timestamp_seconds) * 1000",
        NEUTRAL,
        "queue:restart",
        "of {{connection}}",
        at_value=True,
    ),
    Annotation(
        "Pages",
        'ALERTS{alertstate="firing", severity="critical"}',
        COLOURS["critical"],
        "{{alertname}}",
        "{{connection}} {{queue}}",
    ),
)
