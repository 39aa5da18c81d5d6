"""What PHP's `serialize` has written, read member by member without making anything of it."""

from __future__ import annotations

import re

MOST = 20_000  # values that are looked at; a job's object may hold megabytes of them
TOKEN = re.compile(rb'[sE]:(\d{1,9}):"|(O:\d{1,4}:"[^"]*":\d{1,9}:\{|a:\d{1,9}:\{)|(\})|([ibdrR]):([^;]{1,400});|N;')


def number(text: str, *path: str) -> int | None:
    """
    The whole number that a member of an object is; None where it is null or not there.

    `path` leads to it from the outermost object: an object within one has members of its own.
    Raises `ValueError` where it is something else, such as a date, or cannot be read, as of a
    text that is encrypted.
    """
    data, wanted = text.encode(errors="surrogatepass"), [name.encode() for name in path]
    if not data.startswith(b"O:"):
        raise ValueError("expected an object")
    at, names = 0, list[bytes | None]()  # of the members that we are in; None where a name comes next
    for _ in range(MOST):
        token = TOKEN.match(data, at)
        if token is None:
            break
        length, opens, closes, kind, plain = token.groups()
        at = token.end() + (int(length) + 2 if length else 0)
        if opens:
            if names == wanted:
                break
            names.append(None)
            continue
        if closes:
            names.pop()
            if not names:
                return None
        elif names[-1] is None:
            names[-1] = data[token.end() : at - 2] if length else token[0]
            continue
        elif names == wanted:
            return _whole(kind, plain, is_null=token[0] == b"N;")
        names[-1] = None
    raise ValueError("expected a number, in the first values of an object")


def _whole(kind: bytes | None, plain: bytes, *, is_null: bool) -> int | None:
    if is_null:
        return None
    if kind != b"i":
        raise ValueError("expected a whole number")
    return int(plain)
