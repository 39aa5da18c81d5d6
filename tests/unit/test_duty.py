"""What a source may cost the far side, over simulated hours: one per cent while it answers, little while it fails."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ..world import HandClock
from .scripted import Act, Scripted, Stage, fails

HOUR = 3600.0
DUTY = 0.01
TIMEOUT = 2.0


@pytest.fixture
def hand() -> HandClock:
    """A clock that only the test moves."""
    return HandClock()


def four(hand: HandClock, act: Callable[[str, float], Act]) -> list[Scripted]:
    """Collectors as a database has them; `act` says what one meets at a time."""

    def follow(name: str) -> Callable[[float], Act]:
        return lambda now: act(name, now)

    intervals = {"jobs": 15.0, "statistics": 15.0, "activity": 15.0, "sizes": 60.0}
    return [Scripted(hand, follow(name), name, interval) for name, interval in intervals.items()]


def busy(stage: Stage) -> float:
    """Seconds that all polls together kept the far side busy."""
    return sum(state.busy for state in stage.board.read().values())


@pytest.mark.parametrize("cost", [0.001, 0.05, 0.3, 1.9])
def test_slow_questions_take_one_per_cent(hand: HandClock, cost: float) -> None:
    """However slow all its questions are, a database gives us one per cent of a day, and one first poll of each."""
    stage = Stage(hand, *four(hand, lambda name, now: Act(cost)), duty=DUTY)
    stage.play(24 * HOUR)
    assert busy(stage) <= DUTY * 24 * HOUR + 4 * cost


NINE = ("jobs", "reservations", "failed_jobs", "statistics", "activity", "sizes", "locks", "signals", "pop")


def nine(hand: HandClock, **costs: float) -> list[Scripted]:
    """Collectors as a database has them while jobs that are held for long are looked at every 2 s."""
    intervals = {"reservations": 2.0, "sizes": 60.0}
    return [Scripted(hand, (Act(costs.get(name, 0.005)),), name, intervals.get(name, 15.0)) for name in NINE]


def test_looking_every_two_seconds_stays_within_the_duty(hand: HandClock) -> None:
    """With answers that take 5 ms each, all nine keep their pace, a look every 2 s included, and take less than 1 %."""
    stage = Stage(hand, *nine(hand), duty=DUTY)
    stage.play(HOUR)
    assert busy(stage) <= DUTY * HOUR
    assert stage.state("reservations").polls >= HOUR / 2 - 20  # now and then another is asked first
    assert stage.state().polls == HOUR / 15


@pytest.mark.parametrize("cost", [0.02, 0.3, 1.9])
def test_looking_every_two_seconds_costs_the_jobs_nothing(hand: HandClock, cost: float) -> None:
    """Where a look takes long, looks come less often; where the jobs take long, looks get what is kept for them."""
    stage = Stage(hand, *nine(hand, reservations=cost), duty=DUTY)
    stage.play(2 * HOUR)
    assert busy(stage) <= DUTY * 2 * HOUR + 9 * cost
    assert stage.state().polls == 2 * HOUR / 15
    slow = Stage(hand, *nine(hand, jobs=cost), duty=DUTY)
    slow.play(2 * HOUR)
    assert busy(slow) <= DUTY * 2 * HOUR + 9 * cost
    assert slow.state("reservations").polls > 2 * HOUR / 30


def test_the_jobs_question_keeps_its_pace_while_others_are_slow(hand: HandClock) -> None:
    """Slow sizes and statistics cost the jobs question nothing; they come less often, but they come."""
    stage = Stage(hand, *four(hand, lambda name, now: Act(0.1 if name == "jobs" else 1.0)), duty=DUTY)
    stage.play(2 * HOUR)
    assert stage.state().polls == 2 * HOUR / 15
    assert all(4 <= stage.state(name).polls <= 20 for name in ("statistics", "activity", "sizes"))


def test_a_database_that_becomes_slow_is_asked_less_at_once(hand: HandClock) -> None:
    """The first slow answer stretches the pause at once, and is paid for over the next four."""
    stage = Stage(hand, Scripted(hand, (Act(0.01), Act(1.5), Act(0.01))), duty=DUTY)
    pauses = stage.play(300)[2:]
    assert pauses[0] > 4 * stage.source.collectors[0].interval
    assert sum(pauses[:4]) >= 1.5 / DUTY
    assert [round(pause) for pause in pauses[4:]] == [15] * (len(pauses) - 4)


@pytest.mark.parametrize("seed", range(5))
def test_costs_that_jump_up_and_down_stay_near_the_duty(hand: HandClock, seed: int) -> None:
    """With a cost that nobody can foretell, each poll still pays for itself: one per cent, and one poll of each."""
    dice = random.Random(seed)
    stage = Stage(hand, *four(hand, lambda name, now: Act(dice.choice([0.001, 0.02, 1.9]))), duty=DUTY)
    stage.play(24 * HOUR)
    assert busy(stage) <= DUTY * 24 * HOUR + 4 * 1.9


@pytest.mark.parametrize("cost", [0.2, 1.0, TIMEOUT])
def test_a_database_on_which_every_question_fails_gives_two_seconds_a_minute(hand: HandClock, cost: float) -> None:
    """Not two seconds per collector: they take turns, and none is left out."""
    stage = Stage(hand, *four(hand, lambda name, now: fails("timeout", cost)), duty=DUTY)
    stage.play(HOUR)
    assert busy(stage) <= TIMEOUT * 60 + 4 * cost
    assert all(stage.state(turn.key.collector).polls >= 15 for turn in stage.poller.turns)


@pytest.mark.parametrize("timeout", [10.0, 60.0])
def test_a_longer_timeout_gives_failing_questions_no_more_time(hand: HandClock, timeout: float) -> None:
    """Two seconds a minute are the limit whatever the timeout is; such a source is seen healed later."""
    stage = Stage(hand, *four(hand, lambda name, now: fails("timeout", timeout)), duty=DUTY)
    stage.play(HOUR)
    assert busy(stage) <= TIMEOUT * 60 + 4 * timeout


def test_a_cheap_failure_does_not_pay_for_an_expensive_one(hand: HandClock) -> None:
    """That one question is refused at once gives another, which hangs, no retry before its minute is over."""
    jobs = Scripted(hand, (fails("timeout", TIMEOUT),))
    sizes = Scripted(hand, (Act(), fails("permission")), "sizes", 20)
    Stage(hand, jobs, sizes, duty=DUTY).play(100)
    assert jobs.asked == [1000, 1060]


def test_a_black_hole_gets_one_attempt_a_minute(hand: HandClock) -> None:
    """A connection that nobody answers costs one timeout a minute for all collectors together."""
    stage = Stage(hand, *four(hand, lambda name, now: fails("timeout", TIMEOUT, unreachable=True)), duty=DUTY)
    stage.play(HOUR)
    assert busy(stage) == 60 * TIMEOUT


@pytest.mark.parametrize("unreachable", [True, False])
def test_healing_is_seen_within_a_minute(hand: HandClock, unreachable: bool) -> None:
    """Half an hour of trouble over, every collector is up again within a minute and a few polls."""
    heals = hand.mono + HOUR / 2

    def act(name: str, now: float) -> Act:
        return Act(0.01) if now >= heals else fails("timeout", TIMEOUT, unreachable=unreachable)

    stage = Stage(hand, *four(hand, act), duty=DUTY)
    stage.play(HOUR / 2 + 65)
    assert all(state.up for state in stage.board.read().values())


def test_a_failing_collector_costs_the_others_nothing(hand: HandClock) -> None:
    """While the sizes wait behind an ALTER TABLE for hours, the jobs keep their pace."""
    stage = Stage(
        hand, *four(hand, lambda name, now: fails("timeout", 1.9) if name == "sizes" else Act(0.02)), duty=DUTY
    )
    stage.play(HOUR)
    assert stage.state("sizes").polls == 60
    assert all(stage.state(name).polls >= HOUR / 15 - 1 for name in ("jobs", "statistics"))


def test_a_question_slower_than_its_interval_leaves_the_others_their_turn(hand: HandClock) -> None:
    """Without any duty, one endless question after the other still lets the rest be asked."""
    stage = Stage(hand, Scripted(hand, (fails("timeout", 90),)), Scripted(hand, (Act(20),), "sizes"))
    stage.play(HOUR)
    assert stage.state("sizes").polls > 20
