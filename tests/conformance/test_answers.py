"""What every source and collector must keep to while its far side answers."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from exporter import queues
from exporter.errors import SourceError
from exporter.model import Note, Sample
from exporter.source import Collector, Result
from exporter.timing import Deadline

from .far_sides import FAR_SIDES, QUEUES, FarSide, Opened

NOW = 1_800_000_000.0


def within(seconds: float) -> Deadline:
    """A deadline on the real clock."""
    return Deadline(time.monotonic() + seconds)


def answers(opened: Opened) -> Iterator[tuple[Collector[object], list[Result]]]:
    """Each collector with what it has to say."""
    for collector in opened.source.collectors:
        yield collector, list(collector.measure(collector.fetch(within(5)), NOW))


def samples(opened: Opened) -> list[Sample]:
    """All that a source says, the settings included, and what follows from several answers."""
    said = [result for _, results in answers(opened) for result in results if isinstance(result, Sample)]
    return [
        *opened.source.constants,
        *said,
        *opened.source.joined({each.name for each in opened.source.collectors}).samples,
    ]


def test_only_declared_metrics(well: Opened) -> None:
    """A collector yields what it declares, nothing else, and it has something to say."""
    for collector, said in answers(well):
        metrics = {sample.metric for sample in said if isinstance(sample, Sample)}
        assert metrics, collector.name
        assert metrics <= set(collector.metrics), collector.name


def test_no_label_set_twice(well: Opened) -> None:
    """Over all collectors of a source and its settings, one series has one value."""
    seen = Counter((sample.metric.name, sample.labels) for sample in samples(well))
    assert [series for series, times in seen.items() if times > 1] == []


def test_series_are_text_and_numbers(well: Opened) -> None:
    """A label is text; a value is finite unless its help text says when it is not; a counter is not negative."""
    for sample in samples(well):
        assert all(type(label) is str for label in sample.labels), sample.metric.name
        assert math.isfinite(sample.value) or "+Inf" in sample.metric.help, sample.metric.name
        assert sample.value >= 0 or sample.metric.kind == "gauge", sample.metric.name


def test_notes_are_one_line(well: Opened) -> None:
    """A note is a sentence for a person, in one line of a log."""
    notes = [note.text for _, said in answers(well) for note in said if isinstance(note, Note)]
    assert all(note.isprintable() and note for note in notes)


def test_named_queues_say_zero(well: Opened, far_side: FarSide) -> None:
    """Case 44: with nothing in any queue, each named queue has its states and ages, at 0, from the first answer."""
    said = {(sample.metric, sample.labels): sample.value for sample in samples(well)}
    named = [labels for metric, labels in said if metric is queues.RETRY_AFTER]
    for connection, queue in named:
        for state in far_side.states:
            assert said[queues.JOBS, (connection, queue, state)] == 0
        for age in far_side.ages:
            assert said[age, (connection, queue)] == 0
    assert {queue for _, queue in named} in ({*QUEUES}, set())


def test_measuring_twice_is_harmless(well: Opened) -> None:
    """The same answer measured again gives the same samples: what a collector remembers is not spoilt by it."""
    for collector in well.source.collectors:
        raw = collector.fetch(within(5))
        assert list(collector.measure(raw, NOW)) == list(collector.measure(raw, NOW)), collector.name


def test_measuring_asks_nobody(well: Opened) -> None:
    """All that `measure` needs is in what `fetch` brought: it works when the far side is gone."""
    raws = [(collector, collector.fetch(within(5))) for collector in well.source.collectors]
    well.source.close()
    well.leave()
    for collector, raw in raws:
        assert list(collector.measure(raw, NOW)), collector.name


def test_asking_after_closing(well: Opened) -> None:
    """
    A closed source opens itself again at the next question, and may be closed twice.

    Then it says as much as before, or more: who asks of one queue after another has not said all at first.
    """
    before = [len(said) for _, said in answers(well)]
    well.source.close()
    well.source.close()
    after = [len(said) for _, said in answers(well)]
    assert all(now >= then for now, then in zip(after, before, strict=True))


def test_a_deadline_that_is_over_is_a_timeout(well: Opened, far_side: FarSide) -> None:
    """Without any time left, a collector does not even ask; one that asks nobody may answer."""
    for collector in well.source.collectors:
        if collector.name not in far_side.asking_nobody:
            with pytest.raises(SourceError) as caught:
                collector.fetch(within(-1))
            assert caught.value.reason == "timeout", collector.name


def test_names_and_numbers_of_the_source(well: Opened) -> None:
    """Collectors of a source have names of their own, and intervals, timeout and duty that make sense."""
    collectors = well.source.collectors
    assert len({collector.name for collector in collectors}) == len(collectors)
    assert all(collector.interval > 0 for collector in collectors)
    assert well.source.timeout > 0
    assert 0 < well.source.duty <= 1


def test_every_source_is_here() -> None:
    """A source that the application can open is held to all of this."""
    from ..test_contract import opened

    assert {source.name for source in opened()} == set(FAR_SIDES)
