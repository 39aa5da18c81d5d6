"""All arithmetic about time: deadlines, the duty, the backoff."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.errors import SourceError
from exporter.timing import Deadline, Need, backoff, stretch

from ..world import HandClock

NEEDS = st.lists(
    st.builds(Need, st.floats(0.1, 3600), st.floats(0, 100, allow_subnormal=False)), min_size=1, max_size=12
)
DUTY = st.floats(0.001, 1.0)


def test_deadline_counts_down_and_then_is_a_timeout() -> None:
    """Every call of a poll gets what is left of one budget; with nothing left the poll has timed out."""
    hand = HandClock()
    deadline = Deadline(hand.mono + 2, hand.clock.mono)
    hand.pass_(1.5)
    assert deadline.left() == 0.5
    hand.pass_(0.5)
    with pytest.raises(SourceError) as caught:
        deadline.left()
    assert caught.value.reason == "timeout"


def test_deadline_is_shared_out() -> None:
    """The first of two gets half of what is left; one that used less leaves the rest to the second."""
    hand = HandClock()
    deadline = Deadline(hand.mono + 2, hand.clock.mono)
    assert deadline.share(2).left() == 1
    hand.pass_(0.2)
    assert deadline.share(1).left() == pytest.approx(1.8)


@given(NEEDS, DUTY)
def test_duty_is_never_exceeded(needs: list[Need], duty: float) -> None:
    """Whatever the questions cost, the sum of cost ÷ interval stays within the duty."""
    taken = sum(need.cost / interval for need, interval in zip(needs, stretch(needs, duty), strict=True))
    assert taken <= duty * (1 + 1e-9)


@given(NEEDS, DUTY)
def test_nobody_is_asked_more_often_than_configured(needs: list[Need], duty: float) -> None:
    """The duty makes intervals longer, never shorter."""
    assert all(interval >= need.interval for need, interval in zip(needs, stretch(needs, duty), strict=True))


@given(NEEDS, DUTY)
def test_nobody_starves(needs: list[Need], duty: float) -> None:
    """However much the others cost, each keeps an equal part of two fifths of the duty."""
    for need, interval in zip(needs, stretch(needs, duty), strict=True):
        assert interval <= max(need.interval, need.cost * 2.5 * len(needs) / duty) * (1 + 1e-9)


@given(NEEDS, DUTY)
def test_the_first_stretches_last(needs: list[Need], duty: float) -> None:
    """What three fifths of the duty pay for keeps its pace, however much the less important ones cost."""
    paid = 0.0
    for need, interval in zip(needs, stretch(needs, duty), strict=True):
        paid += need.cost / need.interval
        if paid > 0.6 * duty:
            break
        assert interval == pytest.approx(need.interval)


def test_a_slow_question_in_numbers() -> None:
    """At one per cent, a jobs question of 300 ms is asked each 30 s, and of nine such each within the hour."""
    alone = stretch([Need(15, 0.3)], 0.01)
    assert alone == [pytest.approx(30)]
    assert stretch([Need(15, 0.3), Need(15, 0.001)], 0.01) == [pytest.approx(0.3 / (0.01 - 0.001 / 15)), 15]
    assert max(stretch([Need(15, 0.3)] * 9, 0.01)) < 3600


def test_a_dear_question_does_not_slow_down_the_cheap_ones() -> None:
    """Where the jobs take 149 ms, held jobs are still looked at every 2 s for 2 ms, and the rest keeps its pace."""
    cheap = [Need(2, 0.002), *[Need(15, 0.002)] * 7]
    intervals = stretch([Need(15, 0.149), *cheap], 0.01)
    assert intervals[1:] == [need.interval for need in cheap]
    assert 15 < intervals[0] < 20


def test_backoff_doubles_up_to_a_minute() -> None:
    """A question asked each 15 s is asked again after 30 s, then each minute."""
    assert [backoff(15, streak, 0.0) for streak in (1, 2, 3, 99)] == [30, 60, 60, 60]


@given(st.floats(0.1, 3600), st.integers(1, 10_000), st.floats(0, 0.999))
def test_jitter_only_takes_off(interval: float, streak: int, roll: float) -> None:
    """The pause is the doubled one or up to a tenth less, never shorter than the interval, and a minute at most."""
    pause, whole = backoff(interval, streak, roll), backoff(interval, streak, 0.0)
    assert interval <= pause <= whole <= max(interval, 60)
    assert pause >= 0.9 * whole


def test_what_is_slow_anyway_keeps_its_pace() -> None:
    """A question asked once a minute or less often needs no backoff."""
    assert [backoff(interval, 7, 0.5) for interval in (60, 64, 3600)] == [60, 64, 3600]
