"""How rules and alerts are written, and that they speak of what the exporter emits."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import chain

import pytest

from exporter import exposition
from exporter.model import PREFIX
from exporter.sources.clock import metrics as clock

from ..readme.tables import DRIVERS as EMITTED
from ..readme.tables import METRICS
from .rules import ALERTING, ALERTS, ANY, DRIVERS, METRIC, RECORD, RECORDS, RULES, SELECTOR, Alert, groups, seconds
from .worlds import JOB, healthy

EXPRESSIONS = {**RECORDS, **{alert.full_name: alert.expr for alert in ALERTS.values()}}
EVERYWHERE = {metric.name for metric in (*exposition.METRICS, *clock.METRICS)} | {"up"}
LABELS = {metric.name: {*metric.labels} for metric in METRICS} | {"up": {"job", "instance"}}
BLIND = {"ExporterDown", "ExporterAbsent"}  # nobody is there to show a runbook
ENDS_AT_ONCE = {"ExporterDown", "ExporterAbsent"}  # a scrape that is lost is what they tell
NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(%|kB|hours?|minutes?|seconds?|pages|rows)?")
SIZES = {"%": 0.01, "kB": 1000, "hour": 3600, "minute": 60, "second": 1}


@pytest.mark.parametrize("file", [RULES, ALERTING], ids=lambda file: file.name)
def test_promtool_reads_the_rules(file: object) -> None:
    """Prometheus 2.42 takes them, and none is there twice."""
    program = shutil.which("promtool")
    if not program:
        pytest.fail("promtool is missing: `make services` installs it with Debian's prometheus")
    subprocess.run(
        [program, "check", "rules", "--lint=all", "--lint-fatal", str(file)], check=True, capture_output=True
    )


def test_no_alert_is_there_twice() -> None:
    """A name is the name of one alert, and of its runbook."""
    assert len(ALERTS) == sum(len(group["rules"]) for group in groups(ALERTING))


@pytest.mark.parametrize("name", RECORDS)
def test_a_recording_rule_says_its_level_and_its_operation(name: str) -> None:
    """level:metric:operations, as Prometheus advises."""
    assert re.fullmatch(r"(connection|connection_queue):laravel_queue_[a-z_]+:[a-z0-9_]+", name)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_joins_leave_labels_alone(name: str) -> None:
    """Only `ignoring` and `without`: a label of the target's survives, and two exporters do not clash."""
    assert not re.search(r"\b(on|by|topk|bottomk)\s*\(", EXPRESSIONS[name])
    assert not re.search(r"\[\d+s\]|\[[1-4]m\]", EXPRESSIONS[name]), "shorter than four scrapes a minute apart"


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_rules_speak_of_what_is_emitted(name: str) -> None:
    """Case 82: no metric, no label and no closed label's value is unknown to the exporter."""
    bare = re.sub(r"\w+:laravel_queue_\w+:\w+", "", EXPRESSIONS[name])
    assert {*re.findall(rf"\b{PREFIX}\w+", bare)} <= LABELS.keys()
    for metric, matchers in SELECTOR.findall(EXPRESSIONS[name]):
        assert {*re.findall(r"(\w+)\s*(?:=|!)", matchers)} <= LABELS[metric]
    known = set(chain.from_iterable(LABELS.values()))
    for labels in re.findall(r"\b(?:without|ignoring)\s*\(([^)]*)\)", EXPRESSIONS[name]):
        assert {label.strip() for label in labels.split(",")} <= known


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_an_alert_works_on_the_drivers_that_it_names(alert: Alert) -> None:
    """Case 82: on each of them something is emitted that it is made of; one for any needs none of them."""
    if alert.drivers == (ANY,):
        assert alert.metrics <= EVERYWHERE
        return
    assert alert.drivers == tuple(driver for driver in DRIVERS if driver in alert.drivers)
    for driver in alert.drivers:
        own = {metric.name for metric in EMITTED[driver]}
        assert (alert.metrics & own) or alert.metrics <= EVERYWHERE, driver
    anywhere = {metric.name for driver in alert.drivers for metric in EMITTED[driver]} | EVERYWHERE
    assert {*METRIC.findall(RECORD.sub("", alert.expr))} <= anywhere


@pytest.mark.parametrize("driver", EMITTED)
def test_a_simulated_world_holds_all_that_rules_are_made_of(driver: str) -> None:
    """What the driver emits and a rule needs is in its world, so a rule is not tried without it."""
    needed = frozenset().union(*(alert.metrics for alert in ALERTS.values()))
    emitted = {metric.name for metric in EMITTED[driver]}
    assert needed & emitted <= {series.name for series in healthy(driver)}
    assert {series.name for series in healthy(driver)} <= emitted | EVERYWHERE


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_an_alert_says_what_it_has_to(alert: Alert) -> None:
    """How bad, what it belongs to, a fixed sentence, a whole one with the numbers, and where to read on."""
    texts = alert.annotations
    assert alert.labels == {"severity": alert.severity, "component": "laravel-queue"}
    assert alert.severity in {"critical", "warning", "info"}
    assert re.fullmatch(r"[A-Z][^{}]*\.", texts["summary"])
    assert texts["description"].endswith(".")
    link = (
        {} if alert.name in BLIND else {"runbook_url": f"http://{{{{ $labels.instance }}}}/runbooks/{alert.full_name}"}
    )
    steps = {"first_steps"} if alert.name in BLIND else set()
    assert texts == {**{name: texts[name] for name in {"summary", "description", "drivers", *steps}}, **link}
    for step in steps:
        assert f"runbooks/{alert.full_name}.md" in texts[step]


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_a_value_is_told_for_people(alert: Alert) -> None:
    """No bare number of a float in a sentence."""
    assert not re.search(r"\{\{\s*\$value\s*\}\}", alert.annotations["description"])


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_numbers_in_the_text_are_those_of_the_rule(alert: Alert) -> None:
    """Case 86: a number that a sentence names is a threshold, a window or the `for` of the rule."""
    rule = [alert.expr, *(RECORDS[name] for name in RECORDS if name in alert.expr)]
    of_rule = {float(number) for text in rule for number in re.findall(r"(?<![\w.$])\d+(?:\.\d+)?(?![\w.])", text)}
    of_rule |= {float(seconds(text)) for each in rule for text in re.findall(r"\[(\w+)\]", each)} | {
        float(alert.pending)
    }
    prose = re.sub(r"\{\{.*?\}\}", "", f"{alert.annotations['summary']} {alert.annotations['description']}")
    for number, unit in NUMBER.findall(prose):
        size = SIZES.get(unit.removesuffix("s"), 1)
        assert any(abs(float(number) * size - each) < 1e-9 for each in of_rule), f"{number} {unit}"


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_a_lost_scrape_ends_no_alert(alert: Alert) -> None:
    """Case 81: it keeps firing for a while, or its window bridges the gap."""
    if alert.name not in ENDS_AT_ONCE:
        bridged = re.search(r"\[(\d+[mh])\]", alert.expr) or ":" in re.sub(r'"[^"]*"', "", alert.expr)
        assert alert.keeps >= 300 or bridged


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_an_alert_waits_for_two_scrapes(alert: Alert) -> None:
    """Unless its window has already waited."""
    assert alert.pending >= 60 or alert.looks_back >= 300


def test_pages_are_few() -> None:
    """Each page is about waits beyond what was decided, work lost or done twice, or blindness."""
    pages = {name for name, alert in ALERTS.items() if alert.severity == "critical"}
    assert pages == {
        *("WaitTooLong", "NoWorkers", "HorizonInactive", "ScaleFromZeroStuck"),
        *("JobsReservedTwice", "FailureRatioHigh", "RedisEvictions", "RedisFull", "ConnectionsExhausted"),
        *("ExporterDown", "ExporterAbsent", "SourceDown"),
    }


def test_the_scrape_job_has_its_name() -> None:
    """The alerts on the exporter itself look for it under this name."""
    for name in BLIND:
        assert f'job="{JOB}"' in ALERTS[name].expr
