"""Every incident that this project is there for has an alert that is meant for it."""

from __future__ import annotations

from exporter import queues
from exporter.demo.fargate.incidents import INCIDENTS as ON_AWS
from exporter.demo.incidents import INCIDENTS, horizon

from ..readme.tables import DRIVERS, METRICS
from .incidents import TOLD
from .rules import ALERTS


def test_every_incident_of_the_demo_is_told() -> None:
    """And none that it does not have."""
    assert {*INCIDENTS, *ON_AWS} == TOLD.keys()


def test_incidents_are_told_by_alerts_that_there_are() -> None:
    """No name is misspelt."""
    for name, told in TOLD.items():
        assert told.by, name
        assert {*told.by, *told.with_} <= ALERTS.keys(), name


def test_an_incident_is_told_on_its_driver() -> None:
    """Those of PostgreSQL by alerts that work there, those of SQS by others."""
    for name in INCIDENTS:
        driver = "redis" if name in horizon.INCIDENTS else "database"
        assert all(driver in ALERTS[alert].drivers for alert in TOLD[name].by), name
    for name in ON_AWS:
        assert all("sqs" in ALERTS[alert].drivers for alert in TOLD[name].by), name


def test_the_status_page_speaks_of_alerts_that_there_are() -> None:
    """
    The alert that a limit names is in the bundle, is made of the limit's metric, and works where it is emitted.

    It wakes somebody up if the alert does; what is said of the same before anybody waits for it does not.
    """
    for metric in METRICS:
        for limit in metric.limits:
            alert = ALERTS[limit.alert.removeprefix("LaravelQueue")]
            pages = any(other.page for other in metric.limits if other.alert == limit.alert)
            assert pages == (alert.severity == "critical"), alert.name
            assert metric.name in alert.metrics, (metric.name, alert.name)
            emitting = {driver for driver, metrics in DRIVERS.items() if metric in metrics}
            known = emitting - ({"sqs"} if metric is queues.JOBS else set())  # there nothing expires
            assert known <= {*alert.drivers}, metric.name
