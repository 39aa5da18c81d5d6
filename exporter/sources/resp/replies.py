"""How replies of a Redis are read. Arithmetic only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite, nan
from typing import Any

from ...errors import SourceError

SILENT = 15  # seconds without a word of its master after which a replica tells the past: a master pings every 10 s

Reply = Any  # bytes, a number, None, a list of these; a SourceError where one command failed alone


def answered(reply: Reply) -> Reply:
    """The reply, if it is none of failure: raises the `SourceError` that it is."""
    if isinstance(reply, SourceError):
        raise reply
    return reply


def keyed(commands: Sequence[tuple[object, ...]], replies: Sequence[Reply]) -> list[Reply]:
    """The replies; a failure among them says of which key it is."""
    return [
        SourceError(reply.reason, f"key {command[1]!r}: {reply}") if isinstance(reply, SourceError) else reply
        for command, reply in zip(commands, replies, strict=True)
    ]


def failures(replies: Iterable[Reply]) -> Iterator[SourceError]:
    """Those replies that are none."""
    return (reply for reply in replies if isinstance(reply, SourceError))


def pairs(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Members and their scores, which come one after the other."""
    return zip(items[::2], items[1::2], strict=True)


def number(text: str | bytes | None) -> float | None:
    """The number that a text says; None where there is none."""
    try:
        found = float(text) if text is not None else nan
    except ValueError:
        return None
    return found if isfinite(found) else None


def info(reply: Reply) -> dict[str, str]:
    """What INFO says, by name. Raises `SourceError`."""
    lines = answered(reply).decode(errors="replace").splitlines()
    return {name: value for name, found, value in (line.partition(":") for line in lines) if found}


def of_the_past(replication: Reply) -> str:
    """
    Why a replica's data may not be shown, if so: without its master it goes on telling the past.

    That of one that hangs is known by its silence a minute before Redis itself takes the link for broken.
    """
    says = info(replication)
    if says.get("master_link_status", "up") != "up":
        down = says.get("master_link_down_since_seconds", "?")
        return f"the replica has had no connection to its master for {down} s"
    silent = number(says.get("master_last_io_seconds_ago")) or 0
    return f"the replica has heard nothing of its master for {silent:.0f} s" if silent > SILENT else ""
