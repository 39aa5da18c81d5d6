"""Files that are no settings: each gets one line that says what is expected, however large or deep it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import config
from exporter.errors import ConfigError

from ..world import database_of
from .complaints import ONE, complaint, complaints, load

LAUGHS = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join(9 * [f'*{before}'])}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{','.join(9 * [f'*{before}'])}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "a mapping"),
        ("# all of it is a comment\n", "a mapping"),
        ("postgresql://db.internal/app", "a mapping"),
        ("- connections", "a mapping"),
        ("null", "a mapping"),
        ("connections: [", "YAML"),
        ("connections:\n\tdatabase:", "line 2: expected YAML"),
        ("a: b: c", "YAML"),
        ("a: 'b", "YAML"),
        ("a: *nowhere", "YAML"),
        ("a: \x07", "a character in it that YAML does not allow"),
        ("--- {}\n--- {}", "YAML"),
        ("a: &a [*a]", "nested less deeply"),
        ("a: &a {<<: *a}", "nested less deeply"),
        ("[" * 500, "nested less deeply"),
        (LAUGHS, "at most 50,000 values"),
        (MERGES, "at most 50,000 values"),
        ("#" * 300_000, "at most 256 KiB"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"connections: {caf\xe9: }", "UTF-8"),
    ],
)
def test_what_is_no_settings_file(content: str | bytes, expected: str) -> None:
    """Nothing, YAML that is broken, a bomb, a picture: one line says what is expected instead."""
    problem = complaint(content)
    assert "expected " in problem
    assert expected in problem


def test_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    """Who has several files sees which one it is, and where."""
    file = tmp_path / "queue.yml"
    file.write_text(f"{ONE}  : :\n")
    with pytest.raises(ConfigError, match=r"queue\.yml: line 4: expected YAML"):
        config.load(file, {})


@pytest.mark.parametrize("path", ["nowhere.yml", ".", "queue\0.yml", "x" * 300])
def test_a_file_that_cannot_be_read(tmp_path: Path, path: str) -> None:
    """A file that is not there, a folder, an impossible name: a readable file is expected."""
    with pytest.raises(ConfigError, match="expected a readable file"):
        config.load(tmp_path / path, {})


def test_what_never_ends_is_not_read_to_its_end() -> None:
    """A device as a settings file is refused after as much as a file may have."""
    with pytest.raises(ConfigError, match="/dev/zero: expected a file of at most 256 KiB"):
        config.load(Path("/dev/zero"), {})


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    """Some editors write one."""
    assert database_of(load(b"\xef\xbb\xbf" + ONE.encode())).table == "jobs"


def test_no_piece_of_a_secret_is_quoted_from_broken_yaml() -> None:
    """A password that starts with * or ! or @ is no plain YAML; the complaint does not say what it is."""
    for password in ("*hunter2", "!hunter2", "&hunter2 x", "@hunter2", "%hunter2", "'hunter2", "{hunter2"):
        for problem in complaints(f"{ONE}    password: {password}\n"):
            assert "hunter2" not in problem


@pytest.mark.parametrize(
    "line", ["dsn:postgresql://u:hunter2@h/d", "'postgresql://u:hunter2@h/d': x", "hunter2 hunter2: x"]
)
def test_a_secret_in_the_place_of_a_key_is_not_repeated(line: str) -> None:
    """A space is missing after the colon, so the DSN became a key: it is refused and stays unsaid."""
    problem = complaint(f"connections: {{database: {{driver: database, {line}}}}}")
    assert problem.startswith("connections.database: holds something that is not a setting")
    assert "hunter2" not in problem
