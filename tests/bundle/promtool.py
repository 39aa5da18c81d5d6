"""Simulated worlds, put to promtool with the shipped rules."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from .rules import ALERTING, ALERTS, RULES
from .worlds import JOB, World

Target = Mapping[str, str]  # labels
ONE: Target = {"job": JOB, "instance": "exporter-1:10087"}
REPLICA: Target = {"job": JOB, "instance": "exporter-2:10087"}
WITH_ENV: Target = {"job": JOB, "instance": "exporter-3:10087", "env": "production"}


def series(world: World, target: Target) -> list[dict[str, str]]:
    """A world as one exporter tells it."""
    return [{"series": each.on(target), "values": values} for each, values in world.items()]


def firing(name: str, labels: Mapping[str, str], says: str) -> dict[str, Any]:
    """What promtool has to find of an alert with these labels: all of its own labels and annotations."""
    alert, instance = ALERTS[name], labels.get("instance", "")
    texts = {
        key: " ".join(text.replace("{{ $labels.instance }}", instance).split())
        for key, text in alert.annotations.items()
    }
    return {"exp_labels": {**labels, **alert.labels}, "exp_annotations": {**texts, "description": says}}


def check(minute: float, name: str, *expected: dict[str, Any]) -> dict[str, Any]:
    """That just this fires of an alert then."""
    return {"eval_time": f"{round(minute * 60)}s", "alertname": ALERTS[name].full_name, "exp_alerts": [*expected]}


def silence(minute: float, names: Iterable[str] = ALERTS) -> list[dict[str, Any]]:
    """That none of these fires then; promtool looks at no name that is not listed."""
    return [check(minute, name) for name in names]


def value(minute: float, expression: str, *samples: tuple[str, float]) -> dict[str, Any]:
    """That an expression has just these values then."""
    expected = [{"labels": labels, "value": number} for labels, number in samples]
    return {"eval_time": f"{round(minute * 60)}s", "expr": expression, "exp_samples": expected}


def a_test(
    name: str,
    input_series: Sequence[dict[str, str]],
    alerts: Sequence[dict[str, Any]] = (),
    values: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """One test of promtool's, with a scrape and an evaluation a minute."""
    return {
        "name": name,
        "interval": "1m",
        "input_series": [*input_series],
        "alert_rule_test": [*alerts],
        "promql_expr_test": [*values],
    }


def write(file: Path, tests: Sequence[dict[str, Any]], rules: Sequence[Path] = (RULES, ALERTING)) -> Path:
    """A file of tests against these rules."""
    plan = {"rule_files": [*map(str, rules)], "evaluation_interval": "1m", "tests": [*tests]}
    file.write_text(yaml.dump(plan, Dumper=yaml.CSafeDumper, sort_keys=False, width=1_000_000), "utf-8")
    return file


def alone(folder: Path, name: str) -> tuple[Path, ...]:
    """The rules that one alert needs: so many worlds can be tried in little time."""
    for group in yaml.safe_load(ALERTING.read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            if rule["alert"] == ALERTS[name].full_name:
                file = folder / f"{name}.rules.yml"
                file.write_text(yaml.safe_dump({"groups": [{"name": name, "rules": [rule]}]}), "utf-8")
                return (RULES, file) if ":" in ALERTS[name].expr.replace("::", "") else (file,)
    raise KeyError(name)


def complaints(*files: Path) -> str:
    """What promtool complains of; nothing if it is content with all of them."""
    program = shutil.which("promtool")
    if not program:
        pytest.fail("promtool is missing: `make services` installs it with Debian's prometheus")
    done = subprocess.run([program, "test", "rules", *files], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert said.count("SUCCESS") == len(files) or done.returncode, said
    return said if done.returncode else ""
