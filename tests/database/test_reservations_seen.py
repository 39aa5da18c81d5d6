"""How many second hand-outs are seen: the real loop at its own pace, over hours that pass by hand."""

from __future__ import annotations

from random import Random

import pytest

from ..world import watched
from .holding import Db, long, repeated
from .timeline import TickingClock, Timeline

RUNS = 20


@pytest.mark.parametrize(
    ("retry_after", "interval", "share"),
    [(90, 15, 0.9), (30, 15, 0.9), (10, 5, 0.9), (10, 15, 0.5)],
    ids=["the defaults", "a short retry_after", "both short", "shorter than the interval"],
)
def test_second_hand_outs_that_are_seen(dsn18: str, db18: Db, retry_after: int, interval: int, share: float) -> None:
    """
    Of jobs that run 5 s past retry_after nine in ten are seen when a second worker takes them.

    At the default interval, and whenever retry_after is longer than the interval: a job is seen
    in a pass before it is handed out again, and from then on watched. Where it is shorter, a
    part is first seen when it is too late, so half is all that is promised.
    """
    hand, chance = TickingClock(), Random(retry_after)
    timeline, when = Timeline(hand, db18), 60.0
    for _ in range(RUNS):
        timeline.double_run(when, retry_after)
        when += retry_after + chance.uniform(10, 50)
    timeline.at(when + 60, lambda: None)
    with watched(dsn18, hand.clock, retry_after=retry_after, interval=interval) as app:
        timeline.run(app)
        seen = repeated(app) or 0
        assert share * RUNS <= seen <= RUNS
        if share == 0.9:
            assert RUNS <= (long(app) or 0) <= 2 * RUNS
