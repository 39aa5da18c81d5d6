"""What is exposed is what was promised: names, labels, reasons, collectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import exporter
from exporter import config, errors, exposition, queues
from exporter.amounts import Amount
from exporter.app import sources
from exporter.config import parse
from exporter.findings import metric_of
from exporter.model import Metric, Only
from exporter.source import Source

from . import contract

RESERVED_LABELS = {"job", "instance", "env", "le", "quantile", "type", "service", "cluster", "region"}


def modules() -> Iterator[str]:
    """Every module of the house, except the one that runs."""
    found = walk_packages(exporter.__path__, "exporter.")
    return (module.name for module in found if not module.name.endswith("__main__"))


def defined() -> dict[str, set[Metric]]:
    """Every metric that some module defines, by its name."""
    by_name: dict[str, set[Metric]] = {}
    for module in modules():
        for each in vars(import_module(module)).values():
            if isinstance(each, Metric):
                by_name.setdefault(each.name, set()).add(each)
    return by_name


DEFINED = defined()


def opened() -> list[Source]:
    """One of each source, with everything in it switched on."""
    horizon = {"prefix": "laravel_horizon:"}
    queue = {"ecs": {"cluster": "workers", "service": "mail"}}
    connections = {
        "database": {"driver": "database", "dsn": "postgresql://127.0.0.1/app"},
        "redis": {"driver": "redis", "prefix": "laravel_database_", "horizon": horizon, "cache": {}},
        "sqs": {"driver": "sqs", "region": "eu-west-1", "queues": {"mail": queue}, "publish": "true"},
    }
    return list(sources(parse({"connections": connections, "clock": {"ntp": ["time1.internal"]}})))


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_a_metric_is_in_the_contract(name: str) -> None:
    """A name, its labels and their order are promised before they are exposed, and no name has two meanings."""
    (metric,) = DEFINED[name]
    assert metric.labels == contract.LABELS.get(name)


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_a_label_is_none_that_prometheus_or_others_use(name: str) -> None:
    """No label of ours is renamed to `exported_…` by the server that scrapes, nor clashes in a join."""
    (metric,) = DEFINED[name]
    assert not RESERVED_LABELS & set(metric.labels)
    assert len(set(metric.labels)) == len(metric.labels)


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_help_is_one_sentence_or_two(name: str) -> None:
    """The help text begins with a capital or a number, ends with a full stop, and is one line."""
    (metric,) = DEFINED[name]
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    assert metric.help.endswith(".")
    assert "\n" not in metric.help


def test_every_metric_is_published_by_somebody() -> None:
    """A metric that is defined belongs to a collector, to the settings, or to the exporter itself."""
    registered = {*exposition.METRICS, *queues.SETTINGS}
    for module in modules():
        registered |= set(getattr(import_module(module), "METRICS", ()))
    published = {metric for source in opened() for collector in source.collectors for metric in collector.metrics}
    assert published <= registered
    assert {metric for metrics in DEFINED.values() for metric in metrics} == registered


def test_openmetrics_has_no_family_twice() -> None:
    """There a counter is called without `_total`; where a gauge is called so already, it goes without a type."""
    families = [
        name.removesuffix("_total") if metric.kind == "counter" and metric not in exposition.UNTYPED else name
        for name, (metric,) in DEFINED.items()
    ]
    assert len(families) == len(set(families))


LIMITED = [metric for metrics in DEFINED.values() for metric in metrics if metric.limits]


@pytest.mark.parametrize("metric", LIMITED, ids=lambda metric: metric.name)
def test_a_limit_finds_what_it_compares_with(metric: Metric) -> None:
    """Another metric in a limit has no label that the limited one lacks; otherwise nothing would ever be over it."""
    for limit in metric.limits:
        for other in (limit.bound, limit.slack):
            assert not isinstance(other, Metric) or set(other.labels) <= set(metric.labels)
        for of in (limit.beside, limit.given, limit.since and limit.since[0]):
            if of is None:
                continue
            assert set(metric_of(of).labels) & set(metric.labels)
            assert not isinstance(of, Only) or of.label in of.metric.labels
        assert all(contract.LABELS[name] == metric.labels for name in limit.unless)
        assert not limit.total or limit.total in metric.labels
        assert not limit.where or limit.where[0] in metric.labels
        assert 0 < limit.soon <= 1
        one = Amount(metric, 1)
        assert limit.says.format(value=one, bound=one, beside=one)


def test_reasons_are_the_closed_set() -> None:
    """An alert may name a reason; none is added, lost or renamed in passing."""
    assert errors.REASONS == contract.REASONS


def test_collectors_are_called_as_promised() -> None:
    """`source` and `collector` are labels that alerts name; the most important one comes first."""
    found = {source.name: [collector.name for collector in source.collectors] for source in opened()}
    for source, collectors in found.items():
        assert set(collectors) == contract.COLLECTORS[source]
    assert {name: found[name][0] for name in config.DRIVERS} == {"database": "jobs", "redis": "queues", "sqs": "queues"}


def test_a_name_that_is_spelled_out_exists() -> None:
    """Where the code names a metric without importing it, a slip of the pen would compare with nothing, silently."""
    for path in Path(exporter.__path__[0]).rglob("*.py"):
        for name in re.findall(r"laravel_queue_\w+(?=[\"{ ])", path.read_text("utf-8")):
            assert name in contract.LABELS, path.name
