"""YAML as it is written: no value turns into something else, no key is lost, and what repeats need not be repeated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..world import database_of
from .complaints import ONE, complaint, complaints, load


@pytest.mark.parametrize(
    "name",
    [
        "123",
        "0123",
        "1_000",
        "1e3",
        "12:30:45",
        "0x1F",
        "2024-01-01",
        "on",
        "no",
        "y",
        "true",
        "null",
        "~",
        ".inf",
        "=",
        "<",
    ],
)
def test_a_name_is_what_is_written(name: str) -> None:
    """A queue called 123, on or 2024-01-01 needs no quotes, and a password of digits keeps its zeros."""
    database = load(f"{ONE}    queues: {{{name}: }}\n    password: {name if name not in ('null', '~') else 'x'}\n")
    assert list(database_of(database).queues) == [name]
    if name not in ("null", "~"):
        password = database_of(database).password
        assert password is not None
        assert password.get_secret_value() == name


@settings(max_examples=50, deadline=None)  # on a busy machine a file may take a while
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40))
def test_quoted_names_are_kept_to_the_letter(name: str) -> None:
    """Whatever a queue is called, the settings can say it."""
    quoted = "".join(f"\\U{ord(character):08X}" for character in name)
    assert list(database_of(load(f'{ONE}    queues: {{"{quoted}": }}\n')).queues) == [name]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("yes", True), ("on", True), ("TRUE", True), ("1", True), ("no", False), ("off", False), ("'false'", False)],
)
def test_switches(written: str, meant: bool) -> None:
    """Each of YAML's words for true and false is understood, quoted or not."""
    assert database_of(load(f"{ONE}    discover: {written}\n")).discover is meant


@pytest.mark.parametrize(
    ("twice", "path"),
    [
        (ONE + "  database: {driver: database}\n", "connections.database"),
        (ONE + "connections: {}\n", "connections"),
        (ONE + "    queues: {mail: , 'mail': }\n", "connections.database.queues.mail"),
        (ONE + "    queues: {1: , '1': }\n", "connections.database.queues.1"),
        (ONE + "    table: a\n    table: b\n", "connections.database.table"),
        (ONE + '    queues: {"a\\nb": , "a\\nb": }\n', r"connections.database.queues.'a\nb'"),
    ],
)
def test_what_is_given_twice_is_refused(twice: str, path: str) -> None:
    """A connection, a queue or a setting given twice is named: one of the two would be lost."""
    assert complaint(twice) == f"{path}: expected once, but given twice"


def test_anchors_and_merge_keys() -> None:
    """What several connections share is written once; their own settings win, and of several sources the first."""
    settings = load(
        """
        connections:
          a: &a {driver: database, table: jobs_a, interval: 30s}
          b: &b {<<: *a, table: jobs_b, timeout: 5s}
          c: {<<: [*b, *a], interval: 10s}
        """
    )
    found = {name: database_of(settings, name) for name in settings.connections}
    shown = {name: (c.table, c.interval, c.timeout) for name, c in found.items()}
    assert shown == {"a": ("jobs_a", 30, 2), "b": ("jobs_b", 30, 5), "c": ("jobs_b", 10, 5)}


def test_a_merge_of_something_else_is_refused() -> None:
    """Only a mapping can be merged."""
    assert (
        complaint(f"{ONE}    <<: jobs\n") == "connections.database: expected a mapping, or a list of mappings, after <<"
    )


@pytest.mark.parametrize("value", ["!!int 5", "!!python/object/apply:os.system [ls]", "!secret x", "!!binary aGFsbG8="])
def test_tags_are_refused(value: str) -> None:
    """A tag would make something else of a value; none is needed, and none is run."""
    problem = complaint(f"{ONE}    table: {value}\n")
    assert problem == "connections.database.table: expected plain YAML without a tag (quote a text that starts with !)"


def test_a_mapping_is_no_key() -> None:
    """Jinja's braces without quotes look like a mapping as a key."""
    assert complaints("connections: {database: {driver: database, {x: y}: z}}") == [
        "connections.database: expected a name before each colon"
    ]
