"""What reservations tell of the workers' clocks: by how much one is ahead or behind, at least."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.ledger import Ledger

from .readings import NOW, job, ledger, reading


def lead(book: Ledger, queue: str = "default") -> int | None:
    """What is told of a queue's workers."""
    return book.queues[queue].lead


def newest(book: Ledger) -> int | None:
    """The newest reservation, in seconds since the first reading."""
    at = book.queues["default"].newest
    return None if at is None else at - NOW


def test_a_reservation_that_lies_ahead_is_of_a_clock_that_does() -> None:
    """Forty seconds ahead, seen two seconds after it was made: 38 at least."""
    assert lead(ledger().after(reading(2, job(7, 40)))) == 38


def test_a_reservation_from_before_the_last_pass_is_of_a_clock_that_is_behind() -> None:
    """Nobody held it 15 s ago, and it says 40 s: that clock is 25 s behind at least."""
    assert lead(ledger().after(reading(15, job(7, -25, since=0)))) == -25


def test_an_old_reservation_is_no_evidence_without_a_pass_before() -> None:
    """When the exporter starts, a job may have been held for long."""
    assert lead(ledger().after(reading(0, job(7, -3600)))) == 0


def test_nothing_held_says_nothing() -> None:
    """No evidence is not 0."""
    book = ledger().after(reading(0))
    assert (lead(book), newest(book)) == (None, None)


def test_evidence_is_of_the_last_pass_and_the_looks_since() -> None:
    """A clock that was set right is not accused any longer than until the next pass."""
    book = ledger().after(reading(0, job(7, 40)))
    assert lead(book) == 40
    book = book.after(reading(2, is_pass=False))
    assert lead(book) == 40
    book = book.after(reading(15, job(8, 14, since=0), asked=(7,)))
    assert lead(book) == 0
    assert lead(book.after(reading(30, asked=(8,)))) is None


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_of_several_workers_the_one_that_is_off_most_is_told(order: tuple[int, ...]) -> None:
    """One a little ahead, one far behind, one right: whatever row comes first."""
    rows = {1: job(1, 20, since=0), 2: job(2, -30, since=0), 3: job(3, 14, since=0)}
    assert lead(ledger().after(reading(15, *(rows[n] for n in order)))) == -30


def test_each_queue_has_its_own_workers() -> None:
    """A clock that is off is told where its worker took a job."""
    book = ledger().after(reading(0, job(1, 40, queue="a"), job(2, 0, queue="b")))
    assert (lead(book, "a"), lead(book, "b")) == (40, 0)


def test_a_second_worker_may_be_ahead() -> None:
    """It took over a job after 55 s that its own clock took for 95: a look at it says so, between two passes."""
    book = ledger().after(reading(50, job(7, 0))).after(reading(56, job(7, 95, attempts=2), is_pass=False))
    assert lead(book) == 39


def test_the_newest_reservation_is_remembered() -> None:
    """When the last job was taken, though nothing is held any more; a clock that is ahead takes none in the future."""
    book = ledger().after(reading(20, job(7, 5), job(8, 12)))
    assert newest(book.after(reading(60, asked=(7, 8)))) == 12
    assert newest(book.after(reading(60, job(9, 99999)))) == 60


@given(
    offsets=st.lists(st.floats(-60, 60), min_size=1, max_size=3),
    phase=st.floats(0, 1),
    taken=st.lists(st.floats(0.1, 15), min_size=1, max_size=8),
)
def test_no_clock_is_said_to_be_off_by_more_than_it_is(offsets: list[float], phase: float, taken: list[float]) -> None:
    """
    Whoever takes a job between two looks, whatever his clock says: what is told is a lower bound.

    All clocks give whole seconds, so it may be one second more.
    """
    rows = [job(n, int(NOW + phase + at + offsets[n % len(offsets)]) - NOW, since=0) for n, at in enumerate(taken)]
    told = lead(ledger().after(reading(int(15 + phase), *rows)))
    assert told is not None
    assert min(0, *offsets) - 1 <= told <= max(0, *offsets) + 1


@given(phase=st.floats(0, 1), taken=st.lists(st.floats(0, 15), min_size=1, max_size=20))
def test_perfect_clocks_are_said_to_be_right(phase: float, taken: list[float]) -> None:
    """Nobody is off by more than the second that whole seconds hide."""
    rows = [job(n, int(NOW + phase + at) - NOW, since=0) for n, at in enumerate(taken)]
    told = lead(ledger().after(reading(int(15 + phase), *rows)))
    assert told in (-1, 0, 1)
