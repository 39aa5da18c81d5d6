"""Totals of minutes, and how long a job takes by Little's law, on hand-made numbers; and when it is not known."""

from __future__ import annotations

import pytest

from exporter.sources.sqs.minutes import KEPT, Tally, seconds_per_job
from exporter.sources.sqs.session import Counts

NOW = 1_800_000_000  # the beginning of a minute


def history(*held: int) -> list[Counts]:
    """Counts of so many messages in flight, one a minute, the last one just now."""
    began = NOW - 60 * len(held)
    return [Counts(60.0 * n, began + 60.0 * n, {}, {"mail": count}) for n, count in enumerate(held)]


def done(minutes: int, each: float) -> dict[int, float]:
    """Messages deleted in each of the last minutes."""
    return {NOW - 60 * (n + 1): each for n in range(minutes)}


def test_mean_in_flight_by_deletions_per_second() -> None:
    """Six in flight on average and two deleted a second: three seconds each."""
    assert seconds_per_job(history(*[4, 8] * 5), "mail", done(10, 120), NOW) == pytest.approx(3)


def test_only_what_both_know_counts() -> None:
    """Deletions from before the first count, and counts after the last settled minute, are left out."""
    before = done(10, 120) | {NOW - 60 * n: 9999.0 for n in range(11, 60)}
    assert seconds_per_job([*history(*[6] * 10), *history(*[6] * 10)], "mail", before, NOW) == pytest.approx(3)
    after = [*history(*[6] * 10), Counts(9999.0, NOW + 30.0, {}, {"mail": 9999})]
    assert seconds_per_job(after, "mail", before, NOW) == pytest.approx(3)


def test_only_the_last_quarter_of_an_hour_counts() -> None:
    """Jobs that were slower before that are no part of the mean."""
    assert seconds_per_job(history(*[60] * 10, *[6] * 15), "mail", done(25, 120), NOW) == pytest.approx(3)


@pytest.mark.parametrize(
    ("counts", "deleted"),
    [
        ([], done(10, 120)),  # nothing was counted yet
        (history(6, 6, 6, 6), done(10, 120)),  # four minutes are too short
        (history(*[6] * 10), done(10, 0.5)),  # too few jobs
        (history(*[6] * 10), {}),
        (history(*[0] * 10), done(10, 120)),  # jobs too short to be seen in flight
    ],
)
def test_what_is_not_known(counts: list[Counts], deleted: dict[int, float]) -> None:
    """Too short a time, too few jobs, none seen: no number, rather than a wrong one."""
    assert seconds_per_job(counts, "mail", deleted, NOW) is None
    assert seconds_per_job(counts, "exports", deleted, NOW) is None


def test_what_was_known_at_the_beginning_is_not_counted() -> None:
    """Only what comes from then on, and by how much the number of a minute grows that is not over yet."""
    tally = Tally.begun({NOW - 60: 7, NOW: 3}, NOW + 30)
    assert tally.total == 0
    assert tally.after({NOW - 120: 9, NOW - 60: 7, NOW: 5, NOW + 60: 10}, NOW + 90).total == 12


def test_a_number_that_shrinks_takes_nothing_away() -> None:
    """A total never falls, and what was counted once is not counted when the number is back."""
    tally = Tally.begun({}, NOW)
    totals = [(tally := tally.after({NOW: count}, NOW + 60)).total for count in (5, 2, 5, 6)]
    assert totals == [5, 5, 5, 6]


def test_minutes_that_are_not_kept_any_more_are_done_with() -> None:
    """After a long gap, or with a clock that is put back, no old minute is taken for a new one."""
    tally = Tally.begun({}, NOW)
    hours = {NOW + 60 * n: 1.0 for n in range(3 * KEPT)}
    for _ in range(2):
        tally = tally.after(hours, NOW + 60 * 3 * KEPT)
        assert (tally.total, len(tally.minutes)) == (3 * KEPT, KEPT)


def test_a_clock_that_was_ahead_at_the_beginning() -> None:
    """Counting begins when the clock is right again, and not an hour later."""
    tally = Tally.begun({}, NOW + 3600).after({NOW - 60: 5, NOW: 5}, NOW + 30)
    assert tally.total == 5
