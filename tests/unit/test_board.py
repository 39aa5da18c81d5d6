"""Where pollers and readers meet."""

from __future__ import annotations

from collections.abc import Collection
from threading import Event, Thread

from exporter.board import Board, Key, State, shown
from exporter.source import Join, Joined

from .scripted import THINGS

A, B = Key("database", "jobs"), Key("database", "sizes")


def test_what_was_read_never_changes() -> None:
    """A reader works on the states of one moment, whatever is published meanwhile."""
    board = Board()
    board.publish({A: State(15, 15, polls=1)})
    read = board.read()
    board.publish({A: State(15, 15, polls=2), B: State(60, 60)})
    assert read == {A: State(15, 15, polls=1)}
    assert board.read() == {A: State(15, 15, polls=2), B: State(60, 60)}


def test_others_stay_when_one_is_published() -> None:
    """A collector replaces its own state and nobody else's."""
    board = Board()
    board.publish({A: State(15, 15), B: State(60, 60)})
    board.publish({B: State(60, 60, polls=1)})
    assert board.read()[A] == State(15, 15)


def test_readers_are_told_after_the_fact() -> None:
    """Whoever subscribed finds the new state on the board when called."""
    board = Board()
    seen: list[int] = []
    board.subscribe(lambda: seen.append(board.read()[A].polls))
    board.publish({A: State(15, 15, polls=1)})
    board.publish({A: State(15, 15, polls=2)})
    assert seen == [1, 2]


def test_states_published_together_are_seen_together() -> None:
    """No reader ever finds one of two states that belong together without the other."""
    board, done = Board(), Event()

    def publish() -> None:
        for n in range(5000):
            board.publish({A: State(15, 15, polls=n), B: State(60, 60, polls=n)})
        done.set()

    board.publish({A: State(15, 15), B: State(60, 60)})
    writer = Thread(target=publish)
    writer.start()
    torn = 0
    while not done.is_set():
        states = board.read()
        torn += states[A].polls != states[B].polls
    writer.join()
    assert torn == 0


def test_belief_needs_youth_and_no_second_failure() -> None:
    """Values are shown until they are too old or a second poll in a row has failed; up is about the last poll."""
    state = State(15, 15, (THINGS(1, "a"),), polls=3, good_until=100)
    assert (state.up, state.fresh(100), state.fresh(100.1)) == (True, True, False)
    once = State(15, 30, state.samples, polls=4, streak=1, good_until=100)
    assert (once.up, once.fresh(100), once.fresh(100.1)) == (False, True, False)
    twice = State(15, 60, state.samples, polls=5, streak=2, good_until=100)
    assert (twice.up, twice.fresh(100)) == (False, False)


def test_what_is_joined_is_joined_within_its_source() -> None:
    """Two sources may call a collector alike: what follows from one's answer goes with it, whatever the other says."""
    asked: dict[str, list[set[str]]] = {"redis": [], "sqs": []}

    def join(source: str) -> Join:
        def joined(collectors: Collection[str]) -> Joined:
            asked[source].append(set(collectors))
            return Joined()

        return joined

    board = Board((), {source: join(source) for source in asked})
    board.publish({Key("redis", "queues"): State(15, 15, good_until=100), Key("sqs", "queues"): State(15, 15)})
    shown(board, board.read(), 50)
    assert asked == {"redis": [{"queues"}], "sqs": [set()]}
