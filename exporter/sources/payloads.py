"""
What a job's payload says of itself, as far as one can read it: its class and its timeout.

Laravel writes JSON around an object that PHP has serialised. That object may hold megabytes, so
only the beginning of a payload is read, and understood as far as it goes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

READ = 1024  # characters: `data` begins at 200 to 300, so that what is asked for here lies well within
CLASS = re.compile(r"[^\W\d]\w*(\\[^\W\d]\w*)*")
LONGEST = 255  # characters of a class; a longer name is no class that anybody wrote
DECODER = json.JSONDecoder()
SPACE = " \t\n\r"


class Payload(NamedTuple):
    """As much of a job's payload as we need. A payload that is none of Laravel's says nothing."""

    job_class: str | None
    timeout: float | None  # seconds, 0 for none at all; None where the worker's own applies


def read(beginning: str) -> Payload:
    """
    The job that this payload, or its beginning, belongs to.

    `displayName` is what Laravel shows, but a job may put anything there: where it is no class
    (a closure, a command, a text with an id in it), `commandName` is.
    """
    fields = members(beginning)
    data = fields.get("data")
    names = (fields.get("displayName"), data.get("commandName") if isinstance(data, dict) else None)
    timeout = fields.get("timeout")
    return Payload(
        next((name for name in names if is_class(name)), None),
        timeout if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout >= 0 else None,
    )


def is_class(name: object) -> bool:
    """Whether this could be the name of a PHP class."""
    return isinstance(name, str) and len(name) <= LONGEST and CLASS.fullmatch(name) is not None


def members(text: str) -> dict[str, Any]:
    """The members of the JSON object at the start of a text that may break off, of objects in it as well."""
    return _members(text, 0)


def _members(text: str, at: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        at = _past(text, at, "{")
        while True:
            name, at = DECODER.raw_decode(text, _past(text, at))
            at = _past(text, _past(text, at, ":"))
            try:
                value, at = DECODER.raw_decode(text, at)
            except ValueError:
                if text[at : at + 1] == "{":
                    found[str(name)] = _members(text, at)
                return found  # what comes after a value that breaks off is not there either
            if at == len(text):  # the end of a number may be missing
                return found
            found[str(name)] = value
            at = _past(text, at, ",")
    except (ValueError, RecursionError):
        return found


def _past(text: str, at: int, sign: str = "") -> int:
    """Where the text goes on after this sign, and white space around it. Raises `ValueError` if it is not there."""
    while text[at : at + 1] in SPACE and at < len(text):
        at += 1
    if not text.startswith(sign, at):
        raise ValueError(sign)
    return at + len(sign)
