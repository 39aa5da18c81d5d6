"""What is known of the jobs that workers hold: handed out again, held for long, and for how long."""

from __future__ import annotations

from math import inf

import pytest

from exporter.queues import EARLIEST, TEN_YEARS
from exporter.sources.ledger import BUCKETS, Job, Ledger, OfClass

from .readings import NOW, SLOW, job, ledger, reading


def repeated(book: Ledger, queue: str = "default") -> int:
    """Jobs of a queue that were handed out again."""
    return book.queues[queue].repeated


def long(book: Ledger, job_class: str = SLOW, queue: str = "default") -> int:
    """Reservations of a class that took long."""
    return book.classes[queue, job_class].long


def ended(book: Ledger, queue: str = "default") -> tuple[dict[float, int], float]:
    """How many reservations have ended, by the upper bound of their bucket, and their lengths together."""
    lengths = book.queues[queue].lengths
    bounds = (*BUCKETS, inf)
    return {bound: count for bound, count in zip(bounds, lengths.counts, strict=True) if count}, lengths.sum


def test_the_same_id_later_and_with_more_attempts_was_handed_out_again() -> None:
    """A second worker has the job: counted under its queue, and remembered with what is known of the first one."""
    book = ledger().after(reading(0, job(7, 0))).after(reading(89, job(7, 0)))
    book = book.after(reading(91, job(7, 90, attempts=2)))
    assert repeated(book) == 1
    assert book.last_repeat is not None
    assert (book.last_repeat.key.id, book.last_repeat.after, book.last_repeat.held.attempts) == (7, 89, 2)
    assert ended(book) == ({90: 1}, 89)


def test_each_attempt_more_was_a_time_that_it_was_handed_out() -> None:
    """Two hand-outs between two looks are two: each pop adds one attempt."""
    book = ledger().after(reading(0, job(7, 0))).after(reading(185, job(7, 180, attempts=3)))
    assert repeated(book) == 2


def test_attempts_may_jump_by_hand() -> None:
    """Thirty attempts more in ninety seconds were no thirty pops: no more is counted than there was time for."""
    book = ledger().after(reading(0, job(7, 0))).after(reading(95, job(7, 90, attempts=31)))
    assert repeated(book) in (1, 2)


@pytest.mark.parametrize(
    "row",
    [
        job(7, 0, attempts=1),
        job(7, -50, attempts=1),
        job(7, -50, attempts=2),
        job(7, 0, attempts=2),
        job(7, 60, attempts=1),
        job(7, 60, attempts=0),
    ],
    ids=["as it was", "set back", "set back, more attempts", "more attempts", "touched", "reset"],
)
def test_a_row_that_somebody_changed_by_hand_was_not_handed_out_again(row: Job) -> None:
    """Only later and with more attempts, both, is a second worker's reservation."""
    book = ledger().after(reading(0, job(7, 0))).after(reading(70, row))
    assert repeated(book) == 0
    assert ended(book) == ({}, 0)


def test_a_change_by_hand_is_what_the_next_hand_out_is_compared_with() -> None:
    """Attempts that an operator has set to 0 are no reason to overlook the worker that comes next."""
    book = ledger().after(reading(0, job(7, 0, attempts=5))).after(reading(10, job(7, 0, attempts=0)))
    assert repeated(book.after(reading(100, job(7, 95, attempts=1)))) == 1


def test_a_release_is_an_end_and_a_beginning() -> None:
    """A job that comes back has a new id and keeps its attempts: two reservations, none handed out again."""
    book = ledger().after(reading(0, job(7, 0))).after(reading(20, job(8, 19, attempts=2), asked=(7, 8)))
    assert repeated(book) == 0
    assert ended(book) == ({1: 1}, 0)
    assert {key.id for key in book.held} == {8}


def test_a_reservation_is_long_once() -> None:
    """Over half of retry_after it is counted, however often it is looked at; at half of it, it is not yet."""
    book = ledger()
    for at, counted in ((0, 0), (45, 0), (46, 1), (60, 1), (200, 1)):
        book = book.after(reading(at, job(7, 0)))
        assert long(book) == counted


def test_a_second_hand_out_counts_the_first() -> None:
    """Whoever was overtaken had the job for all of retry_after, though nobody looked when it was over half of it."""
    book = ledger().after(reading(0, job(7, 0))).after(reading(91, job(7, 90, attempts=2)))
    assert long(book) == 1
    book = book.after(reading(140, job(7, 90, attempts=2)))
    assert long(book) == 2  # the second reservation takes long as well


def test_who_is_overtaken_early_has_not_taken_long() -> None:
    """A second worker whose clock is a minute ahead takes the job after 30 s: handed out again, and not long."""
    book = ledger().after(reading(29, job(7, 0))).after(reading(31, job(7, 90, attempts=2)))
    assert (repeated(book), long(book)) == (1, 0)


def test_an_overtaken_one_that_was_counted_is_not_counted_again() -> None:
    """One count a reservation, also for one that is counted as long before it is handed out again."""
    book = ledger().after(reading(60, job(7, 0))).after(reading(91, job(7, 90, attempts=2)))
    assert long(book) == 1


def test_a_class_is_new_until_the_next_pass() -> None:
    """A counter that is born at 1 hides that from increase(): who first sees the class may see it as 0 for a while."""
    book = ledger().after(reading(60, job(7, 0)))
    assert book.classes["default", SLOW] == OfClass(long=1, is_new=True)
    book = book.after(reading(62, job(7, 0), is_pass=False))
    assert book.classes["default", SLOW].is_new
    book = book.after(reading(75, job(7, 0)))
    assert book.classes["default", SLOW] == OfClass(long=1, is_new=False)


def test_a_length_is_the_last_age_seen() -> None:
    """What ended in between is known to have lasted until it was last seen, and falls into the bucket of that."""
    book = ledger()
    for id_, age in enumerate((0, 1, 2, 90, 91, 20000)):
        book = book.after(reading(age, job(id_, 0))).after(reading(age, asked=(id_,)))
    assert ended(book) == ({1: 2, 5: 1, 90: 1, 120: 1, inf: 1}, 20184)


def test_a_clock_that_is_ahead_makes_no_negative_length() -> None:
    """A reservation that begins in the future has lasted for no time yet."""
    book = ledger().after(reading(0, job(7, 40))).after(reading(1, asked=(7,)))
    assert ended(book) == ({1: 1}, 0)


def test_the_databases_clock_may_be_set_back() -> None:
    """A hundred seconds less are no new reservation, no negative length, and nothing is counted twice."""
    book = ledger().after(reading(60, job(7, 0))).after(reading(-40, job(7, 0)))
    assert (repeated(book), long(book)) == (0, 1)
    book = book.after(reading(-38, asked=(7,)))
    assert ended(book) == ({1: 1}, 0)


def test_only_what_was_asked_can_have_ended() -> None:
    """A look at a few of them says nothing of the others."""
    book = ledger().after(reading(0, job(1, 0), job(2, 0)))
    assert book.after(reading(2, job(1, 0), is_pass=False)).held.keys() == book.held.keys()
    assert [key.id for key in book.after(reading(2, asked=(1,), is_pass=False)).held] == [2]


def test_those_that_will_be_long_before_the_next_pass_are_watched() -> None:
    """From 15 s before half of retry_after on, and for as long as they last."""
    book = ledger(interval=15)
    for at, is_watched in ((0, False), (30, False), (31, True), (46, True), (95, True), (3600, True)):
        book = book.after(reading(at, job(7, 0)))
        assert bool(book.watched) == is_watched, at
    assert book.after(reading(3602, asked=(7,), is_pass=False)).watched == frozenset()


def test_a_job_is_watched_in_time_though_nobody_has_looked_at_it() -> None:
    """Where a pass is late, time alone makes a job one that may be long before the next."""
    book = ledger(interval=15).after(reading(16, job(7, 0), job(8, -60)))
    assert {key.id for key in book.watched} == {8}
    book = book.after(reading(31, job(8, -60), is_pass=False))
    assert {key.id for key in book.watched} == {7, 8}


@pytest.mark.parametrize("reserved_at", [EARLIEST - 1 - NOW, -NOW, 101 + TEN_YEARS])
def test_times_that_cannot_be_are_left_out(reserved_at: int) -> None:
    """A reservation before 2005 or in ten years says nothing of lengths, clocks or timeouts."""
    book = ledger().after(reading(100, job(7, reserved_at)))
    assert (book.held, book.classes) == ({}, {})
    assert (book.queues["default"].newest, book.queues["default"].lead) == (None, None)


def test_an_id_that_two_rows_have() -> None:
    """In a view of several tables one may be held while another of the same id is, before it or after it."""
    one, other = job(7, 0), job(7, 1, attempts=2, available_at=1)
    for first, second in (((one,), (other,)), ((one,), (one, other)), ((one, other), (other, one)), ((other,), (one,))):
        book = ledger().after(reading(2, *first)).after(reading(4, *second))
        assert repeated(book) == 0
        assert book.held.keys() == {row.key for row in second}
        assert int(book.queues["default"].lengths) == len({*first} - {*second})


def test_a_reading_changes_nothing_of_what_was_known_before() -> None:
    """The same reading may be taken in twice: both times the same comes of it, counters as well."""
    book = ledger().after(reading(0, job(7, 0), job(8, 0)))
    again = reading(91, job(7, 90, attempts=2), asked=(7, 8))
    assert book.after(again) == book.after(again)


def test_of_queues_that_are_not_shown_any_more_nothing_is_kept() -> None:
    """Memory is bounded by what is shown; a reservation that outlives its queue's name goes to the new one."""
    book = ledger().after(reading(0, job(7, 0, queue="a"), queues=("a",)))
    book = book.after(reading(60, job(7, 0, queue="other"), queues=("b",)))
    assert book.queues.keys() == {"b", "other"}
    assert book.classes.keys() == {("other", SLOW)}
    book = book.after(reading(62, asked=(7,), queues=("b",), is_pass=False))
    assert ended(book, "other") == ({60: 1}, 60)


def test_a_job_may_end_after_its_queue_is_gone() -> None:
    """What was held an hour ago, before a long silence, ends without a word about a queue that nobody shows."""
    book = ledger().after(reading(0, job(7, 0, queue="a"), queues=("a",)))
    book = book.after(reading(4000, asked=(7,), queues=("b",)))
    assert book.held == {}
    assert book.after(reading(4015, queues=("b",))).queues.keys() == {"b"}
