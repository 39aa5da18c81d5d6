"""The files as Grafana reads them, and their queries as Prometheus does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser as promql

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
FILES = sorted(FOLDER.glob("*.json"))
BOARDS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text("utf-8")) for path in FILES}
VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")
BUILT_IN = {"__rate_interval": "1m", "__range": "3h"}


class Target(NamedTuple):
    """One query of a panel."""

    board: str
    panel: dict[str, Any]
    letter: str
    expr: str

    def __str__(self) -> str:
        return f"{self.board}/{self.panel['title']}/{self.letter}"


def panels(board: str) -> list[dict[str, Any]]:
    """All panels of a board but its rows."""
    return [panel for panel in BOARDS[board]["panels"] if panel["type"] != "row"]


def targets(board: str) -> list[Target]:
    """All queries of a board's panels."""
    return [
        Target(board, panel, target["refId"], target["expr"]) for panel in panels(board) for target in panel["targets"]
    ]


def variables(board: str) -> dict[str, dict[str, Any]]:
    """What one can choose on a board, by name."""
    return {variable["name"]: variable for variable in BOARDS[board]["templating"]["list"]}


def named(text: str) -> set[str]:
    """The variables in a text."""
    return {found[1] or found[2] for found in VARIABLE.finditer(text)}


def filled(text: str, **chosen: str) -> str:
    """A query with everything chosen, but for what is said otherwise."""
    values = BUILT_IN | chosen
    return VARIABLE.sub(lambda found: values.get(found[1] or found[2], ".+"), text)


def nodes(expr: promql.Expr) -> Iterator[Any]:
    """The expression and all its parts."""
    yield expr
    for part in ("lhs", "rhs", "expr", "param", "vector_selector"):
        inner = getattr(expr, part, None)
        if isinstance(inner, promql.Expr):
            yield from nodes(inner)
    for argument in getattr(expr, "args", None) or ():
        yield from nodes(argument)


def parsed(text: str) -> list[Any]:
    """All parts of a query with everything chosen. Raises `ValueError` where it is none."""
    return list(nodes(promql.parse(filled(text))))


def selectors(text: str) -> list[Any]:
    """Every selector of a query."""
    return [node for node in parsed(text) if isinstance(node, promql.VectorSelector)]


def matchers(selector: Any) -> dict[str, str]:
    """The labels that a selector is held to."""
    return {matcher.name: matcher.value for matcher in selector.matchers.matchers}
