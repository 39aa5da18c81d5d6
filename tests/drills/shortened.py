"""The shipped rules and routes in a world that is FACTOR times as fast."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from ..bundle.rules import ALERTING, ALERTMANAGER, ALERTS, RULES, groups, seconds

FACTOR = 10  # not more: Laravel's times are whole seconds, and a poll has to be a small part of each window
INTERVAL = 15.0 / FACTOR  # seconds between two polls, two scrapes, two evaluations: in life 15, as in the README
SLACK = 15.0  # seconds: what a busy machine may lose, and the rules that wait for another group's
EXCUSED = {
    "WaitBudgetBurn": "it looks back six hours, which are 36 minutes here; no incident is told by it alone",
}
WAITS = ("group_wait", "group_interval", "repeat_interval")

DURATION = re.compile(r"(?<=\[)(\w+)(?=\])|(?<=offset )(\w+)")
LIMIT = re.compile(r"((?:_age|_wait|_timestamp)_seconds\)? [<>] )(\d+(?:\.\d+)?)")  # seconds that something has to last


def short(duration: str | float) -> str:
    """A duration in the words of Prometheus, FACTOR times as short."""
    lasting = seconds(duration) if isinstance(duration, str) else duration
    return f"{round(1000 * lasting / FACTOR)}ms"


def expression(expr: str) -> str:
    """An expression with its windows, and with its limits for how long something lasts."""
    windows = DURATION.sub(lambda found: short(found[0]), expr)
    return LIMIT.sub(lambda found: f"{found[1]}{float(found[2]) / FACTOR:g}", windows)


def rule(shipped: dict[str, Any]) -> dict[str, Any]:
    """A rule with all of its times."""
    times = {key: short(shipped[key]) for key in ("for", "keep_firing_for") if key in shipped}
    return shipped | times | {"expr": expression(shipped["expr"])}


def rules(folder: Path) -> str:
    """The pattern of files with all the rules, evaluated each INTERVAL."""
    for path in (RULES, ALERTING):
        faster = [
            group | {"interval": f"{1000 * INTERVAL:.0f}ms", "rules": [rule(each) for each in group["rules"]]}
            for group in groups(path)
        ]
        (folder / path.name).write_text(yaml.safe_dump({"groups": faster}), "utf-8")
    return f"{folder}/laravel-queue.*.yml"


def routes(folder: Path, webhook: str) -> Path:
    """Alertmanager's snippet, whose pager and tickets are this address."""
    shipped = yaml.safe_load(ALERTMANAGER.read_text("utf-8"))
    for route in every(shipped["route"]):
        route |= {key: short(route[key]) for key in WAITS if key in route}
    for receiver in shipped["receivers"]:
        if receiver["name"] != "laravel-queue-nobody":
            receiver["webhook_configs"] = [{"url": f"{webhook}/{receiver['name']}"}]
    file = folder / "alertmanager.yml"
    file.write_text(yaml.safe_dump(shipped), "utf-8")
    return file


def every(route: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A route and all below it."""
    yield route
    for below in route.get("routes", ()):
        yield from every(below)


def fires_within(name: str, poll: float) -> float:
    """Seconds: the poll, a scrape, an evaluation, `for`, and the longest window of the rule and those behind it."""
    alert = ALERTS[name]
    return poll + 2 * INTERVAL + (alert.pending + alert.looks_back) / FACTOR


def resolves_within(name: str, poll: float) -> float:
    """Seconds: the poll, a scrape, an evaluation, `keep_firing_for`, and the longest window."""
    alert = ALERTS[name]
    return poll + 2 * INTERVAL + (alert.keeps + alert.looks_back) / FACTOR


def longest_wait() -> float:
    """Seconds that Alertmanager may wait, so as to tell what belongs together at once."""
    found = [*every(yaml.safe_load(ALERTMANAGER.read_text("utf-8"))["route"])]
    return sum(max(seconds(route.get(key, "0s")) for route in found) for key in WAITS[:2]) / FACTOR
