"""What the Laravel processes say of themselves: the truth that our numbers are compared with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..patience import until

Answer = TypeVar("Answer")


class Span(NamedTuple):
    """A stretch of time on the machine's monotonic clock, in seconds."""

    began: float
    ended: float


class Event(NamedTuple):
    """Something that a Laravel process did, at some moment of a span that it knows."""

    name: str
    span: Span
    pid: int
    facts: Mapping[str, Any]  # id, queue, attempts …, as `app/truth.php` gives them

    @property
    def id(self) -> Any:
        """The id of the job's row, or in Redis of the job."""
        given = self.facts["id"]
        return given if isinstance(given, str) and not given.isdecimal() else int(given)


class Truth:
    """The file in which all Laravel processes of one application log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def events(self, *names: str) -> list[Event]:
        """All events with one of these names so far."""
        whole, _, _ = self.path.read_text().rpartition("\n")  # somebody may be in the middle of a line
        lines = [json.loads(line) for line in whole.splitlines()]
        return [
            Event(line["event"], Span(line["after"], line["at"]), line["pid"], line)
            for line in lines
            if line["event"] in names
        ]

    def wait_for(self, name: str, number: int = 1, within: float = 15.0) -> list[Event]:
        """All events with this name, once there are so many."""
        until(lambda: len(self.events(name)) >= number, within)
        return self.events(name)


def timed(action: Callable[[], Answer]) -> tuple[Answer, Span]:
    """What the action answers, and while it ran."""
    began = time.monotonic()
    answer = action()
    return answer, Span(began, time.monotonic())


class Bounds(NamedTuple):
    """How many rows can have been in a state when somebody looked during a span."""

    least: int  # so many were in it all the time
    most: int  # so many were in it at some moment

    def __contains__(self, number: object) -> bool:
        return isinstance(number, float) and self.least <= number <= self.most


def bounds(entered: list[Event], left: list[Event], looked: Span) -> Bounds:
    """How many rows were in a state that these events begin and end."""
    ends = {event.id: event.span for event in left}
    never = Span(float("inf"), float("inf"))
    spans = [(event.span, ends.get(event.id, never)) for event in entered]
    least = sum(start.ended <= looked.began and looked.ended <= end.began for start, end in spans)
    most = sum(start.began <= looked.ended and looked.began <= end.ended for start, end in spans)
    return Bounds(least, most)
