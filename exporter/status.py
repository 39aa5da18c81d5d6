"""
What is over its limit now, what wakes somebody up first, and then everything else in a screenful.

The report is made from the board alone; the terminal and the browser show the same one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import get_args

from . import queues
from .amounts import duration
from .board import Board, State, shown
from .findings import Finding, Values, find, path
from .model import Column, Metric, Sample
from .sources.database import metrics as database
from .timing import Clock

STRETCHED = 2.0  # times its configured interval: from here on a person should know


class Verdict(IntEnum):
    """The exit status of `status`."""

    FINE = 0
    OVER = 1
    BLIND = 3


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue now. What nobody knows is None."""

    where: str
    jobs: tuple[float | None, ...]  # in the order of `queues.STATES`
    age: float | None  # seconds
    target: float | None  # seconds
    finding: Finding | None  # if it is late, or will be soon

    @property
    def used(self) -> float | None:
        """How much of its target the oldest job has waited. None without a target."""
        return None if self.age is None or not self.target else self.age / self.target


@dataclass(frozen=True, slots=True)
class Headline:
    """A part of the headline: what is so, of how many things, and what else there is to say of it."""

    what: str  # no name in it, so it may be written in capitals
    count: int | None = None
    more: str = ""


@dataclass(frozen=True, slots=True)
class Workers:
    """Pools of workers, and the tasks of services that work on a queue: a row for each. What nobody knows is None."""

    columns: tuple[Column, ...]  # those that any row knows something of, and always the first one
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]  # where, and a value for each column


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of one database that are in use, and by whom."""

    where: str
    used: float
    available: float
    ratio: float
    finding: Finding | None  # if they are too many, or will be soon
    pools: tuple[tuple[str, float], ...]  # the greediest first


@dataclass(frozen=True, slots=True)
class Source:
    """When a source answered last, and what a person should know about it."""

    where: str
    age: float | None  # seconds, of the most important numbers; None if it never answered
    troubles: tuple[tuple[str, str], ...]  # (of which collectors, what)


@dataclass(frozen=True, slots=True)
class Report:
    """All that the status page says, at one moment."""

    values: Values
    findings: tuple[Finding, ...]
    workers: Workers
    sources: Mapping[str, Mapping[str, State]]  # source → collector → state
    named: Mapping[str, Collection[tuple[str, str]]]  # source → queues of the settings, with their connection
    mono: float
    wall: float

    @property
    def silent(self) -> tuple[str, ...]:
        """What has no answer that may be believed: the jobs of a connection, or what is not there."""
        return tuple(
            f"{name}/{collector}"
            for name, states in self.sources.items()
            for collector, state in states.items()
            if (collector in queues.COUNTING or state.reason == "not_found") and not state.fresh(self.mono)
        )

    @property
    def aside(self) -> tuple[str, ...]:
        """The sources without an answer that count no jobs, the clocks: nobody is blind, and nobody calls it fine."""
        return tuple(
            f"{name}/{first}"
            for name, states in self.sources.items()
            for first in [*states][:1]
            if first not in queues.COUNTING and not states[first].fresh(self.mono)
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
    def unanswered(self) -> tuple[str, ...]:
        """The queues that the settings name and that have no numbers, although their source answers."""
        known = {labels[:2] for labels in self.values.get(queues.JOBS.name, {})}
        return tuple(
            path(queue)
            for name, states in self.sources.items()
            if next(iter(states.values())).fresh(self.mono)
            for queue in self.named.get(name, ())
            if queue not in known
        )

    @property
    def blind(self) -> tuple[str, ...]:
        """All that nobody knows anything of although somebody wants to."""
        return self.silent + self.unanswered

    @property
    def without_target(self) -> int:
        """How many queues can never be late, because nobody decided how long a job may wait."""
        targets = self.values.get(queues.TARGET_WAIT.name, {})
        return sum(labels not in targets for labels in self.values.get(queues.OLDEST_JOB_AGE.name, {}))

    @property
    def queues(self) -> Iterator[Queue]:
        """The one that waits longest first; one that nobody knows anything of is there, too."""
        jobs, ages, targets, waits = (
            self.values.get(metric.name, {})
            for metric in (queues.JOBS, queues.OLDEST_JOB_AGE, queues.TARGET_WAIT, queues.RETRY_AFTER)
        )
        names = {labels[:2] for labels in jobs} | set(waits) | set(targets)
        names |= {queue for of_source in self.named.values() for queue in of_source}
        late = self._found(queues.OLDEST_JOB_AGE)
        for labels in sorted(names, key=lambda labels: (-ages.get(labels, 0), labels)):
            counts = tuple(jobs.get((*labels, state)) for state in queues.STATES)
            yield Queue(path(labels), counts, ages.get(labels), targets.get(labels), late.get(labels))

    @property
    def connections(self) -> Iterator[Connections]:
        """How much of each database's connections is in use, and by which pools."""
        used, most, reserved, usage = (
            self.values.get(metric.name, {})
            for metric in (
                database.CONNECTIONS,
                database.CONNECTIONS_MAX,
                database.CONNECTIONS_RESERVED,
                database.USAGE,
            )
        )
        high = self._found(database.USAGE)
        for (name,), ratio in usage.items():
            pools = Counter[str]()
            for (connection, pool, _), count in used.items():
                pools[pool] += int(count) if connection == name else 0
            free = most.get((name,), 0) - reserved.get((name,), 0)
            by = tuple((pool, count) for pool, count in pools.most_common() if count)
            yield Connections(name, pools.total(), free, ratio, high.get((name,)), by)

    def _found(self, metric: Metric) -> dict[tuple[str, ...], Finding]:
        """What the limits of this metric say, by the labels of its series."""
        return {found.series[1]: found for found in self.findings if found.series[0] == metric.name}

    @property
    def answers(self) -> Iterator[Source]:
        """All sources, each with what is wrong with it or hidden from us, said once for all that it is true of."""
        for name, states in self.sources.items():
            taken_at = next(iter(states.values())).taken_at  # of the most important one: its numbers are looked at
            said = defaultdict[str, list[str]](list)
            for collector, state in states.items():
                for trouble in troubles(state, self):
                    said[trouble].append(collector)
            yield Source(
                name,
                None if taken_at is None else max(0.0, self.wall - taken_at),
                tuple(
                    (name if len(of) == len(states) > 1 else f"{name}/{', '.join(of)}", trouble)
                    for trouble, of in said.items()
                ),
            )

    @property
    def over(self) -> int:
        """How many series are over a limit."""
        return sum(finding.over for finding in self.findings)

    @property
    def headline(self) -> Iterator[Headline]:
        """How bad it is, the worst first."""
        if self.blind:
            yield Headline("blind", len(self.blind), f": nothing may be shown of {', '.join(self.blind)}")
        if self.over:
            yield Headline("over its limit", self.over)
        elif self.findings:
            yield Headline("close to its limit", len(self.findings))
        elif not self.blind:
            buts = [f"{name} has no answer" for name in self.aside]
            buts += [f"what does {name} look at?" for name in self.doubted]
            if without := self.without_target:
                buts.append(f"{without} queue{'s'[: without > 1]} without target_wait")
            yield Headline("nothing is over its limit", more=f" (but {', '.join(buts)})" if buts else "")

    @property
    def verdict(self) -> Verdict:
        """Blind if a source or a queue that somebody named is silent: then nobody may call it fine."""
        if self.blind or self.aside:
            return Verdict.BLIND
        return Verdict.OVER if self.over else Verdict.FINE


def report(board: Board, runbooks: Collection[str] = (), clock: Clock = Clock()) -> Report:
    """Compare what the board shows with its limits."""
    mono, states = clock.mono(), board.read()
    samples = shown(board, states, mono).samples
    sources: dict[str, dict[str, State]] = defaultdict(dict)
    for key, state in states.items():
        sources[key.source][key.collector] = state
    values: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for sample in samples:
        values[sample.metric.name][sample.labels] = sample.value
    wall = clock.wall()
    found = find(samples, values, runbooks, wall)
    findings = sorted(found, key=lambda f: (not f.over, not f.page, -f.ratio, f.where, f.says))
    return Report(values, tuple(findings), workers(samples), sources, board.named, mono, wall)


def workers(samples: Iterable[Sample]) -> Workers:
    """All pools of workers, by name, then all tasks, by the queue that they work on."""
    rows: dict[tuple[tuple[str, ...], ...], dict[Column, float]] = defaultdict(dict)
    for metric, labels, value in samples:
        if metric.column:
            rows[metric.labels, labels][metric.column] = value
    first, *others = get_args(Column)
    columns = (first, *(column for column in others if any(column in row for row in rows.values())))
    shown = ((path(labels), tuple(map(row.get, columns))) for (_, labels), row in sorted(rows.items()))
    return Workers(columns, tuple(shown))


def troubles(state: State, report: Report) -> Iterator[str]:
    """What a person should know about one collector."""
    fresh = state.fresh(report.mono)
    if state.error:
        yield f"{state.reason}: {state.error}{'' if fresh else '; nothing of it is shown'}"
    elif state.polls == 0:
        yield "not asked yet"
    else:
        yield from state.notes
        if not fresh and not state.withheld:
            yield f"silent for {duration(max(0, report.wall - (state.taken_at or 0)))}; nothing of it is shown"
    if state.up and state.interval > STRETCHED * state.configured_interval:
        usual = duration(state.configured_interval)
        yield f"asked every {duration(state.interval)} instead of {usual}, or it would cost too much of its time"
