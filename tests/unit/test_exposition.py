"""The board as a page that Prometheus reads."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser

from exporter.board import Board, Key, State
from exporter.errors import REASONS
from exporter.exposition import Exposition, Format
from exporter.model import Metric, Sample
from exporter.queues import FAILED, FAILED_TOTAL

from ..world import HandClock, Series, series
from .scripted import THINGS, Act, Scripted, Stage, fails

JOBS = Key("database", "jobs")
EVENTS = Metric("laravel_queue_events_total", "Events.", ("kind",), "counter")
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
HOSTILE = [
    'a"b\\c\nd',
    "",
    " ",
    "\\n",
    "\\",
    '"',
    "{}",
    "a,b=c",
    "\r\n",
    "\x00",
    "\u2028",
    "очередь-🚀",
    "# HELP",
    "x" * 255,
]


def showing(*samples: Sample, hand: HandClock | None = None) -> Exposition:
    """The page of a board on which one collector has answered just now."""
    hand = hand or HandClock()
    board = Board()
    board.publish({JOBS: State(15, 15, samples, polls=1, taken_at=hand.wall, good_until=hand.mono + 50)})
    return Exposition(board, hand.clock)


def openmetrics(page: bytes) -> Series:
    """What a scrape in the other format reads; its parser refuses far more than the one for text."""
    families = parser.text_string_to_metric_families(page.decode())  # type: ignore[no-untyped-call]
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def things(read: Series) -> dict[str, float]:
    """Of what a scrape reads, our one metric: label → value."""
    return {dict(labels)["kind"]: value for (name, labels), value in read.items() if name == THINGS.name}


def test_case_29_a_queue_with_quotes_backslash_and_newline() -> None:
    """Case 29: Prometheus's parser gives back the very name."""
    assert things(series(showing(THINGS(3, 'a"b\\c\nd')).page("text"))) == {'a"b\\c\nd': 3}


@given(st.dictionaries(ANY, st.floats(allow_nan=False), max_size=5))
def test_any_label_comes_back_unchanged(values: dict[str, float]) -> None:
    """Whatever a queue is called, and whatever its value: what is scraped is what was published."""
    exposition = showing(*(THINGS(value, kind) for kind, value in values.items()))
    assert things(series(exposition.page("text"))) == values


@given(st.dictionaries(ANY, st.floats(allow_nan=False), max_size=5))
def test_any_label_comes_back_unchanged_in_openmetrics(values: dict[str, float]) -> None:
    """The same in the other format, which ends where its end is marked and nowhere else."""
    page = showing(*(THINGS(value, kind) for kind, value in values.items())).page("openmetrics")
    assert things(openmetrics(page)) == values
    assert page.endswith(b"\n# EOF\n")


@given(st.lists(st.tuples(st.text(max_size=3), st.floats(0, 9)), max_size=20))
def test_no_label_set_appears_twice(values: list[tuple[str, float]]) -> None:
    """Prometheus refuses a whole page for one series twice, so the last wins: even where UTF-8 makes two names one."""
    page = showing(*(THINGS(value, kind) for kind, value in values)).page("text")
    found = [line.rpartition(b" ")[0] for line in page.split(b"\n") if line.startswith(b"laravel_queue_things{")]
    assert [count for count in Counter(found).values() if count > 1] == []


@pytest.mark.parametrize("form", ["text", "openmetrics"])
def test_what_utf8_cannot_say_is_replaced(form: Format) -> None:
    """Half a surrogate pair, as a YAML file may hold one, costs a character and not the page."""
    assert b'kind="a?b"' in showing(THINGS(1, "a\ud800b")).page(form)


def test_promtool_finds_nothing_to_say() -> None:
    """Names, help texts and label values pass the linter that comes with Prometheus."""
    page = showing(*(THINGS(n, kind) for n, kind in enumerate(HOSTILE)), EVENTS(1, "a")).page("text")
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_both_formats_say_the_same() -> None:
    """OpenMetrics has every series that the text format has, with its value."""
    exposition = showing(*(THINGS(n, kind) for n, kind in enumerate(HOSTILE)), EVENTS(7, "a"))

    def ours(read: Series) -> Series:
        return {key: value for key, value in read.items() if key[0].startswith("laravel_queue_")}

    assert ours(series(exposition.page("text"))) == ours(openmetrics(exposition.page("openmetrics")))


def test_a_gauge_and_a_counter_may_share_a_name_but_for_its_end() -> None:
    """OpenMetrics calls a counter's family as this gauge is called; its page has both, in families of their own."""
    exposition = showing(FAILED(3, "database", "default"), FAILED_TOTAL(7, "database", "default", "App\\Jobs\\A"))
    for page in (series(exposition.page("text")), openmetrics(exposition.page("openmetrics"))):
        found = {name: value for (name, _), value in page.items() if name in (FAILED.name, FAILED_TOTAL.name)}
        assert found == {FAILED.name: 3, FAILED_TOTAL.name: 7}
    assert b"# TYPE laravel_queue_failed_jobs_total counter" in exposition.page("text")


@pytest.mark.parametrize("form", ["text", "openmetrics"])
def test_the_process_is_there_exactly_once(form: Format) -> None:
    """Each family has one head, ours as well as `process_*` and `python_*` of the client library."""
    heads = [line for line in showing(THINGS(1, "a")).page(form).split(b"\n") if line.startswith(b"# TYPE")]
    assert len(heads) == len(set(heads))
    families = {line.split()[2] for line in heads}
    assert {b"process_resident_memory_bytes", b"process_open_fds", b"python_info"} <= families


def test_errors_are_born_at_zero() -> None:
    """Every reason is there before anything failed, so that the first failure is seen as an increase."""
    hand = HandClock()
    stage = Stage(hand, Scripted(hand, (fails("timeout"),)))
    exposition = Exposition(stage.board, hand.clock)

    def errors() -> dict[str, float]:
        found = series(exposition.page("text")).items()
        return {dict(labels)["reason"]: n for (name, labels), n in found if name == "laravel_queue_source_errors_total"}

    assert errors() == dict.fromkeys(REASONS, 0)
    stage.play(1)
    assert errors() == dict.fromkeys(REASONS, 0) | {"timeout": 1}


def test_health_is_told_of_a_collector_that_answers_and_of_one_that_does_not() -> None:
    """What is known about the asking is there even when there is nothing else to show."""
    hand = HandClock()
    stage = Stage(hand, Scripted(hand, (Act(0.5),)), Scripted(hand, (fails("permission", 0.25),), "sizes", 60))
    stage.play(1)
    page = series(Exposition(stage.board, hand.clock).page("text"))

    def told(name: str, collector: str) -> float | None:
        return page.get((f"laravel_queue_source_{name}", (("collector", collector), ("source", "database"))))

    names = ("up", "fresh", "poll_duration_seconds", "polls_total", "busy_seconds_total", "configured_interval_seconds")
    assert [told(name, "jobs") for name in names] == [1, 1, 0.5, 1, 0.5, 15]
    assert [told(name, "sizes") for name in names] == [0, 0, 0.25, 1, 0.25, 60]
    assert told("last_success_timestamp_seconds", "jobs") == 1_800_000_000.5
    assert told("last_success_timestamp_seconds", "sizes") is None
