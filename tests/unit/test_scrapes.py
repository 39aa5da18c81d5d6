"""A scrape reads memory: it polls nothing, waits for nothing, and never sees half of an answer or an old one."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread

import pytest

from exporter.board import Board, Key, State
from exporter.exposition import Exposition
from exporter.model import Sample

from ..world import HandClock, series
from .scripted import THINGS, Act, Scripted, Stage, fails

JOBS = Key("database", "jobs")
SERIES = (THINGS.name, (("kind", "a"),))


@pytest.fixture
def hand() -> HandClock:
    """A clock that only the test moves."""
    return HandClock()


def test_an_old_value_leaves_the_page_although_nobody_publishes(hand: HandClock) -> None:
    """While every poller is stuck, a value is gone from the page as soon as its time is over."""
    stage = Stage(hand, Scripted(hand))
    exposition = Exposition(stage.board, hand.clock)
    stage.play(1)
    assert SERIES in series(exposition.page("text"))
    hand.mono = 1052.5
    assert SERIES in series(exposition.page("text"))
    hand.mono = 1052.51
    page = series(exposition.page("text"))
    assert SERIES not in page
    assert page["laravel_queue_source_fresh", (("collector", "jobs"), ("source", "database"))] == 0


def test_values_of_different_age_leave_one_after_the_other(hand: HandClock) -> None:
    """The page is true at each moment, not only up to the first value that grew too old."""
    young, old = Scripted(hand, (Act(answer=(THINGS(1, "young"),)),), "sizes", 60), Scripted(hand)
    stage = Stage(hand, old, young)
    exposition = Exposition(stage.board, hand.clock)
    stage.play(1)
    shown = []
    for hand.mono in (1000, 1100, 1300):
        shown.append(
            {dict(labels)["kind"] for (name, labels) in series(exposition.page("text")) if name == THINGS.name}
        )
    assert shown == [{"a", "young"}, {"young"}, set()]


def test_the_second_failure_takes_the_values_off_the_page(hand: HandClock) -> None:
    """Case 14: after two failed polls the page has no value of that collector, though it is served as before."""
    stage = Stage(hand, Scripted(hand, (Act(), fails("timeout"), fails("timeout"), Act())))
    exposition = Exposition(stage.board, hand.clock)
    there = []
    for seconds in (1, 15, 30, 60):
        stage.play(seconds)
        there.append(SERIES in series(exposition.page("text")))
    assert there == [True, True, False, True]


def test_settings_stay_when_everything_is_gone(hand: HandClock) -> None:
    """What the settings alone say, such as the target wait, is there without any answer."""
    board = Board([THINGS(60, "target")])
    assert (THINGS.name, (("kind", "target"),)) in series(Exposition(board, hand.clock).page("text"))


def test_case_78_scrapes_poll_nothing(hand: HandClock) -> None:
    """Case 78: a hundred scrapes by two servers cost the far side nothing and read the same values."""
    jobs = Scripted(hand)
    stage = Stage(hand, jobs)
    exposition = Exposition(stage.board, hand.clock)
    stage.play(16)
    pages = {tuple(sorted(series(exposition.page("text")).items()))[:1] for _ in range(100)}
    assert len(pages) == 1
    assert len(jobs.asked) == 2


def test_case_88_scrapes_at_the_same_instant_all_complete_and_are_whole(hand: HandClock) -> None:
    """Case 88: while answers come in, four scrapers at once read each answer whole, and none older than the last."""
    board = Board()
    exposition = Exposition(board, hand.clock)
    torn: list[object] = []

    def publish(n: int) -> None:
        samples = (THINGS(n, "a"), THINGS(n, "b"))
        board.publish({JOBS: State(15, 15, samples, polls=1, good_until=hand.mono + 50)})

    def scrape() -> None:
        last = -1.0
        for _ in range(50):
            page = series(exposition.page("text"))
            a, b = page[SERIES], page[THINGS.name, (("kind", "b"),)]
            if a != b or a < last:
                torn.append((a, b, last))
            last = a

    publish(0)
    scrapers = [Thread(target=scrape) for _ in range(4)]
    for scraper in scrapers:
        scraper.start()
    for n in range(1, 200):
        publish(n)
    for scraper in scrapers:
        scraper.join(30)
    assert not any(scraper.is_alive() for scraper in scrapers)
    assert torn == []
    assert series(exposition.page("text"))[SERIES] == 199


class Slow(tuple[Sample, ...]):
    """Samples that take their time when a page is made of them."""

    begun, go_on = Event(), Event()

    def __iter__(self) -> Iterator[Sample]:
        self.begun.set()
        self.go_on.wait(10)
        return super().__iter__()


def test_a_slow_page_does_not_hide_a_newer_answer(hand: HandClock) -> None:
    """An answer that comes while a page is made, even the very first one, is on the next page."""
    board = Board()
    exposition = Exposition(board, hand.clock)

    def publish(samples: tuple[Sample, ...]) -> None:
        board.publish({JOBS: State(15, 15, samples, polls=1, good_until=hand.mono + 50)})

    slow = Slow([THINGS(1, "a")])
    publish(slow)
    scraper = Thread(target=exposition.page, args=("text",))
    scraper.start()
    assert slow.begun.wait(10)
    poller = Thread(target=publish, args=((THINGS(2, "a"),),))
    poller.start()
    poller.join(0.1)  # it may wait for the page, or not
    slow.go_on.set()
    scraper.join()
    poller.join()
    assert series(exposition.page("text"))[SERIES] == 2
