"""Ten thousand polls leave the process as it was."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading

import pytest

from exporter.exposition import Exposition

from ..world import HandClock
from .scripted import THINGS, Act, Scripted, Stage, fails

POLLS = 10_000
MARGIN = 500  # blocks of memory, for what the interpreter keeps for itself


def footprint() -> tuple[int, int, int]:
    """Blocks of memory in use, threads, open descriptors."""
    gc.collect()
    return sys.getallocatedblocks(), threading.active_count(), len(os.listdir("/proc/self/fd"))


def test_ten_thousand_polls_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """Memory, threads and descriptors do not grow while polls succeed and fail and the page is read."""
    caplog.set_level(logging.CRITICAL)  # the test's own capture would keep every line
    hand = HandClock()
    answer = Act(answer=tuple(THINGS(n, str(n)) for n in range(5)))
    jobs = Scripted(hand, lambda now: answer if now % 3 else fails("timeout", message=f"no answer at {now}"))
    stage = Stage(hand, jobs)
    exposition = Exposition(stage.board, hand.clock)
    (turn,) = stage.poller.turns

    def polls(times: int) -> tuple[int, int, int]:
        for _ in range(times):
            stage.poller.poll(turn)
            hand.pass_(1)
        jobs.asked.clear()
        exposition.page("text")
        return footprint()

    before, after = polls(100), polls(POLLS)
    assert after[0] - before[0] < MARGIN
    assert after[1:] == before[1:]
    assert turn.state.polls == POLLS + 100
