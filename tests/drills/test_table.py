"""No incident is left out, and the README says what the drills are about."""

from __future__ import annotations

import re

from ..bundle.incidents import TOLD
from ..readme.tables import README
from .drills import DRILLS, NOT_DRILLED, TELLING


def listed() -> list[list[str]]:
    """The rows of the README's table, as cells."""
    text = README.read_text("utf-8").partition("<!-- drills -->")[2].partition("<!-- /drills -->")[0]
    return [[cell.strip("` ") for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if "| `" in line]


def test_every_incident_has_a_drill_or_an_excuse() -> None:
    """One of them, and the excuse is a sentence."""
    assert DRILLS.keys() | NOT_DRILLED.keys() == TOLD.keys()
    assert not DRILLS.keys() & NOT_DRILLED.keys()
    assert all(len(why.split()) > 3 for why in NOT_DRILLED.values())


def test_each_drill_waits_for_an_alert_that_is_meant_for_it() -> None:
    """Another one that fires as well does not do."""
    assert {name for name, drill in DRILLS.items() if drill.alert not in TOLD[name].by} == set()


def test_an_incident_is_ended_or_says_why_not() -> None:
    """By the cure of its runbook."""
    assert all(bool(drill.cure) != bool(drill.incurable) for drill in DRILLS.values())


def test_the_readme_has_the_incidents_and_alerts_of_the_drills() -> None:
    """Who changes a drill runs `make drill`, which writes the table anew."""
    rows = listed()
    assert {row[0]: row[2] for row in rows if row[0] in DRILLS} == {name: drill.alert for name, drill in DRILLS.items()}
    assert {row[0] for row in rows} == TOLD.keys()


def test_every_alert_in_the_readmes_drills_was_in_time() -> None:
    """Each row says after how many seconds it fired, and of how many it had."""
    times = [re.fullmatch(r"(\d+) s of (\d+)", row[3]) for row in listed() if row[0] in DRILLS]
    assert len(times) == len(DRILLS)
    assert all(found and int(found[1]) <= int(found[2]) for found in times)


def test_what_make_test_drills_is_drilled() -> None:
    """Each of them is a drill."""
    assert set(TELLING) <= DRILLS.keys()
