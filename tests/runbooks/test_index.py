"""The index of the runbooks: who knows only what they see finds the page."""

from __future__ import annotations

import re

import pytest
import yaml

from .blocks import RUNBOOKS

GROUPS = yaml.safe_load((RUNBOOKS.with_name("alerts") / "laravel-queue.alerts.yml").read_text("utf-8"))["groups"]
URGENCY = {
    rule["alert"]: "page" if rule["labels"]["severity"] == "critical" else "ticket"
    for group in GROUPS
    for rule in group["rules"]
}
INDEX = (RUNBOOKS / "README.md").read_text("utf-8")


def test_every_alert_is_in_the_index_once_and_no_other() -> None:
    """Each row says what one sees, links to the alert's page, and says as the rule does whether it is a page."""
    rows = re.findall(r"^\| [^|]+ \| \[(\w+)\]\((\w+)\.md\) \| (page|ticket) \|$", INDEX, re.MULTILINE)
    assert sorted((name, urgency) for name, _, urgency in rows) == sorted(URGENCY.items())
    assert all(name == target for name, target, _ in rows)


@pytest.mark.parametrize("name", URGENCY)
def test_every_alert_has_a_page_that_says_how_urgent_it_is(name: str) -> None:
    """Somebody at 3 a.m. reads first whether it is worth being awake for, and it is what the rule says."""
    first = (RUNBOOKS / f"{name}.md").read_text("utf-8").split("\n## ")[0]
    assert f"**{URGENCY[name].capitalize()}.**" in first


def test_what_no_alert_can_see_says_what_to_do_instead() -> None:
    """Each incident that is out of reach from outside has a reason and a way: no row ends in nothing."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+) \|$", INDEX.partition("## What no alert")[2], re.MULTILINE)
    assert len(rows) - 1 == 5
    assert all(len(cell) > 20 for row in rows[1:] for cell in row[:1] + row[2:])
