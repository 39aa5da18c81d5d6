"""Timeouts: who should be dead, and what a class may take at most."""

from __future__ import annotations

from math import inf

import pytest

from exporter.queues import OTHER
from exporter.sources.ledger import MOST_CLASSES, TIMEOUT_KEPT, Ledger

from .readings import SLOW, job, ledger, payload, reading


def past(book: Ledger, queue: str = "default") -> int:
    """Jobs of a queue that are held for longer than their timeout allows."""
    return book.past_timeout()[queue]


def timeout(book: Ledger, job_class: str = SLOW) -> float | None:
    """What is shown of a class."""
    return book.classes["default", job_class].timeout


@pytest.mark.parametrize(
    ("own", "workers", "counted_from"),
    [
        (30, None, 41),
        (30, 60, 41),
        (None, 60, 71),
        (0.5, None, 11),
        (0, 30, None),
        (None, None, None),
        (79, None, None),
        (78, None, 89),
    ],
    ids=["its own", "its own before the workers'", "the workers'", "a short one", "none at all", "nobody knows",
         "too close to retry_after", "just before retry_after"],
)  # fmt: skip
def test_who_should_be_dead(own: float | None, workers: float | None, counted_from: int | None) -> None:
    """Ten seconds over the timeout, from the job itself or else the workers; never once it has expired."""
    book = ledger(timeouts={"default": workers} if workers else None)
    counted = []
    for age in range(95):
        book = book.after(reading(age, job(7, 0, of=payload(timeout=own))))
        counted += [age] * past(book)
    assert counted == ([] if counted_from is None else [*range(counted_from, 90)])


def test_a_job_counts_by_the_age_at_which_it_was_seen() -> None:
    """What was not looked at since may have ended: time alone puts nobody over his timeout."""
    watched, other = job(1, -60, of=payload(timeout=20)), job(2, 0, of=payload(timeout=20))
    book = ledger().after(reading(10, watched, other)).after(reading(60, watched, is_pass=False))
    assert past(book) == 0  # the first has expired, and nobody knows of the second
    assert past(book.after(reading(61, other, is_pass=False))) == 1


def test_a_second_reservation_is_not_late_at_once() -> None:
    """The timeout of a job that was handed out again begins anew."""
    book = ledger().after(reading(60, job(7, 0, of=payload(timeout=20))))
    assert past(book) == 1
    assert past(book.after(reading(92, job(7, 90, attempts=2)))) == 0


def test_queues_are_counted_apart() -> None:
    """Each by the timeout of its own workers."""
    book = ledger(timeouts={"a": 20, "b": 70})
    book = book.after(reading(50, job(1, 0, queue="a"), job(2, 0, queue="a"), job(3, 0, queue="b")))
    assert (past(book, "a"), past(book, "b"), past(book, "c")) == (2, 0, 0)


@pytest.mark.parametrize(("own", "shown"), [(30, 30), (None, 60), (0, inf), (0.5, 0.5)])
def test_the_timeout_of_a_class(own: float | None, shown: float) -> None:
    """Its own, else the longest of its workers, and +Inf for none at all."""
    book = ledger(timeouts={"default": 60})
    assert timeout(book.after(reading(0, job(7, 0, of=payload(timeout=own))))) == shown


def test_a_class_without_any_timeout_has_none() -> None:
    """Where neither the payload nor the settings say one, nothing is said."""
    assert timeout(ledger().after(reading(0, job(7, 0)))) is None


def test_the_largest_timeout_is_shown_for_an_hour() -> None:
    """A larger one stands until an hour after a job with it was last held, and then gives way to a smaller one."""
    book = ledger().after(reading(0, job(1, 0, of=payload(timeout=300)), job(2, 0, of=payload(timeout=20))))
    book = book.after(reading(100, job(2, 90, attempts=2), asked=(1,)))
    for now, shown in ((1000, 300), (TIMEOUT_KEPT - 1, 300), (TIMEOUT_KEPT, 20), (2 * TIMEOUT_KEPT, 20)):
        book = book.after(reading(now, job(2, 90, attempts=2)))
        assert timeout(book) == shown, now
    book = book.after(reading(2 * TIMEOUT_KEPT + 15, asked=(2,)))
    assert timeout(book) == 20
    assert timeout(book.after(reading(3 * TIMEOUT_KEPT))) is None


def test_each_job_with_the_largest_timeout_prolongs_it() -> None:
    """The hour begins with the last of them, though one with a smaller timeout is held all the time."""
    small, large = job(1, 0, of=payload(timeout=20)), payload(timeout=300)
    book = ledger()
    for now, is_there in ((0, True), (1800, True), (3600, False), (5385, False), (5400, False)):
        rows = (small, job(now + 2, now, of=large)) if is_there else (small,)
        book = book.after(reading(now, *rows, asked=(key.id for key in book.held)))
        assert timeout(book) == (20 if now == 5400 else 300), now


def test_a_job_that_is_held_for_hours_keeps_its_timeout_shown() -> None:
    """It is seen as long as it is held."""
    book = ledger()
    for now in range(0, 3 * TIMEOUT_KEPT, 600):
        book = book.after(reading(now, job(1, 0, of=payload(timeout=0))))
        assert timeout(book) == inf


def test_pairs_of_a_queue_and_a_class_are_bounded() -> None:
    """A hundred queues with a hundred classes each would be ten thousand series: what comes later is `other`."""
    rows = [job(n, 0, queue=f"queue-{n % 90}", of=payload(f"App\\Jobs\\Job{n % 89}")) for n in range(2000)]
    book = ledger().after(reading(0, *rows))
    assert len(book.classes) <= MOST_CLASSES + 90
    assert book.folded == sum(held.job_class == OTHER for held in book.held.values()) == 2000 - MOST_CLASSES


def test_classes_beyond_the_hundredth_are_other_and_counted() -> None:
    """Each reservation whose class has no name of its own any more is counted; one without a class is not one."""
    book = ledger(most=2).after(reading(0, *(job(n, 0, of=payload(f"App\\Jobs\\Job{n}")) for n in range(5))))
    assert [of for _, of in book.classes] == ["App\\Jobs\\Job0", "App\\Jobs\\Job1", OTHER]
    assert book.folded == 3
    book = book.after(reading(15, *(job(n, 0) for n in range(5)), job(9, 0, of="{}")))
    assert book.folded == 3
