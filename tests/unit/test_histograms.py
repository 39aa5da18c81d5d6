"""Histograms: what is counted in buckets, and how Prometheus reads it."""

from __future__ import annotations

import subprocess
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.exposition import Format
from exporter.model import Distribution, Metric

from ..world import Series, series
from .test_exposition import openmetrics, showing

LENGTHS = Metric("laravel_queue_length_seconds", "Lengths.", ("queue",), "histogram", buckets=(0.5, 1, 60))
READERS = {"text": series, "openmetrics": openmetrics}
FORMS = pytest.mark.parametrize("form", ["text", "openmetrics"])


def distribution(*lengths: float) -> Distribution:
    """These lengths in the buckets of `LENGTHS`."""
    counts = [0] * 4
    for length in lengths:
        counts[bisect_left(LENGTHS.buckets, length)] += 1
    return Distribution(tuple(counts), sum(lengths))


def read(form: Format, *values: tuple[Distribution, str]) -> Series:
    """What a scrape of these histograms reads."""
    page = showing(*(LENGTHS(value, queue) for value, queue in values)).page(form)
    return {key: value for key, value in READERS[form](page).items() if key[0].startswith(LENGTHS.name)}


@FORMS
def test_buckets_add_up(form: Format) -> None:
    """Each bucket holds the ones below it; the last one, without a bound, is the count; the sum stands beside it."""
    found = read(form, (distribution(0.1, 0.5, 0.7, 60, 61, 3600), "default"))
    queue = ("queue", "default")
    buckets = {
        bound: found[f"{LENGTHS.name}_bucket", (("le", bound), queue)] for bound in ("0.5", "1.0", "60.0", "+Inf")
    }
    assert buckets == {"0.5": 2, "1.0": 3, "60.0": 4, "+Inf": 6}
    assert found[f"{LENGTHS.name}_count", (queue,)] == 6
    assert found[f"{LENGTHS.name}_sum", (queue,)] == pytest.approx(3722.3)
    assert len(found) == 6


@FORMS
def test_nothing_yet_is_zero(form: Format) -> None:
    """A histogram is born with all its buckets, at 0, so that the first observation is an increase."""
    assert {*read(form, (distribution(), "default")).values()} == {0}


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.floats(0, 1e6)), max_size=4))
def test_every_histogram_is_one_that_prometheus_takes(lengths: dict[str, list[float]]) -> None:
    """OpenMetrics's parser refuses buckets that fall, and a count that is not the last bucket's."""
    histograms = [(distribution(*found), queue) for queue, found in lengths.items()]
    in_text, in_openmetrics = read("text", *histograms), read("openmetrics", *histograms)
    assert in_text == in_openmetrics
    counts = {dict(labels)["queue"]: n for (name, labels), n in in_text.items() if name.endswith("_count")}
    assert counts == {queue: len(found) for queue, found in lengths.items()}


def test_promtool_finds_nothing_to_say() -> None:
    """The linter of Prometheus knows a histogram when it sees one."""
    page = showing(LENGTHS(distribution(0.1, 99), "default"), LENGTHS(distribution(), 'a"b\\c\nd')).page("text")
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_a_change_inside_is_a_change() -> None:
    """Two observations that moved to other buckets are as many as before; the page is rendered anew all the same."""
    assert read("text", (distribution(0.1, 99), "a")) != read("text", (distribution(0.6, 98.5), "a"))
    one, other = distribution(0.1, 99), distribution(0.6, 98.5)
    assert one == distribution(0.1, 99)
    assert not one == other  # noqa: SIM201  # each of the two operators has its own method
    assert one != other
    assert {one, other, distribution(0.1, 99)} == {one, other}


def test_as_a_number_it_is_how_many_there_were() -> None:
    """Whoever treats all values alike may do so."""
    assert LENGTHS(distribution(1, 2, 3), "default").value == distribution(1, 2, 3)
    assert float(distribution(1, 2, 3)) == 3


def test_only_a_histogram_takes_a_distribution_and_only_of_its_buckets() -> None:
    """What could not be rendered would cost the whole page, so it is refused where the sample is made."""
    gauge = Metric("laravel_queue_things", "Help.")
    with pytest.raises(ValueError, match="has 0 buckets"):
        gauge(distribution())
    for wrong in (3.0, Distribution((1, 2), 3)):
        with pytest.raises(ValueError, match="has 3 buckets"):
            LENGTHS(wrong, "default")


def test_buckets_make_a_histogram() -> None:
    """The kind and the buckets go together."""
    with pytest.raises(ValueError, match="histograms"):
        Metric("laravel_queue_things", "Help.", kind="histogram")
    with pytest.raises(ValueError, match="histograms"):
        Metric("laravel_queue_things", "Help.", buckets=(1, 2))
