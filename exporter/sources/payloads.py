"""
What a job's payload says of itself, as far as one can read it: its class and its timeout.

Laravel writes JSON around an object that PHP has serialised. That object may hold megabytes, so
only the beginning of a payload is read, and understood as far as it goes.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, NamedTuple, TypeGuard

READ = 1024  # characters: `data` begins at 200 to 300, so that what is asked for here lies well within
READ_REORDERED = 16 * READ  # the same where Redis wrote it anew, with its members in any order
WORD = r"[^\W\d]\w*"
CLASS = re.compile(rf"{WORD}(\\{WORD})*")
LONGEST = 255  # characters of a class; a longer name is no class that anybody wrote
LARGEST = 2**63  # beyond it PHP has no whole numbers
DECODER = json.JSONDecoder()
SPACE = re.compile(r"[ \t\n\r]*")


class Payload(NamedTuple):
    """As much of a job's payload as we need. One that is none of Laravel's says nothing."""

    job_class: str | None
    timeout: float | None  # seconds, 0 for none at all; None where the worker's own applies


def read(beginning: str) -> Payload:
    """
    The job that this payload, or its beginning, belongs to.

    `displayName` is what Laravel shows, but a job may put anything there: where it is no class
    (a closure, a command, a text with an id in it), `commandName` is. A single word may be any
    of these, so it is taken for a class only where `commandName` says the same.
    """
    fields = members(beginning)
    shown, data = fields.get("displayName"), fields.get("data")
    command = data.get("commandName") if isinstance(data, dict) else None
    job_class = None
    if is_class(shown) and "\\" in shown:
        job_class = shown
    elif "displayName" in fields and is_class(command):  # one that was cut off may have been the better name
        job_class = command
    return Payload(job_class, seconds(fields.get("timeout")))


def is_class(name: object) -> TypeGuard[str]:
    """Whether this could be the name of a PHP class."""
    return isinstance(name, str) and len(name) <= LONGEST and CLASS.fullmatch(name) is not None


def seconds(timeout: object) -> float | None:
    """
    The timeout that a worker makes of this; None if it is no number.

    Digits in a text (from an environment variable, say) count, and less than 0 is 0: PHP hands
    `max($timeout, 0)` to its alarm. Source: Worker::registerTimeoutHandler.
    """
    if isinstance(timeout, str) and re.fullmatch("[0-9]{1,10}", timeout):
        timeout = int(timeout)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not abs(timeout) <= LARGEST:
        return None
    return float(max(timeout, 0))


def members(text: str) -> dict[str, Any]:
    """
    The members of the JSON object that a text begins with, and of objects in it, as far as the text goes.

    What is cut in the middle is not there, so that a text never says anything else than a
    longer one: of two members of one name the first counts.
    """
    found: dict[str, Any] = {}
    with suppress(ValueError, RecursionError):  # it breaks off, is no JSON, or is nested too deeply for anybody
        _object(text, _past(text, 0), found)
    return found


def _object(text: str, at: int, found: dict[str, Any]) -> int:
    """Put the members of the object here into `found`. Returns where it ends; raises `ValueError` if it does not."""
    at = _past(text, at, "{")
    while not text.startswith("}", at):
        name, at = DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise ValueError("a member without a name")  # noqa: TRY004  # as the decoder raises
        at = _past(text, _past(text, at), ":")
        if text.startswith("{", at):
            inner: dict[str, Any] = {}
            found.setdefault(name, inner)
            at = _past(text, _object(text, at, inner))
        else:
            value, at = DECODER.raw_decode(text, at)
            at = _past(text, at)
            if text[at : at + 1] not in (",", "}"):
                raise ValueError("the end of a number may be missing")
            found.setdefault(name, value)
        if not text.startswith("}", at):
            at = _past(text, at, ",")
    return at + 1


def _past(text: str, at: int, sign: str = "") -> int:
    """Where the text goes on after this sign and white space. Raises `ValueError` if the sign is not there."""
    if not text.startswith(sign, at):
        raise ValueError(sign)
    return SPACE.match(text, at + len(sign)).end()  # type: ignore[union-attr]  # it matches nothing as well
