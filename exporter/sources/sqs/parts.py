"""A question of many parts, of which each may fail alone."""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from threading import Thread
from typing import Generic, TypeVar

from ...errors import Reason, SourceError
from ...timing import Deadline

Part = TypeVar("Part")
Answer = TypeVar("Answer")
Place = TypeVar("Place")

MOST_TOLD = 10
LANES = 8  # parts that are asked for at once
TRIES = 3  # of one part in one poll
FIRST_PAUSE = 0.2  # seconds at most before the second round; twice that before the third
WORTH_A_TRY: tuple[Reason, ...] = ("throttled", "connect", "timeout")
ASKING = 0.9  # share of a poll's time for requests: what was answered by then must not come too late
FAIR = 6  # who has had less than a sixth of it is not to blame for a timeout
ONE = 3  # what is left of that time is shared among so many, so that one without an answer leaves some for the next


class Asker(Generic[Part]):
    """
    Asks for all parts of a question, poll after poll, some of them at once.

    Everybody is asked once before anybody is asked again, so those who are throttled take no
    time from the others. Who failed at the last poll comes last, who was not reached comes first.
    """

    def __init__(
        self,
        roll: Callable[[], float] = random.random,
        rest: Callable[[float], object] = time.sleep,
        lanes: int = LANES,
    ) -> None:
        self.roll, self.rest, self.lanes = roll, rest, lanes
        self.asked: dict[Part, None] = {}  # the one asked last at the end
        self.failed: set[Part] = set()  # when they were asked last

    def each(
        self,
        parts: Iterable[Part],
        ask: Callable[[Part, Deadline], Answer],
        deadline: Deadline,
        first: Container[Part] = (),
    ) -> tuple[dict[Part, Answer], dict[Part, SourceError]]:
        """
        The answer of each part that has one, and why the others have none; the parts in `first` before others.

        Between two rounds lies a random pause, so that those who were throttled together do not
        come back together. Who is not reached before the deadline has failed; what was answered
        until then stands. Raises `SourceError` at once if it says that nobody else would get an
        answer either.
        """
        order = turns = self._in_order(parts, first)
        poll = Poll[Part, Answer](ask, deadline)
        for attempt in range(TRIES):
            turns = self._round(turns, poll)
            pause = self.roll() * FIRST_PAUSE * 2**attempt
            if not turns or attempt + 1 == TRIES or pause >= deadline.at - deadline.mono():
                break
            self.rest(pause)
        answers, failures = poll.answers, poll.failures
        return (
            {part: answers[part] for part in order if part in answers},
            {part: failures[part] for part in order if part in failures},
        )

    def _in_order(self, parts: Iterable[Part], first: Container[Part]) -> list[Part]:
        wanted = dict.fromkeys(parts)
        self.asked = {part: None for part in self.asked if part in wanted}
        turn = {part: number for number, part in enumerate(self.asked, 1)}
        self.failed &= wanted.keys()
        return sorted(wanted, key=lambda part: (part in self.failed, part not in first, turn.get(part, 0)))

    def _round(self, turns: Sequence[Part], poll: Poll[Part, Answer]) -> list[Part]:
        """Ask each once, and note what comes of it. Those that are worth another try, in their order."""
        waiting, poll.again, poll.reached = deque(turns), set(), set()
        lanes = [
            Thread(target=self._lane, args=(waiting, poll), name="aws-lane", daemon=True)  # an end waits for no answer
            for _ in range(min(self.lanes, len(turns)) - 1)
        ]
        for lane in lanes:
            lane.start()
        self._lane(waiting, poll)
        for lane in lanes:
            lane.join()
        for part in turns:  # in their order, whichever lane was faster
            if part in poll.reached:
                self.asked[part] = self.asked.pop(part, None)
        if poll.everybodys:
            raise poll.everybodys
        for part in turns:
            if part not in poll.answers:  # a lane that broke off; the log says why
                poll.failures.setdefault(part, SourceError("unexpected", "the asking broke off"))
        return [part for part in turns if part in poll.again]

    def _lane(self, waiting: deque[Part], poll: Poll[Part, Answer]) -> None:
        """Ask one after the other, until nobody waits."""
        while not poll.everybodys:
            try:
                part = waiting.popleft()
            except IndexError:
                return
            self._turn(part, poll)

    def _turn(self, part: Part, poll: Poll[Part, Answer]) -> None:
        """Ask one, for its share of the time, and note what comes of it."""
        given = poll.left() / ONE
        if given <= 0:
            poll.failures.setdefault(part, SourceError("timeout", "there was no time to ask"))
            self.failed.discard(part)
            return
        share = Deadline(poll.deadline.mono() + given, poll.deadline.mono)
        try:
            poll.answers[part] = poll.ask(part, share)
        except SourceError as failure:
            if failure.unreachable:
                poll.everybodys = failure
                return
            poll.failures.setdefault(part, failure)
            if failure.reason == "timeout" and given < poll.fair:
                return
            self.failed.add(part)
            if failure.reason in WORTH_A_TRY and share.mono() < share.at:  # else it had its time
                poll.again.add(part)
        else:
            poll.failures.pop(part, None)
            self.failed.discard(part)
        poll.reached.add(part)


class Poll(Generic[Part, Answer]):
    """What comes of asking for all parts once."""

    def __init__(self, ask: Callable[[Part, Deadline], Answer], deadline: Deadline) -> None:
        self.ask, self.deadline = ask, deadline
        self.answers: dict[Part, Answer] = {}
        self.failures: dict[Part, SourceError] = {}
        self.again: set[Part] = set()  # of this round
        self.reached: set[Part] = set()  # in this round
        self.everybodys: SourceError | None = None  # a failure that nobody would be spared
        self.fair = self.left() / FAIR  # seconds

    def left(self) -> float:
        """Seconds until the deadline; below zero after it."""
        return self.deadline.at - self.deadline.mono()


def whole(failures: Sequence[SourceError], *, everywhere: bool = False) -> SourceError:
    """The failure of a question of which every part has failed; `everywhere`: a question to every place."""
    others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    refused = everywhere and all(failure.reason == "auth" for failure in failures)
    return SourceError(failures[0].reason, f"{failures[0]}{others}", unreachable=refused)


def told(failures: Sequence[SourceError]) -> Iterator[SourceError]:
    """The failures of parts, each to be counted; the first few are named, as nobody reads a thousand lines."""
    yield from failures[:MOST_TOLD]
    rest = failures[MOST_TOLD:]
    more = Counter(failure.reason for failure in rest)
    for failure in rest:
        yield SourceError(failure.reason, f"{more[failure.reason]} more")


def of(part: str, failure: SourceError) -> SourceError:
    """A failure of a part, with its name; one that is not of this part alone as it is."""
    return failure if failure.unreachable else SourceError(failure.reason, f"{part}: {failure}")


def batches(each: Iterable[Part], place: Callable[[Part], Place], most: int) -> list[tuple[Place, tuple[Part, ...]]]:
    """Those that one request may ask for, so many at most, and where each request goes."""
    by_place: dict[Place, list[Part]] = {}
    for part in each:
        by_place.setdefault(place(part), []).append(part)
    return [
        (there, tuple(together[first : first + most]))
        for there, together in by_place.items()
        for first in range(0, len(together), most)
    ]


def asking(deadline: Deadline, share: float = ASKING) -> Deadline:
    """The time for requests, a share of what is left. Raises `SourceError` if nothing is."""
    return Deadline(deadline.mono() + share * deadline.left(), deadline.mono)
