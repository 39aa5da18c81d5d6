"""
What is over its limit now, worst first, and then everything else in a screenful.

The report is made from the board alone; the terminal and the page show the same one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from . import queues
from .board import Board, State
from .model import Limit, Metric, Sample
from .timing import Clock


class Verdict(IntEnum):
    """The exit status of `status`."""

    FINE = 0
    OVER = 1
    BLIND = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One series that is over its limit, or (`over` false) close to it."""

    where: str
    says: str
    alert: str  # "" while there is no runbook of that name
    over: bool
    ratio: float


Values = Mapping[str, Mapping[tuple[str, ...], float]]  # metric's name → label values → value


@dataclass(frozen=True, slots=True)
class Report:
    """All that the status page says, at one moment."""

    values: Values
    findings: tuple[Finding, ...]
    sources: Mapping[str, Mapping[str, State]]  # source → collector → state
    mono: float
    wall: float

    @property
    def verdict(self) -> Verdict:
        """Blind if the most important collector of any source is silent: then nobody may call it fine."""
        if any(not next(iter(states.values())).fresh(self.mono) for states in self.sources.values()):
            return Verdict.BLIND
        return Verdict.OVER if any(finding.over for finding in self.findings) else Verdict.FINE


def report(board: Board, runbooks: Collection[str] = (), clock: Clock = Clock()) -> Report:
    """Compare what the board shows with its limits."""
    mono, states = clock.mono(), board.read()
    samples = list(board.constants)
    sources: dict[str, dict[str, State]] = defaultdict(dict)
    for key, state in states.items():
        sources[key.source][key.collector] = state
        if state.fresh(mono):
            samples += state.samples
    values: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for sample in samples:
        values[sample.metric.name][sample.labels] = sample.value
    findings = sorted(find(samples, values, runbooks), key=lambda f: (not f.over, -f.ratio, f.where, f.says))
    return Report(values, tuple(findings), sources, mono, clock.wall())


def find(samples: list[Sample], values: Values, runbooks: Collection[str]) -> Iterator[Finding]:
    """Every series whose metric names a limit, and that is over or near it."""
    for sample in samples:
        limit = sample.metric.limit
        if limit is None or (limit.where and limit.where not in sample.labelled.items()):
            continue
        bound = bound_of(limit, sample, values)
        if bound is None or sample.value <= (bound * limit.soon if bound else 0):
            continue
        says = limit.says.format(value=amount(sample.metric, sample.value), bound=amount(sample.metric, bound))
        over = sample.value > bound
        yield Finding(
            where="/".join(
                value for label, value in sample.labelled.items() if limit.where is None or label != limit.where[0]
            ),
            says=says if over else f"{says} (soon)",
            alert=limit.alert if limit.alert in runbooks else "",
            over=over,
            ratio=sample.value / bound if bound else float("inf"),
        )


def bound_of(limit: Limit, sample: Sample, values: Values) -> float | None:
    """The limit of this series; None if nobody set one."""
    if isinstance(limit.bound, Metric):
        return values.get(limit.bound.name, {}).get(sample.labels)
    return limit.bound


def amount(metric: Metric, value: float) -> str:
    """A value in the unit that the metric's name ends in."""
    if metric.name.endswith("_seconds"):
        return duration(value)
    if metric.name.endswith("_ratio"):
        return f"{100 * value:.0f} %"
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """`45s`, `12m 40s`, `3h 5m`, `2d 4h`: two units at most."""
    whole = int(seconds)
    for unit, below, small, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= unit:
            rest = whole % unit // small
            return f"{whole // unit}{below} {rest}{smaller}" if rest else f"{whole // unit}{below}"
    return f"{whole}s"


def text(report: Report) -> str:
    """The report in plain text, about sixty columns wide."""
    parts = (over_limit, queue_table, workers_and_connections, source_line)
    return "".join(f"{line}\n" for part in parts for line in part(report))


def over_limit(report: Report) -> Iterator[str]:
    """What is over its limit or close to it."""
    yield "OVER ITS LIMIT" if report.findings else "NOTHING IS OVER ITS LIMIT"
    width = max((len(printable(finding.where)) for finding in report.findings), default=0)
    for finding in report.findings:
        yield f"  {printable(finding.where):<{width}}  {finding.says:<36}  {finding.alert}".rstrip()


def queue_table(report: Report) -> Iterator[str]:
    """A line for each queue, the one that waits longest first."""
    jobs, ages = report.values.get(queues.JOBS.name, {}), report.values.get(queues.OLDEST_JOB_AGE.name, {})
    targets = report.values.get(queues.TARGET_WAIT.name, {})
    names = sorted({labels[:2] for labels in jobs}, key=lambda labels: (-ages.get(labels, 0), labels))
    width = max([len("QUEUES"), *(len(printable("/".join(labels))) + 2 for labels in names)])
    yield f"{'QUEUES':<{width}}" + "".join(f"{head:>10}" for head in (*queues.STATES, "oldest", "target"))
    for labels in names:
        counts = [f"{jobs[*labels, state]:,.0f}" if (*labels, state) in jobs else "-" for state in queues.STATES]
        age = duration(ages[labels]) if labels in ages else "-"
        target = duration(targets[labels]) if labels in targets else "-"
        yield f"  {printable('/'.join(labels)):<{width - 2}}" + "".join(
            f"{cell:>10}" for cell in (*counts, age, target)
        )


def workers_and_connections(report: Report) -> Iterator[str]:
    """How many workers there are, and who uses the connections."""
    workers = report.values.get("laravel_queue_workers", {})
    if workers:
        yield "WORKERS  " + ", ".join(f"{printable('/'.join(labels))} {n:.0f}" for labels, n in workers.items())
    connections = report.values.get("laravel_queue_database_connections", {})
    for (name,), ratio in report.values.get("laravel_queue_database_connection_usage_ratio", {}).items():
        most = report.values["laravel_queue_database_connections_max"][name,]
        free = most - report.values["laravel_queue_database_connections_reserved"][name,]
        pools: dict[str, float] = defaultdict(float)
        for (connection, pool, _), count in connections.items():
            pools[pool] += count if connection == name else 0
        split = ", ".join(
            f"{printable(pool)} {count:.0f}" for pool, count in sorted(pools.items(), key=lambda p: -p[1])
        )
        yield f"CONNECTIONS  {printable(name)} {ratio * free:.0f} of {free:.0f} ({100 * ratio:.0f} %): {split}"


def source_line(report: Report) -> Iterator[str]:
    """When each source answered last, and what is wrong with it."""
    for source, states in report.sources.items():
        newest = max((s.taken_at for s in states.values() if s.taken_at is not None), default=None)
        seen = f"{duration(max(0, report.wall - newest))} ago" if newest is not None else "no answer yet"
        yield f"SOURCE  {printable(source)} {seen}"
        for collector, state in states.items():
            gone = "" if state.fresh(report.mono) else ", nothing is shown"
            if state.error:
                yield f"  {collector}: {state.reason}: {printable(state.error)}{gone}"
            elif state.polls == 0:
                yield f"  {collector}: not asked yet"
            elif gone:
                yield f"  {collector}: silent for {duration(max(0, report.wall - (state.taken_at or 0)))}{gone}"
            for note in state.notes if state.fresh(report.mono) else ():
                yield f"  {collector}: {printable(note)}"


def printable(value: str) -> str:
    """A value from outside, without what could move a terminal's cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
