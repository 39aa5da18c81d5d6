"""The day as Prometheus has it: far sides polled by the real poller, and its page scraped, in simulated time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from math import floor
from random import Random

from exporter import queues
from exporter.board import Board, shown
from exporter.errors import SourceError
from exporter.exposition import about_us
from exporter.model import Metric, Sample
from exporter.poller import Poller
from exporter.source import Collector, Source
from exporter.sources import held, ledger
from exporter.sources.ledger import Key, Ledger, Reading, Rules
from exporter.timing import Deadline

from ...world import HandClock
from ..rules import ALERTS
from ..worlds import Series, World
from .far_side import INVOICE, FarSide
from .line import DAY, HOUR, MINUTE

EPOCH = 1_800_000_000  # of midnight: who polls may be picky about times; promtool's day begins at 0
INTERVAL, WATCH = 15.0, 2.0  # between polls, as in the settings, and while a job may be handed out again
SCRAPE = 15  # as in the README
EXPORTER_ENDS, EXPORTER_BEGINS = 11.5 * HOUR, 11.5 * HOUR + MINUTE
PROMETHEUS_ENDS, PROMETHEUS_BEGINS = 18 * HOUR, 18 * HOUR + 5 * MINUTE
NEEDED = frozenset(metric for alert in ALERTS.values() for metric in alert.metrics)
Name = tuple[str, tuple[str, ...]]  # of a series: the metric's, and the labels' values
Page = dict[Name, float]
SCRAPED: Name = ("up", ())


class Asking:
    """A collector of a far side that is simulated. Who cannot be reached says so, for all collectors."""

    metrics: tuple[Metric, ...] = ()

    def __init__(self, far: FarSide, clock: HandClock, name: str, method: str) -> None:
        self.far, self.clock, self.name, self.interval = far, clock, name, INTERVAL
        self.says = getattr(far, method)

    def fetch(self, deadline: Deadline) -> list[Sample]:
        self.far.until(self.clock.wall - EPOCH)
        if self.far.away:
            raise SourceError("connect", "it is failing over", unreachable=True)
        return list(self.says())

    def measure(self, raw: list[Sample], now: float) -> Iterable[Sample]:
        return raw


class Reservations(Asking):
    """Jobs that are held, taken in by the real ledger; what may be handed out again is looked at every 2 s."""

    def __init__(self, far: FarSide, clock: HandClock) -> None:
        super().__init__(far, clock, "reservations", "reservations")
        self.kinds = {kind.queue: kind for kind in far.kinds}
        rules = Rules(
            INTERVAL,
            lambda queue: self.kinds[queue].retry_after,
            lambda queue: self.kinds[queue].timeout,
            lambda job_class: job_class or "other",
            release_keeps_id=any(kind.keeps_ids for kind in far.kinds),
        )
        self.ledger, self.passed, self.payload = Ledger(rules), 0.0, json.dumps({"displayName": INVOICE})

    @property
    def interval(self) -> float:
        return WATCH if self.ledger.watched else INTERVAL

    @interval.setter
    def interval(self, seconds: float) -> None:
        pass

    def measure(self, raw: list[Sample], now: float) -> Iterator[Sample]:
        is_pass = now - self.passed >= INTERVAL
        self.passed = now if is_pass else self.passed
        asked = frozenset(key.id for key in (self.ledger.held if is_pass else self.ledger.watched))
        rows = tuple(row for row in self._rows() if is_pass or row.key in self.ledger.watched)
        self.ledger = self.ledger.after(Reading(floor(now), is_pass, asked, rows, frozenset(self.kinds)))
        yield from held.samples(self.ledger, lambda queue: self.kinds[queue].connection)
        yield from raw

    def _rows(self) -> Iterator[ledger.Job]:
        for number, (queue, line) in enumerate(self.far.lines.items()):
            for job in line.held.values():
                if not (line.kind.keeps_ids and job in line.expired):  # Redis has put it back on the list
                    at = floor(EPOCH + job.reserved)
                    yield ledger.Job(Key((number, job.id)), queue, job.attempts, at, self.payload, None)


class Scraped:
    """Lets time pass between two polls, and scrapes the page on the way."""

    def __init__(self, far: FarSide) -> None:
        self.far, self.clock, self.board = far, HandClock(0, EPOCH), Board(far.constants())
        self.pages: list[Page | None] = []  # one a scrape; None where Prometheus was away
        self.labels: dict[str, tuple[str, ...]] = {"up": ()}  # their names, by metric
        self.until: float = DAY

    def run(self, roll: Random) -> World:
        """The whole day, with a restart of the exporter in it."""
        self.until = EXPORTER_ENDS
        self._watch(roll)
        while len(self.pages) * SCRAPE < EXPORTER_BEGINS:
            self.pages.append({SCRAPED: 0.0})
        self.clock.pass_(EXPORTER_BEGINS - EXPORTER_ENDS)
        self.far.until(EXPORTER_BEGINS)
        self.far.exporter_begins()
        self.board, self.until = Board(self.far.constants()), DAY
        self._watch(roll)
        names = dict.fromkeys(name for page in self.pages if page for name in page)
        return {self._series(*name): " ".join(notation(values(name, self.pages))) for name in names}

    def _series(self, metric: str, labels: tuple[str, ...]) -> Series:
        return Series(metric, tuple(zip(self.labels[metric], labels, strict=True)))

    def _watch(self, roll: Random) -> None:
        asking = [Asking(self.far, self.clock, *each) for each in self.far.collectors().items()]
        if self.far.name in ("database", "redis"):
            asking.insert(1, Reservations(self.far, self.clock))
        collectors: tuple[Collector[list[Sample]], ...] = tuple(asking)
        Poller(Source(self.far.name, collectors, 2.0), self.board, self.clock.clock, roll.random).run(self)
        broken = [state.error for state in self.board.read().values() if "unexpected" in state.errors]
        assert not broken, broken

    def wait(self, timeout: float) -> bool:
        """Whether the exporter ends while that much time passes."""
        end = self.clock.wall - EPOCH + timeout
        while (at := len(self.pages) * SCRAPE) <= min(end, self.until - 1):
            self.clock.pass_(at - (self.clock.wall - EPOCH))
            self.pages.append(None if PROMETHEUS_ENDS <= at < PROMETHEUS_BEGINS else self._page())
        self.clock.pass_(min(end, self.until) - (self.clock.wall - EPOCH))
        return end >= self.until

    def _page(self) -> Page:
        page = {SCRAPED: 1.0}
        states, mono = self.board.read(), self.clock.mono
        for sample in (*about_us(states, mono), *shown(self.board, states, mono).samples):
            if sample.metric.name in NEEDED:
                from_midnight = EPOCH if sample.metric is queues.LAST_RESERVATION else 0
                page[sample.metric.name, sample.labels] = sample.value - from_midnight
                self.labels.setdefault(sample.metric.name, sample.metric.labels)
        return page


def values(name: Name, pages: Iterable[Page | None]) -> Iterator[str]:
    """Its values in promtool's notation, one a scrape."""
    was_there = False
    for page in pages:
        if page is None:
            yield "_"
            continue
        value = page.get(name)
        yield f"{value:.9g}" if value is not None else "stale" if was_there else "_"
        was_there = value is not None


def notation(each: Iterable[str]) -> Iterator[str]:
    """The same, with repetitions as promtool abbreviates them."""
    for text, run in groupby(each):
        times = len(list(run))
        if times == 1 or text in ("stale", "+Inf"):
            yield from [text] * times
        else:
            yield f"{text}x{times if text == '_' else times - 1}"
