"""
Queries as people write them, and as a board sends them: with the matchers of its variables in each selector.

So no query can forget one. Which labels a metric has, the exporter's own definitions say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from exporter import exposition, queues, sources
from exporter.model import PREFIX, Metric

TARGET = ("job", "instance")  # what Prometheus adds to each series
OURS = 'job="laravel-queue-exporter"'  # as the alerts have it: `up` and the like exist of every other target as well
SELECTOR = re.compile(
    r"(?<![\w:$])"
    r"(?P<name>(?P<level>[a-z]+(?:_[a-z]+)*:)?laravel_queue_\w+(?::\w+)?|(?:process|python|scrape)_\w+|up\b|ALERTS\w*)"
    r"(?:\{(?P<matchers>[^}]*)\})?"
)


@cache
def catalogue() -> Mapping[str, tuple[str, ...]]:
    """Every metric of the exporter → its labels."""
    names = [module.name for module in walk_packages(sources.__path__, f"{sources.__name__}.")]
    modules = [exposition, queues, *map(import_module, names)]
    defined = [each for module in modules for each in vars(module).values() if isinstance(each, Metric)]
    return {metric.name: metric.labels for metric in (*defined, *exposition.METRICS)}


def labels(name: str) -> tuple[str, ...]:
    """
    The labels of a metric, of a part of a histogram, or of what a rule records, whose level names them.

    Raises `KeyError` for one of ours that nobody exposes.
    """
    if ":" in name:
        return tuple(name.partition(":")[0].split("_"))
    if not name.startswith(PREFIX):
        return ()
    return catalogue()[re.sub("_(bucket|sum|count)$", "", name)]


def chosen(expr: str, variables: Mapping[str, str]) -> str:
    """The query with a matcher for each label that has a variable, in every selector."""

    def matched(found: re.Match[str]) -> str:
        name = found["name"]
        if name in ("ALERTS", "ALERTS_FOR_STATE"):  # some alerts are about no instance and no queue
            ours = ['job=~"$job"', 'component="laravel-queue"']
        else:
            held = [label for label in (*TARGET, *labels(name)) if label in variables]
            ours = [f'{label}=~"${variables[label]}"' for label in held]
            ours += [] if "laravel_queue_" in name else [OURS]
        given = found["matchers"]
        matchers = ours + ([given] if given else [])
        return f"{name}{{{', '.join(matchers)}}}" if matchers else name

    return SELECTOR.sub(matched, expr)
