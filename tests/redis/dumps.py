"""
Dumps of a real Horizon's keys, on Laravel 12 and 13, put back into a real Redis as if they had been made just now.

A dump shows of a long collection only the first members, and of a long payload only its beginning:
what is missing is made up from what is there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import redis

from .world import payload

HERE = Path(__file__).parent
HEADING = re.compile(r"^===== (\w): .*unix (\d+)\)")
KEY = re.compile(r"^db(\d+) (\w+) +ttl=(-?\d+) (.*)$")
QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")
SCORED = re.compile(rf"\(({QUOTED.pattern}), (-?[\d.]+)\)")
TIME = re.compile(r"(?<!\d)1796\d{6}(?!\d)")  # as all dumps were made within some days
PAIR = re.compile(r"'((?:[^'\\]|\\.)*)': '((?:[^'\\]|\\.)*)'")


class Key(NamedTuple):
    """A key as the dump shows it."""

    name: str
    kind: str
    ttl: int
    value: str


def dump(version: int, section: str, now: int) -> Iterator[Key]:
    """What a section of the dump of this version of Laravel shows: A running, B paused, D just killed."""
    lines = (HERE / f"horizon-laravel{version}.txt").read_text().splitlines()
    here, passed = "", 0
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if heading := HEADING.match(line):
            here, passed = heading[1], now - int(heading[2])
        elif line.startswith("## "):
            here = ""  # what comes is of another moment
        elif here == section and (found := KEY.match(line)):
            yield Key(found[4], found[2], int(found[3]), later(below.strip(), passed))


def later(text: str, seconds: int) -> str:
    """The text with all times in it later by so much."""
    return TIME.sub(lambda time: str(int(time[0]) + seconds), text)


def members(key: Key) -> list[Any]:
    """The members of a collection: those that are shown whole, and as many more as it had."""
    count = int(key.value[1:].partition(",")[0])
    if key.kind == "zset":
        pairs = [(ast.literal_eval(text), float(score)) for text, score in SCORED.findall(key.value)]
        return [*pairs, *((f"more-{n}", pairs[-1][1]) for n in range(count - len(pairs)))]
    shown = [ast.literal_eval(text) for text in QUOTED.findall(key.value)]
    return [*shown, *(payload() for _ in range(count - len(shown)))]


def put_back(version: int, section: str, client: redis.Redis) -> None:
    """Make the keys again, with what was left of their time to live."""
    for key in dump(version, section, client.time()[0]):
        match key.kind:
            case "hash" if fields := dict(PAIR.findall(key.value)):
                client.hset(key.name, mapping={name: ast.literal_eval(f"'{text}'") for name, text in fields.items()})
            case "zset" if SCORED.search(key.value):
                client.zadd(key.name, dict(members(key)))
            case "list":
                client.rpush(key.name, *members(key))
            case "set":
                client.sadd(key.name, *members(key))
            case "string":
                client.set(key.name, key.value)
        if key.ttl > 0:
            client.expire(key.name, key.ttl)
