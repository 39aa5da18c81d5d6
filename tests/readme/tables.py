"""The README's tables of metrics and settings, made from the code that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from exporter import exposition
from exporter.amounts import amount, duration
from exporter.app import sources
from exporter.config import DRIVERS as CONNECTIONS
from exporter.config import Config, parse
from exporter.demo.fargate.incidents import INCIDENTS as ON_AWS
from exporter.demo.incidents import INCIDENTS
from exporter.model import PREFIX, Limit, Metric, Only
from exporter.settings import Settings
from exporter.sources.clock import source as clock
from exporter.sources.database import source as database
from exporter.sources.redis import source as redis
from exporter.sources.sqs import source as sqs

from . import sample

README = Path(__file__).parents[2] / "README.md"
ALERTS = README.parent / "alerts" / "laravel-queue.alerts.yml"
DRIVERS: dict[str, tuple[Metric, ...]] = {"database": database.METRICS, "redis": redis.METRICS, "sqs": sqs.METRICS}
METRICS: tuple[Metric, ...] = (*chain(*DRIVERS.values()), *clock.METRICS, *exposition.METRICS)
NAMES = {"queues": "QUEUE", "pools": "POOL"}  # what stands for a key that the user chooses
APART = ("connections", "config_file")  # a table of its own, and a file of its own


def table(*rows: tuple[str, ...]) -> str:
    """Rows as Markdown, the first one as the head."""
    head, *body = rows
    lines = (head, ("---",) * len(head), *body)
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines)


def metrics() -> str:
    """Every metric once, in the order of their sources, and the drivers that give it."""
    rows = [
        (f"`{m.name}`", m.kind, ", ".join(f"`{label}`" for label in m.labels), given_by(m), m.help) for m in METRICS
    ]
    return table(("metric", "type", "labels", "driver", "meaning"), *dict.fromkeys(rows))


def given_by(metric: Metric) -> str:
    """The drivers whose connections have this metric; nothing where it belongs to no connection."""
    names = [name for name, metrics in DRIVERS.items() if metric in metrics]
    said = ", ".join(f"`{name}`{needs(metric) if name == 'redis' else ''}" for name in names)
    return "all" if names == [*DRIVERS] else said


def needs(metric: Metric) -> str:
    """What has to be set for a Redis so that it has this metric; nothing where it always has."""
    settings = {"driver": "redis", "prefix": ""}
    for more, words in (
        ({"queues": {"default": {"timeout": 60}}}, ""),
        ({"cache": {}}, " with `cache`"),
        ({"horizon": {"prefix": ""}}, " with `horizon`"),
    ):
        (source,) = (
            each for each in sources(parse({"connections": {"redis": settings | more}})) if each.name == "redis"
        )
        said = {metric for collector in source.collectors for metric in collector.metrics}
        if metric in said | {sample.metric for sample in source.constants}:
            return words
    return ""


def incidents() -> str:
    """Every incident that can be rehearsed."""
    rows = [(f"`{name}`", each.description) for name, each in INCIDENTS.items()]
    rows += [(f"`{name}`", each.description) for name, each in ON_AWS.items()]
    return table(("incident", "what happens"), *rows)


def alerts() -> str:
    """Every alert, in the order of the file: how bad it is, where it works, what it means."""
    rows = []
    for alert in (rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]):
        texts = alert["annotations"]
        drivers = "all" if texts["drivers"] == ", ".join(DRIVERS) else texts["drivers"]
        shown = drivers if drivers in {"all", "any"} else ", ".join(f"`{driver}`" for driver in drivers.split(", "))
        name = f"[{alert['alert']}](runbooks/{alert['alert']}.md)"
        rows.append((name, alert["labels"]["severity"], shown, texts["summary"]))
    return table(("alert", "severity", "driver", "meaning"), *rows)


class Blank:
    """What stands for a number in a sentence."""

    def __format__(self, noun: str) -> str:
        if noun == "ahead":
            return "… ahead"
        return f"… {noun}s" if noun else "…"


def limits() -> str:
    """Every limit that status compares with, in the order of their sources."""
    blank = Blank()
    said = (
        (
            f"`{m.name.removeprefix(PREFIX)}`",
            over(m, limit),
            limit.says.format(value=blank, bound=blank, beside=blank),
        )
        for m in dict.fromkeys(METRICS)
        for limit in m.limits
    )
    return table(("metric (`laravel_queue_…`)", "over its limit", "what `status` says"), *said)


def over(metric: Metric, limit: Limit) -> str:
    """When a metric is over its limit, and from where on that is near."""
    bound = limit.bound
    shown = called(bound) if isinstance(bound, Metric) else amount(metric, bound)
    if limit.share != 1:
        shown = f"{100 * limit.share:.0f} % of {shown}" if limit.share < 1 else f"{limit.share:,.0f} times {shown}"
    if limit.slack:
        shown += f" and {called(limit.slack)}"
    when = "off by more than" if limit.either_way else "below" if limit.below else "above"
    if limit.total:
        when = f"in every `{limit.total}` together {when}"
    elif limit.where:
        when = f"{', '.join(f'`{value}`' for value in limit.where[1:])} {when}"
    said = f"{when} {shown}, or equal" if limit.reached else f"{when} {shown}"
    if limit.given:
        said += f", while {called(limit.given)} is above 0"
    if limit.unless:
        said += f", unless {' or '.join(f'`{name.removeprefix(PREFIX)}`' for name in limit.unless)} is"
    if limit.since:
        said += f", unless {called(limit.since[0])} is less than {duration(limit.since[1])} ago"
    if limit.least:
        said += f", if over {amount(metric, limit.least)}"
    return said if limit.soon == 1 else f"{said}; near from {100 * limit.soon:.0f} % of that"


def called(of: Metric | Only) -> str:
    """The name of a metric, or of those of its series that count."""
    if isinstance(of, Only):
        return f'`{of.metric.name.removeprefix(PREFIX)}{{{of.label}="{of.value}"}}`'
    return f"`{of.name.removeprefix(PREFIX)}`"


def settings() -> str:
    """One table for the file, one for a connection of each driver."""
    head = ("setting", "default", "meaning")
    tables = [table(head, *rows(Config))]
    for name, driver in CONNECTIONS.items():
        tables += [f"A connection of the driver `{name}`, under `connections.NAME`:\n", table(head, *rows(driver))]
    return "\n".join(tables)


def rows(model: type[Settings], path: str = "") -> Iterator[tuple[str, ...]]:
    """A row for each setting of the model that says what it is, and for those below it."""
    for name, field in model.model_fields.items():
        at = f"{path}{field.alias or name}"
        if field.description:
            yield f"`{at}`", default(field), field.description
        for below in models(field.annotation) if name not in APART else ():
            yield from rows(below, f"{at}.{NAMES[name]}." if name in NAMES else f"{at}.")


def models(annotation: Any) -> Iterator[type[Settings]]:
    """The models in a type: itself, or what a mapping or an option holds."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        yield annotation
    for part in get_args(annotation):
        yield from models(part)


def default(field: FieldInfo) -> str:
    """The default as one would write it; nothing where there is none."""
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "needed"
    if value in (None, "", (), {}) or isinstance(value, Settings):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return f"`{', '.join(value)}`"
    return f"`{value:g}s`" if isinstance(value, float | int) else f"`{value}`"  # every number is a duration


def written(readme: str) -> str:
    """The README with its sample and its tables as they are now."""
    for name, text in (
        ("status", sample.page()),
        ("incidents", incidents()),
        ("limits", limits()),
        ("alerts", alerts()),
        ("metrics", metrics()),
        ("settings", settings()),
    ):
        readme = put(readme, name, text)
    return readme


def put(readme: str, name: str, text: str) -> str:
    """The README with this text between the marks of this name."""
    before, begin, rest = readme.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->\n")
    if not (begin and end):
        raise ValueError(f"README.md: expected the lines <!-- {name} --> and <!-- /{name} -->")
    return f"{before}{begin}\n{text}\n{end}{after}"
