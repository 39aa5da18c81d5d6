"""How long a number is believed, and what withdraws it."""

from __future__ import annotations

import pytest

from exporter.model import Note

from ..world import HandClock
from .scripted import Act, Scripted, Stage, fails


@pytest.fixture
def hand() -> HandClock:
    """A clock that only the test moves."""
    return HandClock()


def test_one_failure_leaves_the_last_values_but_says_so_at_once(hand: HandClock) -> None:
    """After one failed poll the source is not up any more, and its last values still stand."""
    stage = Stage(hand, Scripted(hand, (Act(), fails("timeout"))))
    stage.play(16)
    assert not stage.state().up
    assert stage.fresh()
    assert len(stage.state().samples) == 1


def test_the_second_failure_in_a_row_withdraws_them(hand: HandClock) -> None:
    """Two failed polls are no hiccup, even if the values were still young enough."""
    stage = Stage(hand, Scripted(hand, (Act(), fails("timeout")), interval=1))
    stage.play(1.5)
    assert stage.fresh()
    stage.play(2)
    assert stage.state().streak == 2
    assert hand.mono <= stage.state().good_until
    assert not stage.fresh()


def test_two_failures_that_are_not_in_a_row_withdraw_nothing(hand: HandClock) -> None:
    """A success in between starts the count anew."""
    stage = Stage(hand, Scripted(hand, (Act(), fails("timeout"), Act(), fails("timeout"))))
    stage.play(61)
    assert stage.state().errors == {"timeout": 2}
    assert stage.fresh()


def test_belief_ends_after_three_and_a_half_intervals(hand: HandClock) -> None:
    """If nobody polls any more, the values are believed for 52.5 s at an interval of 15 s, and no longer."""
    stage = Stage(hand, Scripted(hand))
    stage.play(1)
    hand.mono = 1052.5
    assert stage.fresh()
    hand.mono = 1052.51
    assert not stage.fresh()


def test_looking_more_closely_shortens_no_belief(hand: HandClock) -> None:
    """A collector that asks every 2 s for a while is polled so, and believed as long as at its usual 15 s."""
    collector = Scripted(hand)
    stage = Stage(hand, collector)
    collector.interval = 2.0
    stage.play(3)
    assert collector.asked == [1000, 1002]
    assert stage.state().interval == 2
    assert stage.state().good_until == 1002 + 3.5 * 15


def test_a_stretched_interval_is_believed_for_as_long_as_it_is_stretched(hand: HandClock) -> None:
    """A collector that the duty allows once in 100 s does not flicker in between."""
    stage = Stage(hand, Scripted(hand, (Act(1),)), duty=0.01)
    stage.play(1)
    assert stage.state().good_until == 1000 + 350


def test_backoff_does_not_prolong_belief(hand: HandClock) -> None:
    """The pause after a failure is longer than what is left of the belief, which ends all the same."""
    stage = Stage(hand, Scripted(hand, (Act(), fails("timeout", cost=2))), duty=0.01)
    stage.play(17)
    assert stage.state().interval == 60
    hand.mono = 1052.5
    assert stage.fresh()
    hand.mono = 1052.51
    assert not stage.fresh()


def test_later_stretching_does_not_prolong_belief(hand: HandClock) -> None:
    """That another collector has become expensive changes nothing about a value that was taken before."""
    cheap = Scripted(hand, name="sizes", interval=60)
    stage = Stage(hand, Scripted(hand, (Act(), Act(1.9))), cheap, duty=0.01)
    stage.play(1)
    before = stage.state("sizes").good_until
    stage.play(20)
    assert stage.state().interval > 90
    assert stage.state("sizes").good_until == before == 1000 + 3.5 * 60


def test_a_poll_that_never_ends_is_seen_by_its_age(hand: HandClock) -> None:
    """While a poll hangs past every deadline, its last values are withdrawn when their time is over."""
    seen: list[bool] = []

    def act(now: float) -> Act:
        for seconds in (37, 1) if now > 1000 else ():
            hand.pass_(seconds)
            seen.append(stage.fresh())
        return Act()

    stage = Stage(hand, Scripted(hand, act))
    stage.play(20)
    assert seen == [True, False]


def test_what_was_never_asked_is_neither_up_nor_fresh(hand: HandClock) -> None:
    """Before the first answer there is nothing to believe."""
    stage = Stage(hand, Scripted(hand))
    assert not stage.state().up
    assert not stage.fresh()
    assert stage.state().taken_at is None


def test_what_a_collector_withholds_is_not_shown(hand: HandClock) -> None:
    """An answer that may not be believed (a standby that is far behind) is a success without values."""
    note = Note("the standby is an hour behind", withholds=True)
    stage = Stage(hand, Scripted(hand, (Act(), Act(answer=(note,)), Act())))
    stage.play(16)
    assert stage.state().up
    assert not stage.fresh()
    assert stage.state().notes == (note.text,)
    stage.play(15)
    assert stage.fresh()
