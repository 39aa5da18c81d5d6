"""
What is over its limit now, worst first, and then everything else in a screenful.

The report is made from the board alone; the terminal and the page show the same one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import zip_longest
from math import inf

from . import queues
from .amounts import UNKNOWN, Amount, duration
from .board import Board, State, shown
from .model import Limit, Metric, Sample
from .sources.database import metrics as database
from .timing import Clock

STRETCHED = 2.0  # times its configured interval: from here on a person should know
WIDEST = 40  # characters of a name that others are still lined up with
WORKERS = {"now": queues.WORKERS.name, "outdated": database.OUTDATED.name}


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
    queues: tuple[tuple[str, str], ...]  # connection and queue of those that are named in the settings
    findings: tuple[Finding, ...]
    sources: Mapping[str, Mapping[str, State]]  # source → collector → state
    mono: float
    wall: float

    @property
    def silent(self) -> tuple[str, ...]:
        """What has no answer that may be believed: the most important question of each source, or what is not there."""
        return tuple(
            f"{name}/{collector}"
            for name, states in self.sources.items()
            for collector, state in states.items()
            if (collector == next(iter(states)) or state.reason == "not_found") and not state.fresh(self.mono)
        )

    @property
    def doubted(self) -> tuple[str, ...]:
        """What was answered, and may not be about what was meant."""
        return tuple(
            f"{name}/{collector}"
            for name, states in self.sources.items()
            for collector, state in states.items()
            if state.doubted
        )

    @property
    def without_target(self) -> int:
        """How many queues can never be late, because nobody decided how long a job may wait."""
        targets = self.values.get(queues.TARGET_WAIT.name, {})
        return sum(labels not in targets for labels in self.values.get(queues.OLDEST_JOB_AGE.name, {}))

    @property
    def but(self) -> str:
        """What is to be said against it that nothing is over its limit."""
        without = self.without_target
        queues_without = [f"{without} queue{'s'[: without > 1]} without target_wait"] if without else []
        said = [*(f"what does {name} look at?" for name in self.doubted), *queues_without]
        return f" (but {', '.join(said)})" if said else ""

    @property
    def verdict(self) -> Verdict:
        """Blind if any source is silent: then nobody may call it fine."""
        if self.silent:
            return Verdict.BLIND
        return Verdict.OVER if any(finding.over for finding in self.findings) else Verdict.FINE


def report(board: Board, runbooks: Collection[str] = (), clock: Clock = Clock()) -> Report:
    """Compare what the board shows with its limits."""
    mono, states = clock.mono(), board.read()
    samples = list(shown(board.constants, states, mono))
    sources: dict[str, dict[str, State]] = defaultdict(dict)
    for key, state in states.items():
        sources[key.source][key.collector] = state
    values: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for sample in samples:
        values[sample.metric.name][sample.labels] = sample.value
    findings = sorted(find(samples, values, runbooks), key=lambda f: (not f.over, -f.ratio, f.where, f.says))
    return Report(values, board.queues, tuple(findings), sources, mono, clock.wall())


def find(samples: list[Sample], values: Values, runbooks: Collection[str]) -> Iterator[Finding]:
    """Every series whose metric names a limit, and that is over or near it."""
    for sample in samples:
        limit, labels = sample.metric.limit, sample.labelled
        if limit is None or (limit.where and labels[limit.where[0]] not in limit.where[1:]):
            continue
        if limit.given and not beside(limit.given, labels, values):
            continue
        bound = beside(limit.bound, labels, values) if isinstance(limit.bound, Metric) else limit.bound
        if bound is None:
            continue
        over, ratio = compare(limit, sample.value, bound * limit.share)
        if not over and ratio <= limit.soon:
            continue
        says = limit.says.format(
            value=Amount(sample.metric, sample.value),
            bound=Amount(sample.metric, bound),
            beside=Amount(limit.beside, beside(limit.beside, labels, values)) if limit.beside else None,
        )
        yield Finding(
            where=path(value for label, value in labels.items() if (label, value) != limit.where),
            says=says if over else f"{says} (soon)",
            alert=limit.alert if limit.alert in runbooks else "",
            over=over,
            ratio=ratio,
        )


def compare(limit: Limit, value: float, bound: float) -> tuple[bool, float]:
    """Whether a value is over its limit, and how far it has come towards it: 1 is at the limit."""
    if limit.below:
        return value < bound, 2.0 - value / bound
    size = abs(value) if limit.either_way else value
    if size <= limit.least:
        return False, 0.0
    return size > bound or (limit.reached and size == bound), size / bound if bound else inf


def beside(metric: Metric, labels: Mapping[str, str], values: Values) -> float | None:
    """The value of another metric for the series with these labels; None if there is none."""
    return values.get(metric.name, {}).get(tuple(labels[label] for label in metric.labels))


Row = tuple[str, ...]


def text(report: Report) -> str:
    """The report in plain text: sixty to eighty columns wide, or as wide as its names are."""
    sections = [([tuple(map(printable, row)) for row in rows(report)], align) for rows, align in SECTIONS]
    heads = [row[0] for rows, _ in sections for row in rows if len(row) > 1]
    width = max((len(head) for head in heads if len(head) <= WIDEST), default=0)
    return "".join(f"{line}\n" for rows, align in sections for line in lined_up(rows, width, align))


def lined_up(rows: list[Row], width: int, align: Callable[[str, int], str]) -> Iterator[str]:
    """The rows as lines, each column under its head."""
    widths = [max(map(len, column)) for column in zip_longest(*(row[1:] for row in rows), fillvalue="")]
    for head, *cells in rows:
        padded = (f"  {align(cell, most)}" for cell, most in zip(cells, widths, strict=False))
        yield f"{head:<{width}}{''.join(padded)}".rstrip()


def over_limit(report: Report) -> Iterator[Row]:
    """What nobody can know, what is over its limit, what is close to it."""
    over = any(finding.over for finding in report.findings)
    if report.silent:
        yield (f"BLIND: nothing may be shown of {', '.join(report.silent)}",)
    if over or report.findings:
        yield ("OVER ITS LIMIT" if over else "CLOSE TO ITS LIMIT",)
    elif not report.silent:
        yield (f"NOTHING IS OVER ITS LIMIT{report.but}",)
    for finding in report.findings:
        yield f"  {finding.where}", finding.says, finding.alert


def queue_table(report: Report) -> Iterator[Row]:
    """A line for each queue, the one that waits longest first; one that nobody knows anything of is there, too."""
    jobs, ages, targets = (
        report.values.get(metric.name, {}) for metric in (queues.JOBS, queues.OLDEST_JOB_AGE, queues.TARGET_WAIT)
    )
    names: set[tuple[str, ...]] = {labels[:2] for labels in jobs} | set(targets) | set(report.queues)
    yield "QUEUES", *queues.STATES, "oldest", "target"
    for labels in sorted(names, key=lambda labels: (-ages.get(labels, 0), labels)):
        counts = (cell(jobs.get((*labels, state))) for state in queues.STATES)
        yield f"  {path(labels)}", *counts, cell(ages.get(labels), duration), cell(targets.get(labels), duration)


def cell(value: float | None, shown: Callable[[float], str] = "{:,.0f}".format) -> str:
    """A value, or that there is none."""
    return UNKNOWN if value is None else shown(value)


def worker_table(report: Report) -> Iterator[Row]:
    """A line for each pool of workers."""
    columns = {head: report.values[name] for head, name in WORKERS.items() if name in report.values}
    pools = sorted({pool for values in columns.values() for pool in values})
    if pools:
        yield "WORKERS", *columns
    for pool in pools:
        yield f"  {path(pool)}", *(cell(values.get(pool)) for values in columns.values())


def connections(report: Report) -> Iterator[Row]:
    """How much of each database's connections is in use, and by which pools."""
    used, most, reserved, usage = (
        report.values.get(metric.name, {})
        for metric in (database.CONNECTIONS, database.CONNECTIONS_MAX, database.CONNECTIONS_RESERVED, database.USAGE)
    )
    head = "CONNECTIONS"
    for (name,), ratio in usage.items():
        pools = Counter[str]()
        for (connection, pool, _), count in used.items():
            pools[pool] += int(count) if connection == name else 0
        free = most.get((name,), 0) - reserved.get((name,), 0)
        split = ", ".join(f"{pool} {count}" for pool, count in pools.most_common() if count)
        where = f"{name}: " if len(usage) > 1 else ""
        yield head, f"{where}{pools.total()} of {free:.0f} ({100 * ratio:.0f} %), {split}"
        head = ""


def sources(report: Report) -> Iterator[Row]:
    """When each source answered last, and a line for everything that is wrong with one or hidden from us."""
    seen = []
    for name, states in report.sources.items():
        taken_at = next(iter(states.values())).taken_at  # of the most important one: the numbers that are looked at
        seen.append(f"{name} {'no answer' if taken_at is None else f'{duration(max(0, report.wall - taken_at))} ago'}")
    yield "SOURCES", " · ".join(seen)
    for name, states in report.sources.items():
        said = defaultdict[str, list[str]](list)
        for collector, state in states.items():
            for trouble in troubles(state, report):
                said[trouble].append(collector)
        for trouble, collectors in said.items():
            yield f"  {name}" if len(collectors) == len(states) > 1 else f"  {name}/{', '.join(collectors)}", trouble


def troubles(state: State, report: Report) -> Iterator[str]:
    """What a person should know about one collector."""
    fresh = state.fresh(report.mono)
    if state.error:
        yield f"{state.reason}: {state.error}{'' if fresh else '; nothing is shown'}"
    elif state.polls == 0:
        yield "not asked yet"
    elif state.notes:
        yield from state.notes
    elif not fresh:
        yield f"silent for {duration(max(0, report.wall - (state.taken_at or 0)))}; nothing is shown"
    if state.up and state.interval > STRETCHED * state.configured_interval:
        usual = duration(state.configured_interval)
        yield f"asked every {duration(state.interval)} instead of {usual}, or it would cost too much of its time"


SECTIONS: tuple[tuple[Callable[[Report], Iterator[Row]], Callable[[str, int], str]], ...] = (
    (over_limit, str.ljust),
    (queue_table, str.rjust),
    (worker_table, str.rjust),
    (connections, str.ljust),
    (sources, str.ljust),
)


def path(names: Iterable[str]) -> str:
    """The names, one below the other; one that is empty or ends in spaces, so that one sees it."""
    return "/".join(name if name and name == name.strip() else repr(name) for name in names)


def printable(value: str) -> str:
    """A value from outside, without what could move a terminal's cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
