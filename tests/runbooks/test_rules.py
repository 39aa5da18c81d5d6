"""A page says what its alert's rule does: the same severity, metrics, limits and time."""

from __future__ import annotations

import re

import pytest

from .alerted import rules
from .blocks import read
from .test_pages import NAMES, section

UNITS = {"m": "minute", "h": "hour"}
IN_WORDS = {  # a limit of a rule, as people say it
    "0.05": "5%",
    "0.25": "25%",
    "1800": "30 minutes",
    "100000": "100 kB",
    "268435456": "256 MB",
}


def meaning(name: str) -> str:
    """What a page says of its rule, as one line, with numbers as they are in a rule."""
    return re.sub(r"(?<=\d),(?=\d{3})|(?<=\d) (?=%)", "", " ".join(section(read(name), "Meaning").split()))


def test_each_alert_has_a_page_and_each_page_an_alert() -> None:
    """Nobody who is called finds nothing, and no page is of an alert that is gone."""
    assert set(NAMES) == set(rules())


@pytest.mark.parametrize("name", rules())
def test_severity_is_that_of_the_rule(name: str) -> None:
    """It wakes somebody up if, and only if, its first lines say so."""
    first = read(name).source.split("\n## ")[0]
    assert ("**Page.**" in first) == (rules()[name]["labels"]["severity"] == "critical")


@pytest.mark.parametrize("name", rules())
def test_time_is_that_of_the_rule(name: str) -> None:
    """How long the condition holds before somebody is told."""
    number, unit = re.fullmatch(r"(\d+)(m|h)", rules()[name].get("for", "0m")).groups()  # type: ignore[union-attr]
    assert number == "0" or f"{number} {UNITS[unit]}{'s'[: number != '1']}" in meaning(name)


@pytest.mark.parametrize("name", rules())
def test_metrics_and_limits_are_those_of_the_rule(name: str) -> None:
    """No number that the rule does not compare with, and no metric that it does not look at."""
    expression, said = rules()[name]["expr"], meaning(name)
    assert set(re.findall(r"laravel_queue_[a-z_]+", said)) <= set(re.findall(r"laravel_queue_[a-z_]+", expression))
    limits = set(re.findall(r"[<>]=? ([\d.]+)\b(?!\w)", expression)) - {"0"}
    assert {limit for limit in limits if limit not in said and IN_WORDS.get(limit, limit) not in said} == set()
