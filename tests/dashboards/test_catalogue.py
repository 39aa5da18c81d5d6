"""What the boards ask for exists, and what exists is on a board; limits are those of the alerts."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser as promql
import pytest
import yaml

from dashboards import BOARDS as CODE
from dashboards.grafana import Column, Limit, Query

from ..contract import LABELS
from .files import BOARDS, ROOT, matchers, nodes, panels, parsed, selectors, targets

ALERTS = ROOT / "alerts" / "laravel-queue.alerts.yml"
RULES = ROOT / "alerts" / "laravel-queue.rules.yml"
OTHERS = {  # of Prometheus, and of the client library
    "up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS", "ALERTS_FOR_STATE",
    "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds",
}  # fmt: skip
FREE = {"job", "instance", "le", "alertname", "alertstate", "severity", "component"}  # labels that are not ours
SIGNS = (">", ">=")
EXCUSED: dict[str, str] = {}  # metric → why it is on no board


def rules(path: Path) -> dict[str, str]:
    """Each rule of a file, by its name → its expression."""
    groups = yaml.safe_load(path.read_text("utf-8"))["groups"]
    return {rule.get("alert", rule.get("record")): rule["expr"] for group in groups for rule in group["rules"]}


def plain(name: str) -> str:
    """A metric's name, of a part of a histogram as well."""
    return name if name in LABELS else re.sub("_(bucket|sum|count)$", "", name)


def labels_of(name: str) -> set[str]:
    """The labels that a series of this name may have."""
    if ":" in name:
        return {*name.partition(":")[0].split("_"), *FREE}
    return {*LABELS.get(plain(name), ()), *FREE}


def variable_queries(board: str) -> list[str]:
    """The series whose labels a variable or a note in the graphs asks for."""
    it = BOARDS[board]
    asked = [each["query"]["query"] for each in it["templating"]["list"] if each["type"] == "query"]
    return [re.sub(r"\w+\((.*?)(?:, \w+)?\)$", r"\1", one) for one in asked] + [
        each["expr"] for each in it["annotations"]["list"]
    ]


@pytest.mark.parametrize("board", BOARDS)
def test_case_82_no_query_names_what_nobody_exposes(board: str) -> None:
    """Each metric and label of a query is one of the exporter's, of a rule, or of Prometheus itself (Case 82)."""
    recorded = set(rules(RULES))
    for text in [each.expr for each in targets(board)] + variable_queries(board):
        names = set()
        for selector in selectors(text):
            names.add(selector.name)
            assert plain(selector.name) in LABELS or selector.name in recorded | OTHERS, selector.name
            assert set(matchers(selector)) <= labels_of(selector.name), (selector.name, matchers(selector))
        known = set().union(*map(labels_of, names))
        if not names & OTHERS:
            for node in parsed(text):
                assert grouped(node) <= known, text


def grouped(node: object) -> set[str]:
    """The labels that an aggregation or a join names."""
    modifier = getattr(node, "modifier", None)
    return set(getattr(modifier, "labels", None) or getattr(getattr(modifier, "matching", None), "labels", None) or ())


@pytest.mark.parametrize("board", BOARDS)
def test_legends_name_labels_that_are_there(board: str) -> None:
    """A legend with a label that no series has would show a hole."""
    for target in targets(board):
        wanted = set(re.findall(r"\{\{(\w+)\}\}", target.panel["targets"][ord(target.letter) - 65]["legendFormat"]))
        kept = grouped(parsed(target.expr)[0]) or set().union(*(grouped(node) for node in parsed(target.expr)))
        assert wanted <= kept, target


def test_every_metric_is_on_a_board() -> None:
    """What is worth exposing is worth looking at; an exception has a reason."""
    shown = {plain(s.name) for board in BOARDS for target in targets(board) for s in selectors(target.expr)}
    asked = {plain(s.name) for board in BOARDS for text in variable_queries(board) for s in selectors(text)}
    assert set(LABELS) - shown - asked == set(EXCUSED)


def limited() -> list[tuple[tuple[Query, ...], Limit]]:
    """Every limit that is drawn, and the queries that it judges."""
    found: list[tuple[tuple[Query, ...], Limit]] = []
    for panel in (panel for board in CODE for panel in board.panels):
        found += [(panel.queries, limit) for limit in panel.limits]
        columns = [query for query in panel.queries if isinstance(query, Column)]
        found += [((column,), limit) for column in columns for limit in column.limits]
    return found


@pytest.mark.parametrize("alert", sorted({limit.alert for _, limit in limited()}))
def test_a_limit_is_its_alerts(alert: str) -> None:
    """
    A number on a board is one that the rule compares with, and about a metric of that rule.

    Where the rule compares two series, their quotient is over 1 or their difference over 0.
    """
    rule = promql.parse(rules(ALERTS)[alert])
    numbers = {node.val for node in nodes(rule) if isinstance(node, promql.NumberLiteral)}
    compared = {node.name for node in nodes(rule) if isinstance(node, promql.VectorSelector)}
    for queries, limit in (each for each in limited() if each[1].alert == alert):
        asked = {selector.name for query in queries for selector in selectors(query.expr)}
        assert asked & compared, (asked, compared)
        if "laravel_queue_paused" in compared:
            assert "laravel_queue_paused" in asked, "a paused queue may wait"
        if limit.bound not in numbers:
            assert limit.bound == (1 if any(" / " in query.expr for query in queries) else 0)
            assert len(compared) > 1


@pytest.mark.parametrize("alert", sorted({limit.alert for _, limit in limited()}))
def test_a_colour_changes_where_its_alert_does(alert: str) -> None:
    """At the limit itself only where the rule says >=; Grafana's own steps begin at their value."""
    compared = [node for node in nodes(promql.parse(rules(ALERTS)[alert])) if str(getattr(node, "op", "")) in SIGNS]
    for _, limit in (each for each in limited() if each[1].alert == alert and each[1].bound):
        with_it = [node for node in compared if getattr(node.rhs, "val", None) == limit.bound]
        signs = {str(node.op) for node in with_it or compared if with_it or not hasattr(node.rhs, "val")}
        assert signs, limit
        assert (limit.bound >= limit.step) == (">=" in signs), limit


def test_thresholds_are_the_limits_and_nothing_else() -> None:
    """No colour changes at a number that is not an alert's."""
    bounds = {0.0, *(sign * limit.step for _, limit in limited() for sign in (1, -1))}
    for board in BOARDS:
        for panel in panels(board):
            properties = [one for over in panel["fieldConfig"]["overrides"] for one in over["properties"]]
            steps = [one["value"] for one in properties if one["id"] == "thresholds"]
            for all_ in (panel["fieldConfig"]["defaults"]["thresholds"], *steps):
                assert {step["value"] for step in all_["steps"]} - {None} <= bounds
