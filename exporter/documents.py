"""A YAML file in, plain data out: mappings, lists, texts and None, every complaint at once, each with its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

MOST_BYTES = 256 * 1024
MOST_VALUES = 50_000  # aliases can make many values of few bytes
VARIABLE = re.compile(r"\$\{(\w+)(:-([^${}]*))?\}")
TAG = "tag:yaml.org,2002:"
RESOLVED = (f"{TAG}null", f"{TAG}merge")

At = tuple[str | int, ...]  # a setting's path


class Complaint(NamedTuple):
    """What is expected of one setting. Never says its value, which may be a secret."""

    at: At
    text: str

    def __str__(self) -> str:
        path = ".".join(_word(str(part)) for part in self.at)
        return f"{path}: {self.text}" if path else self.text


def _word(part: str) -> str:
    """A part of a path as one word on one line, whatever is in it."""
    short = part if len(part) <= 60 else f"{part[:60]}…"
    return short if re.fullmatch(r"[\w.…-]+", short) else repr(short)


class Loader(yaml.SafeLoader):
    """Leaves all but null as it is written: a queue called 123, on or 2024-01-01 is called that."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # as in the class above
        first: [resolver for resolver in resolvers if resolver[0] in RESOLVED]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def text(path: Path, most: int = MOST_BYTES) -> str:
    """The text in a file. Raises `ValueError`, which does not say the path: somebody may have put a secret there."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        found = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("expected a file of UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"expected a readable file: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > most:
        raise ValueError(f"expected a file of at most {most // 1024} KiB")
    return found


def read(path: Path, env: Mapping[str, str] | None = None) -> tuple[Any, list[Complaint]]:
    """
    What a YAML file says, and what is wrong with single values of it.

    `${NAME}` and `${NAME:-default}` are taken from `env` after the YAML was read, so a value
    stays one value; without `env` they are left alone. Raises `ValueError` if nothing can be read.
    """
    reader = Reader(env)
    try:
        node = yaml.compose(text(path), Loader)
        return None if node is None else reader.value(node, ()), reader.complaints
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        problem = re.sub(r" ?'.*'", "", error.problem or "")  # what it quotes may be a piece of a secret
        raise ValueError(f"line {line}: expected YAML: {problem} (is there something to quote?)") from None
    except yaml.YAMLError:
        raise ValueError("expected YAML: there is a character in it that YAML does not allow") from None
    except RecursionError:
        raise ValueError("expected YAML that is nested less deeply") from None


class Reader:
    """Turns the nodes of one YAML document into data."""

    def __init__(self, env: Mapping[str, str] | None) -> None:
        self.env = env
        self.values = 0
        self.complaints: list[Complaint] = []

    def value(self, node: yaml.Node, at: At) -> Any:
        """The value of one node, at a path. Raises `ValueError` when there are too many."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise ValueError(f"expected at most {MOST_VALUES:,} values")
        match node.tag.removeprefix(TAG):
            case "map":
                return self._mapping(node, at)
            case "seq":
                return [self.value(item, (*at, index)) for index, item in enumerate(node.value)]
            case "str":
                return node.value if self.env is None else self._expanded(node.value, at, self.env)
            case "null":
                return None
        self._complain(at, "expected plain YAML without a tag (quote a text that starts with !)")
        return None

    def _mapping(self, node: yaml.Node, at: At) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == f"{TAG}merge":
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    found = self.value(source, at)
                    if isinstance(found, dict):
                        merged = found | merged
                    else:
                        self._complain(at, "expected a mapping, or a list of mappings, after <<")
            elif not isinstance(key, yaml.ScalarNode):
                self._complain(at, "expected a name before each colon")
            elif key.value in own:
                self._complain((*at, key.value), "expected once, but given twice")
            else:
                own[key.value] = self.value(value, (*at, key.value))
        return merged | own

    def _expanded(self, value: str, at: At, env: Mapping[str, str]) -> str:
        def variable(match: re.Match[str]) -> str:
            name, has_default, default = match.groups()
            if name not in env and not has_default:
                self._complain(at, f"expected the environment variable {name}, which is not set")
            return env.get(name) or default or ""

        if "${" in VARIABLE.sub("", value):
            self._complain(at, "expected ${NAME} or ${NAME:-default} (a secret with ${ in it can stand in a file)")
        return VARIABLE.sub(variable, value)

    def _complain(self, at: At, text: str) -> None:
        self.complaints.append(Complaint(at, text))
