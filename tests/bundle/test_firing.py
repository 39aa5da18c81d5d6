"""Each alert fires where it should, says what it should, and is silent where nothing is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import on_databases, on_queues, on_services
from .promtool import ONE, REPLICA, WITH_ENV, a_test, alone, check, complaints, firing, series, silence, value, write
from .rules import ALERTS
from .worlds import BEGINS, DRIVEN, healthy

CASES = [*on_queues.CASES, *on_databases.CASES, *on_services.CASES]
HAS_NO_BEGINNING = {"WaitBudgetBurn", "EcsTasksFlapping"}  # what they tell of goes on all the time
NOT_AMONG_OTHERS = {"ExporterAbsent", "WaitBudgetBurn"}  # there must be no other exporter; it takes six hours


def test_every_alert_has_a_case_for_each_of_its_drivers() -> None:
    """And none is left for an alert or a driver that there is not."""
    assert {(case.alert, case.driver) for case in CASES} == {
        (name, driver) for name, alert in ALERTS.items() for driver in alert.drivers
    }


def test_each_alert_fires_in_time() -> None:
    """Within `for`, the longest window, and two rounds of scraping and evaluating."""
    assert [case.name for case in CASES if case.after > case.patience] == []


def test_nothing_fires_in_a_healthy_world(tmp_path: Path) -> None:
    """Of any driver, at the start as little as later; with a second exporter and a label of the target's, too."""
    worlds = [
        each for driver in DRIVEN for target in (ONE, REPLICA, WITH_ENV) for each in series(healthy(driver), target)
    ]
    unique = list({each["series"]: each for each in worlds}.values())
    checks = [each for minute in (3, 35, 100) for each in silence(minute)]
    assert complaints(write(tmp_path / "healthy.yml", [a_test("healthy", unique, checks)])) == ""


def test_each_alert_says_what_is_wrong(tmp_path: Path) -> None:
    """In the world that it is for, with these labels and these words; and not before it is true."""
    files = []
    for name in ALERTS:
        tests = []
        for case in (case for case in CASES if case.alert == name):
            target = {} if "job" in case.labels else ONE
            before = [] if name in HAS_NO_BEGINNING else silence(BEGINS - 1, [name])
            fires = check(case.at, name, firing(name, {**target, **case.labels}, case.says))
            tests.append(a_test(case.name, series(case.world, ONE), [*before, fires]))
        files.append(write(tmp_path / f"{name}.yml", tests, alone(tmp_path, name)))
    assert complaints(*files) == ""


def test_two_exporters_count_the_same_jobs_once(tmp_path: Path) -> None:
    """Case 42: each of them says how many there are, and nobody adds them up."""
    (case,) = [case for case in CASES if case.alert == "NoWorkers" and case.driver == "database"]
    inputs = [each for target in (ONE, REPLICA) for each in series(case.world, target)]
    fires = [firing(case.alert, {**target, **case.labels}, case.says) for target in (ONE, REPLICA)]
    assert "5 jobs" in case.says
    assert complaints(write(tmp_path / "two.yml", [a_test("two", inputs, [check(case.at, case.alert, *fires)])])) == ""


def test_nothing_else_fires(tmp_path: Path) -> None:
    """
    With all worlds in one Prometheus, each exporter is heard for what happens in its own, and for nothing else.

    They all have a label of the target's more, and all watch a connection of the same name: no join minds.
    """
    inputs: list[dict[str, str]] = []
    values: list[dict[str, Any]] = []
    for number, case in enumerate(case for case in CASES if case.alert not in NOT_AMONG_OTHERS):
        inputs += series(case.world, {**WITH_ENV, "instance": f"exporter-{number}"})
        fires = [(f'{{alertname="{ALERTS[name].full_name}"}}', 1.0) for name in sorted({case.alert, *case.also})]
        expression = f'count by (alertname) (ALERTS{{alertstate="firing", instance="exporter-{number}"}})'
        values.append(value(case.at, expression, *fires))
    assert complaints(write(tmp_path / "all.yml", [a_test("all", inputs, (), values)])) == ""
