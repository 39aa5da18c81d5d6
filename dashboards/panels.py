"""The kinds of panels that our boards have: lines over time, one number, bars, a table."""

from __future__ import annotations

from typing import Any

from .grafana import LETTERS, NEUTRAL, PLAIN, Column, Json, Limit, Panel, Query, thresholds

DASHED: list[Json] = [
    {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
    {"id": "custom.fillOpacity", "value": 0},
    {"id": "custom.stacking", "value": {"mode": "none", "group": "A"}},
]
NEAR = range(1, 11)  # a limit so near to 0 is always in the picture; one that is far would flatten everything else
LEGEND: Json = {  # no last value: of a source that fell silent it would be an old one
    "displayMode": "table",
    "placement": "bottom",
    "showLegend": True,
    "calcs": ["max"],
    "sortBy": "Max",
    "sortDesc": True,
}
REDUCED: Json = {"calcs": ["lastNotNull"], "values": False, "fields": ""}


def lines(
    title: str, says: str, normal: str, *queries: Query, stacked: bool = False, signed: bool = False, **more: Any
) -> Panel:
    """Series over time, the largest first in the legend; an alert's limit is a dashed line. `signed`: not from 0 on."""
    limits: tuple[Limit, ...] = more.get("limits", ())
    counted = more.get("unit", "short") in ("short", "ops")
    near = [limit.bound or 1 for limit in limits if (limit.bound or 1) in NEAR or more.get("unit") == "percentunit"]
    return Panel(
        "timeseries",
        title,
        says,
        normal,
        queries,
        options={
            "legend": LEGEND,
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        custom={
            "drawStyle": "line",
            "lineInterpolation": "linear",
            "lineWidth": 1,
            "fillOpacity": 30 if stacked else 8,
            "showPoints": "auto",
            "pointSize": 4,
            "spanNulls": False,
            "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if limits else "off"},
            **({"axisSoftMax": max(near, default=1)} if near or counted else {}),  # or zeros have one up to a hundred
        },
        defaults={"color": {"mode": "palette-classic"}} | ({} if signed else {"min": 0}) | more.pop("defaults", {}),
        overrides=tuple(
            {"matcher": {"id": "byFrameRefID", "options": letter}, "properties": DASHED}
            for letter, query in zip(LETTERS, queries, strict=False)
            if query.dashed
        ),
        **more,
    )


def stat(title: str, says: str, normal: str, query: Query, **more: Any) -> Panel:
    """One number: on a coloured ground where it is over a limit, in plain blue where nothing judges it."""
    judged = bool(more.get("limits"))
    colour = {"mode": "thresholds"} if judged else {"mode": "fixed", "fixedColor": NEUTRAL}
    return Panel(
        "stat",
        title,
        says,
        normal,
        (query,),
        options={
            "colorMode": "background" if judged else "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "value",
            "reduceOptions": REDUCED,
        },
        defaults={"color": colour, "min": 0} | more.pop("defaults", {}),
        good=PLAIN if judged else NEUTRAL,
        **{"width": 3, "height": 4} | more,
    )


def bars(title: str, says: str, normal: str, query: Query, **more: Any) -> Panel:
    """A bar for each series, as it is now."""
    judged = bool(more.get("limits"))
    colour = {"mode": "thresholds"} if judged else {"mode": "fixed", "fixedColor": NEUTRAL}
    return Panel(
        "bargauge",
        title,
        says,
        normal,
        (query,),
        options={
            "displayMode": "basic",
            "orientation": "horizontal",
            "showUnfilled": True,
            "valueMode": "color",
            "namePlacement": "left",
            "sizing": "manual",
            "minVizHeight": 16,
            "maxVizHeight": 26,
            "minVizWidth": 8,
            "reduceOptions": REDUCED,
        },
        defaults={"color": colour, "min": 0} | more.pop("defaults", {}),
        **more,
    )


def table(
    title: str,
    says: str,
    normal: str,
    by: tuple[str, ...],
    *columns: Column,
    worst: str,
    rising: bool = False,
    columns_of: tuple[Json, ...] = (),
    **more: Any,
) -> Panel:
    """A row for each set of labels `by`, a column for each query, the worst row first."""
    names = {"Value": columns[0].legend} if len(columns) == 1 else {}
    names |= {f"Value #{letter}": column.legend for letter, column in zip(LETTERS, columns, strict=False)}
    places = [*by, *names]
    return Panel(
        "table",
        title,
        says,
        normal,
        columns,
        options={"showHeader": True, "cellHeight": "sm"},
        custom={"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": 60},
        overrides=(*(_column(column) for column in columns), *columns_of),
        transformations=(
            *([{"id": "merge", "options": {}}] if len(columns) > 1 else []),
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "indexByName": {name: place for place, name in enumerate(places)},
                    "renameByName": names,
                },
            },
            {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": worst, "desc": not rising}]}},
        ),
        **more,
    )


def _column(column: Column) -> Json:
    properties: list[Json] = [{"id": "unit", "value": column.unit}]
    if column.limits:
        properties += [
            {"id": "thresholds", "value": thresholds(column.limits, good="text")},
            {"id": "color", "value": {"mode": "thresholds"}},
            {"id": "custom.cellOptions", "value": {"type": "color-text"}},
        ]
    if column.says:
        properties += words(*column.says)
    return label(column.legend, *properties, width=column.width)


def words(*texts: tuple[str, str, str]) -> list[Json]:
    """What values are called, and their colour: value, word, colour. A word, so that nobody needs the colour."""
    mapped = {value: {"text": text, "color": colour} for value, text, colour in texts}
    return [
        {"id": "mappings", "value": [{"type": "value", "options": mapped}]},
        {"id": "color", "value": {"mode": "fixed", "fixedColor": "text"}},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
    ]


def label(name: str, *properties: Json, width: int = 0) -> Json:
    """How a column that a label makes looks."""
    wide = [{"id": "custom.width", "value": width}] if width else []
    return {"matcher": {"id": "byName", "options": name}, "properties": [*wide, *properties]}
