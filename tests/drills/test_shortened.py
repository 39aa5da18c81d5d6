"""The rules of the drills are the shipped ones, but for their times."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from ..bundle import alertmanager
from ..bundle.rules import ALERTING, ALERTMANAGER, ALERTS, RULES, groups
from . import shortened
from .drills import DRILLS
from .shortened import DURATION, EXCUSED, FACTOR, LIMIT, every, expression, fires_within

LASTS = re.compile(r"[<>] (\d+)")
NO_TIMES = {"10000", "1000", "268435456", "100000", "100"}  # rows, pages, bytes, jobs


def plain(expr: str) -> str:
    """An expression without its times."""
    return LIMIT.sub(r"\1", DURATION.sub("", expr))


def test_a_window_and_a_limit_are_shortened() -> None:
    """By the one factor; what is no time stays."""
    assert FACTOR == 10
    assert expression("avg_over_time(x[30m] offset 5h) > 1000") == "avg_over_time(x[180000ms] offset 1800000ms) > 1000"
    assert expression("laravel_queue_oldest_job_age_seconds > 900") == "laravel_queue_oldest_job_age_seconds > 90"


def test_every_long_limit_is_one_of_time() -> None:
    """No rule has a number over 100 that the drills leave as it is, unless that is no time."""
    for alert in ALERTS.values():
        left = {number for number in LASTS.findall(LIMIT.sub(r"\1", alert.expr)) if int(number) >= 100}
        assert left <= NO_TIMES, (alert.name, left)


def test_nothing_but_times_differs(tmp_path: Path) -> None:
    """Rule by rule; and Prometheus takes them."""
    shortened.rules(tmp_path)
    for path in (RULES, ALERTING):
        faster = tmp_path / path.name
        subprocess.run(["promtool", "check", "rules", faster], check=True, capture_output=True)
        for ours, shipped in zip(groups(faster), groups(path), strict=True):
            for mine, theirs in zip(ours["rules"], shipped["rules"], strict=True):
                assert plain(mine["expr"]) == plain(theirs["expr"])
                assert timeless(mine) == timeless(theirs)


def timeless(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule without its times."""
    return {key: value for key, value in rule.items() if key not in {"expr", "for", "keep_firing_for"}}


def test_routes_differ_in_their_waits_alone(tmp_path: Path) -> None:
    """Grouping and inhibition are the shipped ones; Alertmanager takes them."""
    file = shortened.routes(tmp_path, "http://127.0.0.1:1")
    subprocess.run([alertmanager.program("amtool"), "check-config", file], check=True, capture_output=True)
    ours, shipped = (yaml.safe_load(path.read_text("utf-8")) for path in (file, ALERTMANAGER))
    assert ours["inhibit_rules"] == shipped["inhibit_rules"]
    for mine, theirs in zip(every(ours["route"]), every(shipped["route"]), strict=True):
        assert (mine["receiver"], mine.get("group_by")) == (theirs["receiver"], theirs.get("group_by"))


def test_only_what_is_excused_is_too_slow() -> None:
    """All alerts but those may fire within ten minutes here, and no drill waits for one that is excused."""
    slow = {name for name in ALERTS if fires_within(name, 0) > 600}
    assert slow == EXCUSED.keys()
    assert not slow & {drill.alert for drill in DRILLS.values()}
