"""The board in Prometheus's formats. Reads memory only, so a scrape cannot wait and cannot fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest as text_format
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_format
from prometheus_client.registry import Collector as Registry

from . import __version__
from .board import Board, Key, State
from .errors import REASONS
from .model import Metric, Sample
from .timing import Clock

Format = Literal["text", "openmetrics"]
Family = GaugeMetricFamily | CounterMetricFamily
END = b"# EOF\n"  # closes an OpenMetrics page

OF = ("source", "collector")
UP = Metric("laravel_queue_source_up", "Whether the last poll succeeded.", OF)
FRESH = Metric("laravel_queue_source_fresh", "Whether the values are young enough to be shown; 0 means withdrawn.", OF)
LAST_SUCCESS = Metric(
    "laravel_queue_source_last_success_timestamp_seconds", "Unix time of the last poll that succeeded.", OF
)
INTERVAL = Metric(
    "laravel_queue_source_poll_interval_seconds", "Pause between polls in force: the duty and failures stretch it.", OF
)
CONFIGURED = Metric("laravel_queue_source_configured_interval_seconds", "Pause between polls in the settings.", OF)
DURATION = Metric("laravel_queue_source_poll_duration_seconds", "Length of the last poll.", OF)
POLLS = Metric("laravel_queue_source_polls_total", "Polls, those that failed included.", OF, "counter")
ERRORS = Metric("laravel_queue_source_errors_total", "Polls that failed.", (*OF, "reason"), "counter")
BUSY = Metric("laravel_queue_source_busy_seconds_total", "Time spent waiting for the far side.", OF, "counter")
BUILD = Metric("laravel_queue_exporter_build_info", "1, with the exporter's version.", ("version",))
METRICS = (UP, FRESH, LAST_SUCCESS, INTERVAL, CONFIGURED, DURATION, POLLS, ERRORS, BUSY, BUILD)


def health(key: Key, state: State, mono: float) -> Iterator[Sample]:
    """What is known about the asking itself; every reason is there from the start, so that none is born at 1."""
    yield UP(state.up, *key)
    yield FRESH(state.fresh(mono), *key)
    if state.taken_at is not None:
        yield LAST_SUCCESS(state.taken_at, *key)
    yield INTERVAL(state.interval, *key)
    yield CONFIGURED(state.configured_interval, *key)
    yield DURATION(state.duration, *key)
    yield POLLS(state.polls, *key)
    for reason in REASONS:
        yield ERRORS(state.errors.get(reason, 0), *key, reason)
    yield BUSY(state.busy, *key)


def visible(constants: Iterable[Sample], states: Mapping[Key, State], mono: float) -> Iterator[Sample]:
    """All that may be shown: the settings, the health of every collector, the samples of the fresh ones."""
    yield BUILD(1, __version__)
    yield from constants
    for key, state in states.items():
        yield from health(key, state, mono)
        if state.fresh(mono):
            yield from state.samples


def families(samples: Iterable[Sample]) -> Iterator[Family]:
    """Group samples by metric. One label set has one value: the last one given."""
    by_metric: dict[Metric, dict[tuple[str, ...], float]] = defaultdict(dict)
    for sample in samples:
        by_metric[sample.metric][tuple(map(encodable, sample.labels))] = sample.value
    for metric, values in sorted(by_metric.items(), key=lambda item: item[0].name):
        build = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family: Family = build(metric.name, metric.help, labels=metric.labels)
        for labels, value in sorted(values.items()):
            family.add_metric(labels, value)
        yield family


def encodable(label: str) -> str:
    """The text, with what UTF-8 cannot say replaced: one such character would otherwise cost the whole page."""
    return label.encode("utf-8", "replace").decode("utf-8")


class Snapshot(Registry):
    """What the board shows at one moment, in the form that the client library renders."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.samples = samples

    def collect(self) -> Iterator[Family]:
        return families(self.samples)


class Rendered(NamedTuple):
    """A page, and until when all on it is believed."""

    page: bytes
    until: float  # on the monotonic clock


class Exposition:
    """
    The page, rendered when something is published and served as bytes.

    A page is rendered anew when a state on it stops being believed, so nothing old
    is served even if a poller is stuck. The process's own metrics are added per scrape.
    """

    def __init__(self, board: Board, clock: Clock = Clock()) -> None:
        self.board, self.clock = board, clock
        self._lock = Lock()  # a slow render must not overwrite a newer one
        self._rendered: dict[Format, Rendered] = {}  # in the formats that somebody reads
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)
        board.subscribe(self._published)

    def page(self, form: Format) -> bytes:
        """The whole page as of now."""
        rendered = self._rendered.get(form)
        if rendered is None or self.clock.mono() > rendered.until:
            with self._lock:
                rendered = self._render(form)
        if form == "text":
            return rendered.page + text_format(self._process)
        return rendered.page.removesuffix(END) + _openmetrics(self._process)

    def _published(self) -> None:
        with self._lock:
            for form in self._rendered:
                self._render(form)

    def _render(self, form: Format) -> Rendered:
        mono, states = self.clock.mono(), self.board.read()
        snapshot = Snapshot(visible(self.board.constants, states, mono))
        page = text_format(snapshot) if form == "text" else _openmetrics(snapshot)
        believed = [state.good_until for state in states.values() if state.fresh(mono)]
        rendered = self._rendered[form] = Rendered(page, min(believed, default=float("inf")))
        return rendered


def _openmetrics(registry: Registry) -> bytes:
    page: bytes = openmetrics_format(registry)  # type: ignore[no-untyped-call]  # the client library has no types here
    return page
