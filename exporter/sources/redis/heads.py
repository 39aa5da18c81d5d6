"""
How long those who are first in line have been waiting, as far as that can be known. Arithmetic only.

A list has no times. A payload says when the job was dispatched, if Horizon or Laravel 12.11 wrote
it, and that is when it was queued only if it was never tried, and after the delay that it had. What
always holds: the line is first in, first out, so whoever was seen in it has waited since then at
least; and nobody has waited since before nothing was there to be taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...queues import EARLIEST, TEN_YEARS
from .. import payloads, serialised

HEAD = 10  # jobs at the head of the line that are looked at where the first one does not say since when it waits
ENOUGH = 256 * 1024  # bytes of them: a list cannot be asked for a part of a payload, and one may hold megabytes
AHEAD = 60  # seconds by which a PHP machine's clock may be ahead of Redis's; a time after that is none
MAIL = "Illuminate\\Mail\\SendQueuedMailable"  # its delay is that of the mail in it


class Line(NamedTuple):
    """What is known of the list of one queue."""

    since: float | None = None  # Unix time since when the first has been waiting, or later; None if not known
    idle_at: int = 0  # when nothing was there to be taken, the last time
    seen: Mapping[str, int] = {}  # ids at the head of the line, and when they were first seen there
    ask_for: int = 1  # jobs at the head of the line, the next time


def look(head: list[bytes], before: Line, now: int, *, is_idle: bool) -> Line:
    """What is known of the line, after it was looked at."""
    before_now = before.idle_at if before.idle_at <= now else 0  # else by another server's clock, before a failover
    idle_at = now if is_idle else before_now
    if not head:
        return Line(None, idle_at)
    first = job(head[0])
    if (queued := queued_at(first, now)) is not None:
        return Line(max(queued, idle_at), idle_at)
    jobs = [first, *map(job, head[1:])]
    seen = {id_: min(now, before.seen.get(id_, now)) for id_ in (str(job["id"]) for job in jobs if "id" in job)}
    times = [at for job in jobs if (at := queued_at(job, now)) is not None]
    times += [at for at in seen.values() if at < now]
    return Line(max(min(times), idle_at) if times else None, idle_at, seen, as_many(head, HEAD, ENOUGH))


def as_many(payloads: Sequence[bytes], most: int, enough: int) -> int:
    """How many payloads to ask for, the next time: as many of this size as come to `enough` bytes, but one at least."""
    return max(1, min(most, enough // max((1, *map(len, payloads)))))


def job(payload: bytes) -> dict[str, Any]:
    """What a payload says; one that is none of Laravel's says nothing."""
    return payloads.members(payload.decode(errors="replace"))


def queued_at(job: Mapping[str, Any], now: int) -> float | None:
    """
    When a job in line could first be taken, as its payload says: Unix time. None where that says nothing, or lies.

    After a try, and after a manual retry without Horizon, the times are those of the first
    dispatch. A delay that would not be over yet is that of an earlier dispatch, too.
    """
    if job.get("attempts") != 0:
        return None
    dispatched = time(job.get("pushedAt")) or time(job.get("createdAt"))
    if dispatched is None or dispatched > now + AHEAD:
        return None
    try:
        due = dispatched + delay(job)
    except ValueError:
        return None
    return due if due <= now else min(dispatched, now)


def time(value: object) -> float | None:
    """A Unix time that a job may have: Horizon writes it as text, Laravel as a number."""
    try:
        found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return None
    return found if found >= EARLIEST else None


def delay(job: Mapping[str, Any]) -> int:
    """
    Seconds for which the job was delayed when it was dispatched. Raises `ValueError` where nobody can know.

    Laravel writes them into the payload; Horizon leaves them out, so there its object is asked.
    """
    own = job.get("delay")
    if own is None and "pushedAt" in job:
        own = delay_of_object(job.get("data"))
    if own is None:
        return 0
    if isinstance(own, bool) or not isinstance(own, int) or own > TEN_YEARS:
        raise ValueError("expected seconds")
    return max(0, own)


def delay_of_object(data: object) -> int | None:
    """The same as the job's object says: its own delay, not that of a job in it. A mail that is sent later says it."""
    command = data.get("command") if isinstance(data, dict) else None
    if not isinstance(command, str):
        return None  # it is called by its name, and has no object
    own = serialised.number(command, "delay")
    is_mail = isinstance(data, dict) and data.get("commandName") == MAIL
    return serialised.number(command, "mailable", "delay") if own is None and is_mail else own
