"""What every source and collector must keep to while its far side does not answer, or refuses."""

from __future__ import annotations

import logging
import time

import pytest

from exporter.board import Board, State
from exporter.errors import SourceError
from exporter.logs import Line, Secrets
from exporter.poller import Poller
from exporter.source import Collector
from exporter.timing import Deadline

from ..patience import until
from .conftest import OpenIn
from .far_sides import FarSide, Mood, patience

SLACK = 1.0  # seconds that a busy machine may need to notice that the time is over
MOODS: tuple[Mood, ...] = ("refusing", "deaf", "babbling", "denying")


def failure(collector: Collector[object], timeout: float) -> SourceError | None:
    """How a collector fails; None if it does not. Anything but a `SourceError` fails the test."""
    try:
        collector.fetch(Deadline(time.monotonic() + timeout))
    except SourceError as error:
        return error
    return None


def polled(poller: Poller) -> dict[str, State]:
    """The states of all collectors after everybody was polled once, or an unreachable source once for all."""
    poller.poll_all()
    return {key.collector: state for key, state in poller.board.read().items()}


@pytest.mark.parametrize("mood", MOODS)
def test_each_collector_fails_by_name_and_in_time(far_side: FarSide, open_in: OpenIn, mood: Mood) -> None:
    """
    Refused, deaf, babbling or denied: each collector says which, and one that asks nobody goes on.

    A deaf socket costs the time of one poll and no more.
    """
    works = far_side.asking_nobody | (far_side.allowed_meanwhile if mood == "denying" else set())
    for collector in open_in(mood).source.collectors:
        began = time.monotonic()
        error = failure(collector, patience(mood))
        assert time.monotonic() - began < patience(mood) + SLACK, collector.name
        assert (error.reason if error else None) == (None if collector.name in works else far_side.reasons[mood])


def test_a_far_side_that_falls_silent_is_a_timeout(far_side: FarSide, open_in: OpenIn) -> None:
    """A connection that has answered before and then swallows everything costs the time of one poll, and no more."""
    opened = open_in("well")
    for collector in opened.source.collectors:
        collector.fetch(Deadline(time.monotonic() + 5))
    opened.hush()
    for collector in opened.source.collectors:
        began = time.monotonic()
        error = failure(collector, 0.2)
        assert time.monotonic() - began < 0.2 + SLACK, collector.name
        assert (error.reason if error else None) == (None if collector.name in far_side.asking_nobody else "timeout")


@pytest.mark.parametrize("mood", MOODS)
def test_failures_are_told_without_a_secret(open_in: OpenIn, mood: Mood, caplog: pytest.LogCaptureFixture) -> None:
    """A failure has a message of one line, and no spelling of a secret is in it or in a log at any level."""
    caplog.set_level(logging.DEBUG)
    opened = open_in(mood)
    failed = [state for state in polled(Poller(opened.source, Board())).values() if state.reason]
    assert failed
    assert all(state.error and state.error.isprintable() for state in failed)
    lines = [Line("logfmt", Secrets()).format(record) for record in caplog.records]
    told = [*lines, *(state.error for state in failed)]
    assert not [text for text in told for secret in opened.secrets if secret in text]


def test_a_far_side_that_is_gone_is_asked_once(
    far_side: FarSide, open_in: OpenIn, caplog: pytest.LogCaptureFixture
) -> None:
    """When there is no connection, the first collector's failure stands for all that need the same one."""
    states = polled(Poller(open_in("refusing").source, Board()))
    assert all(state.polls == 1 for state in states.values())
    assert {name for name, state in states.items() if not state.up} == set(states) - far_side.asking_nobody
    assert len(caplog.records) == 1 + len(far_side.with_a_server_of_their_own)  # one attempt, one line


def test_a_far_side_that_goes_away_is_noticed(far_side: FarSide, open_in: OpenIn) -> None:
    """Two polls after the far side has gone, nothing is shown of any collector that needs it."""
    opened = open_in("well")
    poller = Poller(opened.source, Board())
    until(lambda: all(state.up for state in polled(poller).values()))  # on a busy machine the first answer may be late
    opened.leave()
    for turn in poller.turns * 2:
        poller.poll(turn)
    shown = {key.collector for key, state in poller.board.read().items() if state.fresh(time.monotonic())}
    assert shown == far_side.asking_nobody
