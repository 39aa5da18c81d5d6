"""A question of many parts: who is asked when, how often, and for how long."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from exporter.errors import Reason, SourceError
from exporter.sources.sqs.parts import TRIES, Asker
from exporter.timing import Deadline

from ..world import HandClock, poll, state, value
from .cloud import World, about, error
from .watching import watch


class Far:
    """A far side of which each part takes its time and may fail."""

    def __init__(self, hand: HandClock) -> None:
        self.hand = hand
        self.asked: list[str] = []
        self.failures: dict[str, Reason] = {}
        self.takes: dict[str, float] = {}
        self.rests: list[float] = []
        self.asker = Asker[str](lambda: 0.5, self.rests.append, lanes=1)

    def ask(self, part: str, deadline: Deadline) -> str:
        """An answer, or a failure, after some time; a timeout if that is more than there is."""
        self.asked.append(part)
        takes = self.takes.get(part, 0.1)
        self.hand.pass_(min(takes, deadline.left()))
        if self.hand.mono >= deadline.at:
            raise SourceError("timeout", part)
        if reason := self.failures.get(part):
            raise SourceError(reason, part)
        return part.upper()

    def poll(self, parts: str, first: str = "", seconds: float = 9.0) -> tuple[str, str]:
        """Parts with an answer and those that failed, in the order of both."""
        self.asked.clear()
        deadline = Deadline(self.hand.mono + seconds, lambda: self.hand.mono)
        answers, failures = self.asker.each(parts, self.ask, deadline, first)
        return "".join(answers.values()), "".join(failure.reason[0] for failure in failures.values())


@pytest.fixture
def far(hand: HandClock) -> Far:
    """A far side that is well."""
    return Far(hand)


def test_everybody_is_asked_once_before_anybody_is_asked_again(far: Far) -> None:
    """Throttled ones are repeated in rounds, after pauses that double; what is denied is not repeated."""
    far.failures = {"a": "throttled", "b": "permission", "c": "throttled"}
    assert far.poll("abcd") == ("D", "tpt")
    assert "".join(far.asked) == "abcd" + "ac" * (TRIES - 1)
    assert far.rests == [0.1, 0.2]


def test_no_pause_outlasts_the_deadline(far: Far) -> None:
    """Where there is no time for a pause, the failures are told now."""
    far.failures = {"a": "throttled"}
    assert far.poll("a", seconds=0.4) == ("", "t")
    assert far.rests == [0.1]


def test_who_failed_comes_last_at_the_next_poll(far: Far) -> None:
    """Deaf ones take the time of those behind them once; then they stand behind all others."""
    far.takes = dict.fromkeys("abcdef", 100)
    assert far.poll("abcdefyz") == ("YZ", "tttttt")
    for _ in range(3):
        assert far.poll("abcdefyz")[0] == "YZ"
    assert far.asked[:2] == ["y", "z"]
    far.takes = dict.fromkeys("abcdefghijkl", 100)
    polls = [far.poll("abcdefghijklz")[0] for _ in range(5)]
    assert polls[-3:] == ["Z", "Z", "Z"]
    far.takes = {}
    assert set(far.poll("abcdefghijklz")[0]) == set("ABCDEFGHIJKLZ")


def test_a_part_that_had_its_time_is_not_asked_again(far: Far) -> None:
    """A deaf one is left behind once a poll, not once a round."""
    far.takes = {"a": 100}
    assert far.poll("ab") == ("B", "t")
    assert "".join(far.asked) == "ab"


def test_whom_there_was_no_time_for_comes_first(far: Far) -> None:
    """With time for a part of them only, all are asked in turns, and one that is named first each time."""
    far.takes = dict.fromkeys("abcdefghij", 0.5)
    seen = Counter[str]()
    for _ in range(6):
        answered, _failed = far.poll("abcdefghij", "j", seconds=3.5)
        assert answered[0] == "J"
        assert 3 <= len(answered) <= 6
        seen.update(answered)
    assert set(seen) == set("ABCDEFGHIJ")


def test_throttled_queues_hide_none(world: World) -> None:
    """Of ninety throttled queues and a healthy one behind them, the healthy one is shown at the first poll."""
    world.queue("zebra", 1)
    world.cloud.mood = about("GetQueueAttributes", "/t", error("ThrottlingException"))
    queues: dict[str, Any] = {f"t{number:02}": {} for number in range(90)} | {"zebra": {}}
    with watch(world, queues=queues, timeout="10s") as app:
        poll(app, "queues", source="sqs")
        assert value(app, "jobs", queue="zebra", state="ready") == 1
        assert state(app, "queues", "sqs").up


def test_who_failed_stands_behind_all_others_also_if_named(far: Far) -> None:
    """Being named brings a part before others that are well; a failure at the last poll brings it behind all."""
    far.failures = {"a": "permission"}
    far.poll("abc", "a")
    far.poll("abc", "ac")
    assert "".join(far.asked) == "cba"


def test_no_rest_outlasts_the_poll(far: Far) -> None:
    """Where a pause would end after the deadline, nobody rests."""
    far.failures = {"a": "throttled"}
    far.poll("a", seconds=0.19)
    assert far.rests == []
