"""A question of many parts, of which each may fail alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ...errors import SourceError
from ...timing import Deadline

Part = TypeVar("Part")
Answer = TypeVar("Answer")

MOST_TOLD = 10
ASKING = 0.9  # share of a poll's time for requests: what was answered by then must not come too late
ONE = 3  # what is left of that time is shared among so many, so that one without an answer leaves some for the next


def each(
    parts: Iterable[Part], ask: Callable[[Part, Deadline], Answer], deadline: Deadline
) -> tuple[dict[Part, Answer], list[SourceError]]:
    """
    The answer for each part that has one, and why the others have none.

    Raises `SourceError` at once if it says that nobody else would get an answer either.
    """
    answers: dict[Part, Answer] = {}
    failures: list[SourceError] = []
    for part in parts:
        try:
            answers[part] = ask(part, deadline.share(ONE))
        except SourceError as failure:
            if failure.unreachable:
                raise
            failures.append(failure)
    return answers, failures


def whole(failures: Sequence[SourceError]) -> SourceError:
    """The failure of a question of which every part has failed."""
    others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return SourceError(failures[0].reason, f"{failures[0]}{others}")


def told(failures: Sequence[SourceError]) -> Iterator[SourceError]:
    """The failures of parts, the first few by name and all others together: nobody reads a thousand lines."""
    yield from failures[:MOST_TOLD]
    for reason, more in Counter(failure.reason for failure in failures[MOST_TOLD:]).items():
        yield SourceError(reason, f"{more} more")


def of(part: str, failure: SourceError) -> SourceError:
    """A failure of a part, with its name; one that is not of this part alone as it is."""
    return failure if failure.unreachable else SourceError(failure.reason, f"{part}: {failure}")


def asking(deadline: Deadline) -> Deadline:
    """The time for requests. Raises `SourceError` if there is none left."""
    return Deadline(deadline.mono() + ASKING * deadline.left(), deadline.mono)
