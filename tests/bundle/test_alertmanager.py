"""What of several alerts arrives, where, and together with what: read from a running Alertmanager."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from ..patience import until
from . import alertmanager, on_databases, on_queues, on_services
from .alertmanager import Alertmanager, labels
from .rules import ALERTMANAGER, ALERTS

CONFIG = yaml.safe_load(ALERTMANAGER.read_text("utf-8"))
CASES = [*on_queues.CASES, *on_databases.CASES, *on_services.CASES]
RECEIVERS = {
    "critical": "laravel-queue-pager",
    "warning": "laravel-queue-tickets",
    "info": "laravel-queue-nobody",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    """One for all tests of this file: each uses an instance of its own."""
    with alertmanager.started(tmp_path_factory.mktemp("alertmanager")) as started:
        yield started


def names(matchers: list[str]) -> list[str]:
    """The alerts that matchers on `alertname` mean, without the prefix."""
    (matcher,) = matchers
    _, operator, pattern = matcher.strip().split(maxsplit=2)
    assert operator in {"=", "=~"}
    return [name for name, alert in ALERTS.items() if re.fullmatch(pattern.strip('"'), alert.full_name)]


def pairs() -> Iterator[tuple[str, str, list[str]]]:
    """Each alert that hides another one, and the labels that have to be equal."""
    for rule in CONFIG["inhibit_rules"]:
        for source in names(rule["source_matchers"]):
            for target in names(rule["target_matchers"]):
                yield source, target, rule["equal"]


def series(alert: str, driver: str) -> list[Mapping[str, str]]:
    """The labels under which an alert fires on a driver."""
    return [
        {"instance": "", "job": "", **case.labels} for case in CASES if (case.alert, case.driver) == (alert, driver)
    ]


def test_the_snippet_is_valid() -> None:
    """By Alertmanager's own check."""
    subprocess.run([alertmanager.program("amtool"), "check-config", ALERTMANAGER], check=True, capture_output=True)


@pytest.mark.parametrize("severity", RECEIVERS)
def test_each_severity_has_its_receiver(severity: str) -> None:
    """A page, a ticket, or nobody; and nothing of others' comes to any of them."""
    command = [alertmanager.program("amtool"), "config", "routes", "test", f"--config.file={ALERTMANAGER}"]
    receiver = f"--verify.receivers={RECEIVERS[severity]}"
    subprocess.run([*command, receiver, "component=laravel-queue", f"severity={severity}"], check=True)
    subprocess.run([*command, "--verify.receivers=laravel-queue-nobody", f"severity={severity}"], check=True)


def test_every_inhibition_names_alerts_that_there_are() -> None:
    """Each alternative of a pattern is an alert."""
    for rule in CONFIG["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            wanted = re.sub(r".*\(|\).*|.*LaravelQueue", "", matcher).count("|") + 1
            assert len(names([matcher])) == wanted, matcher


def test_labels_that_have_to_be_equal_are_there() -> None:
    """Alertmanager takes a label that both alerts lack for an equal one."""
    for source, target, equal in pairs():
        drivers = set(ALERTS[source].drivers) & set(ALERTS[target].drivers) or {"any"}
        for driver in drivers:
            for one in series(source, driver):
                for other in series(target, driver):
                    missing = set(equal) - one.keys() | set(equal) - other.keys()
                    both = missing - one.keys() - other.keys()
                    assert not missing or (missing == both == {"queue"} and "Failure" in source), (source, target)


def test_an_inhibition_stays_where_it_is() -> None:
    """On one exporter, and there on one connection, unless the exporter itself is gone."""
    for source, target, equal in pairs():
        assert {"job", "instance"} <= {*equal}, (source, target)
        assert source == "ExporterDown" or {"connection", "source"} & {*equal}, (source, target)


def test_no_page_is_hidden_by_a_ticket() -> None:
    """And the page of those who wait is hidden by nothing."""
    for source, target, _ in pairs():
        assert target != "WaitTooLong"
        if ALERTS[target].severity == "critical":
            assert ALERTS[source].severity == "critical"


def test_each_inhibition_works(running: Alertmanager) -> None:
    """The one hides the other on the same exporter, connection and queue; and not if any of these is another one."""
    expected: dict[frozenset[tuple[str, str]], bool] = {}
    for number, (source, target, equal) in enumerate(pairs()):
        there = {label: f"{number}" for label in equal if label != "job"}
        expected[frozenset(labels(source, **there).items())] = False
        expected[frozenset(labels(target, **there).items())] = True
        for label in there:
            elsewhere = {**there, label: f"{number}-{label}"}
            expected[frozenset(labels(target, **elsewhere).items())] = False
    running.post([dict(each) for each in expected])
    until(lambda: {each: running.suppressed().get(each) for each in expected} == expected)


def test_a_page_of_a_connection_comes_once(running: Alertmanager) -> None:
    """What is felt and what causes it are one page, from however many exporters; tickets come apart."""
    at: dict[str, Any] = {"connection": "grouped", "queue": "default"}
    running.post(
        [
            *(labels("WaitTooLong", instance=f"{n}", **at) for n in (1, 2)),
            labels("NoWorkers", instance="1", connection="grouped"),
            labels("RetryStorm", instance="1", **at),
            labels("PollSlow", instance="1", connection="grouped", source="grouped", collector="jobs"),
        ]
    )
    page = frozenset({"LaravelQueueWaitTooLong", "LaravelQueueNoWorkers"})
    until(lambda: running.groups().count(("laravel-queue-pager", page)) == 1)
    groups = running.groups()
    assert ("laravel-queue-tickets", frozenset({"LaravelQueueRetryStorm"})) in groups
    assert not any("LaravelQueuePollSlow" in those for receiver, those in groups if receiver != "laravel-queue-nobody")
