"""The board in Prometheus's formats. Reads memory only, so a scrape cannot wait and cannot fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from threading import Lock
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, UnknownMetricFamily
from prometheus_client.exposition import generate_latest as text_format
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_format
from prometheus_client.registry import Collector as Registry
from prometheus_client.utils import floatToGoString

from . import __version__, queues
from .board import Board, Key, State, shown
from .errors import REASONS
from .model import Distribution, Metric, Sample
from .timing import Clock

Format = Literal["text", "openmetrics"]
Values = dict[tuple[str, ...], float]  # of one metric, by label values
MetricFamily = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | UnknownMetricFamily
UNTYPED = {queues.FAILED_TOTAL}  # OpenMetrics takes _total from the name of a counter: then it is the gauge's beside it
END = b"# EOF\n"  # closes an OpenMetrics page, so it comes once, after the process's own metrics

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


def about_us(states: Mapping[Key, State], mono: float) -> Iterator[Sample]:
    """The version, and the health of every collector."""
    yield BUILD(1, __version__)
    for key, state in states.items():
        yield from health(key, state, mono)


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


def grouped(samples: Iterable[Sample]) -> dict[Metric, Values]:
    """The samples by metric, in the order of its name. One label set has one value: the last one given."""
    groups: dict[Metric, Values] = defaultdict(dict)
    for sample in samples:
        groups[sample.metric][tuple(map(encodable, sample.labels))] = sample.value
    return dict(sorted(groups.items(), key=lambda group: group[0].name))


def encodable(label: str) -> str:
    """The text, with what UTF-8 cannot say replaced: one such character would otherwise cost the whole page."""
    return label.encode("utf-8", "replace").decode("utf-8")


class OneFamily(Registry):
    """One metric with its values, in the form that the client library renders."""

    def __init__(self, metric: Metric, values: Values, form: Format) -> None:
        self.metric, self.values, self.form = metric, values, form

    def collect(self) -> Iterator[MetricFamily]:
        if self.metric.kind == "histogram":
            yield self._histogram()
            return
        family = self._build()(self.metric.name, self.metric.help, labels=self.metric.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        yield family

    def _build(self) -> type[CounterMetricFamily | GaugeMetricFamily | UnknownMetricFamily]:
        if self.form == "openmetrics" and self.metric in UNTYPED:
            return UnknownMetricFamily
        return CounterMetricFamily if self.metric.kind == "counter" else GaugeMetricFamily

    def _histogram(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(self.metric.name, self.metric.help, labels=self.metric.labels)
        bounds = [*map(floatToGoString, self.metric.buckets), "+Inf"]
        for labels, value in sorted(self.values.items()):
            if isinstance(value, Distribution):
                buckets = list(zip(bounds, map(float, accumulate(value.counts)), strict=True))
                family.add_metric(labels, buckets, value.sum)
        return family


class Kept(NamedTuple):
    """A family as rendered last time: most of them are the same from one publication to the next."""

    values: Values
    lines: bytes


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
        self._kept: dict[tuple[Format, str], Kept] = {}
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)
        board.subscribe(self._published)

    def page(self, form: Format) -> bytes:
        """The whole page as of now."""
        rendered = self._rendered.get(form)
        if rendered is None or self.clock.mono() > rendered.until:
            with self._lock:
                rendered = self._rendered[form] = self._render(form)
        return rendered.page + RENDER[form](self._process)

    def _published(self) -> None:
        with self._lock:
            fresh: dict[Format, Rendered] = {}
            try:
                for form in self._rendered:
                    fresh[form] = self._render(form)
            finally:
                self._rendered = fresh  # whatever happened, no old page stays

    def _render(self, form: Format) -> Rendered:
        mono, states = self.clock.mono(), self.board.read()
        samples, until = shown(self.board, states, mono)
        families = grouped((*about_us(states, mono), *samples))
        page = b"".join(self._lines(form, metric, values) for metric, values in families.items())
        return Rendered(page, until)

    def _lines(self, form: Format, metric: Metric, values: Values) -> bytes:
        kept = self._kept.get((form, metric.name))
        if kept is None or kept.values != values:
            lines = RENDER[form](OneFamily(metric, values, form)).removesuffix(END)
            kept = self._kept[form, metric.name] = Kept(values, lines)
        return kept.lines


def _openmetrics(registry: Registry) -> bytes:
    page: bytes = openmetrics_format(registry)  # type: ignore[no-untyped-call]  # the client library has no types here
    return page


RENDER: dict[Format, Callable[[Registry], bytes]] = {"text": text_format, "openmetrics": _openmetrics}
