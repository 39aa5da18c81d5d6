"""Secrets: from files, in every form, and never in anything that is printed."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest

from exporter import config
from exporter.errors import ConfigError
from exporter.logs import Secrets

from ..world import database_of
from .complaints import ONE, complaint, load

SECRET = "hunter2 'quoted' \\ é"
ENV = {"SECRET": "hunter2"}


def in_file(folder: Path, content: bytes) -> Path:
    """A file with this content."""
    file = folder / "secret"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("content", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n", f"\ufeff{SECRET}\n\n"])
def test_a_secret_is_read_from_a_file(tmp_path: Path, content: str) -> None:
    """What an editor or `echo` adds at its end is no part of it; a space inside is."""
    file = in_file(tmp_path, content.encode())
    settings = database_of(load(f"{ONE}    password_file: {file}\n"))
    assert settings.parameters() == {"password": SECRET}


def test_a_dsn_is_read_from_a_file(tmp_path: Path) -> None:
    """A DSN is as secret as the password in it."""
    file = in_file(tmp_path, b"postgresql://watcher:hunter2@db.internal/app\n")
    settings = database_of(load(f"{ONE}    dsn_file: {file}\n"))
    assert settings.parameters() == {"host": "db.internal", "dbname": "app", "user": "watcher", "password": "hunter2"}


def test_a_password_stands_above_the_one_in_the_dsn(tmp_path: Path) -> None:
    """With both, the one that is given by itself is used."""
    settings = load(f"{ONE}    dsn: host=db password=old\n    password_file: {in_file(tmp_path, b'new')}\n")
    assert database_of(settings).parameters()["password"] == "new"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected a secret, but it is empty or binary"),
        (b"\n\n", "expected a secret, but it is empty or binary"),
        (b"hunter2\0", "expected a secret, but it is empty or binary"),
        (b"\x93\xfa\xff", "expected a file of UTF-8 text"),
        (b"x" * 70_000, "expected a file of at most 64 KiB"),
        (None, "expected a readable file: No such file or directory"),
    ],
)
@pytest.mark.parametrize("setting", ["password_file", "dsn_file"])
def test_secret_files_that_hold_none(tmp_path: Path, setting: str, content: bytes | None, expected: str) -> None:
    """Empty, binary, endless or not there: the setting is named, and what is expected."""
    file = tmp_path / "hunter2" if content is None else in_file(tmp_path, content)
    assert complaint(f"{ONE}    {setting}: {file}\n") == f"connections.database.{setting}: {expected}"


def test_a_folder_is_no_secret_file(tmp_path: Path) -> None:
    """Docker makes a folder where a secret was to be mounted and is not there."""
    problem = complaint(f"{ONE}    password_file: {tmp_path}\n")
    assert problem == "connections.database.password_file: expected a readable file: Is a directory"


def test_a_password_in_the_place_of_a_path_is_not_repeated() -> None:
    """Who writes the password where the path belongs does not find it in the log."""
    assert "hunter2" not in complaint(f"{ONE}    password_file: hunter2\n")


def test_paths_start_at_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter may be started anywhere."""
    in_file(tmp_path, b"hunter2")
    file = tmp_path / "queue.yml"
    file.write_text(f"{ONE}    password_file: secret\n")
    monkeypatch.chdir("/")
    assert database_of(config.load(file, {})).parameters() == {"password": "hunter2"}


@pytest.mark.parametrize("setting", ["dsn", "password"])
def test_one_of_the_two(tmp_path: Path, setting: str) -> None:
    """A secret that is given twice is refused: nobody should have to know which one is used."""
    file = in_file(tmp_path, b"host=db")
    problem = complaint(f"{ONE}    {setting}: host=db\n    {setting}_file: {file}\n")
    assert problem == f"connections.database.{setting}_file: expected {setting} or {setting}_file, but both are given"


@pytest.mark.parametrize("line", ["password: ''", "dsn: ''", "password: ${EMPTY}", "dsn: '${EMPTY:-}'"])
def test_a_secret_that_is_given_is_not_empty(line: str) -> None:
    """An empty variable does not silently mean the local socket, or no password."""
    problem = complaint(f"{ONE}    {line}\n", {"EMPTY": ""})
    assert problem.endswith(": expected a secret, but it is empty or binary")


FORMS = {
    "URL": "dsn: 'postgresql://watcher:hunter2@db/app'",
    "encoded URL": "dsn: 'postgresql://watcher:%68unter2@db/app'",
    "parameter": "dsn: 'postgresql://db/app?password=hunter2'",
    "keywords": "dsn: host=db password=hunter2",
    "setting": "password: hunter2",
    "variable": "password: ${SECRET}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_case_19_settings_can_be_printed(form: str) -> None:
    """Case 19. No way to print, dump or copy the settings as text shows a secret, whatever form it came in."""
    settings = load(f"{ONE}    {form}\n", ENV)
    database = database_of(settings)
    for shown in (repr(settings), str(settings), settings.model_dump_json(), f"{database!r} {database.__dict__}"):
        assert "hunter2" not in shown
        assert "%68unter2" not in shown
    assert Secrets(settings.secrets()).hide("hunter2") == "***"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_case_19_a_complaint_has_no_secret(form: str) -> None:
    """Case 19. Beside another mistake, no complaint and no traceback of one shows a secret."""
    with pytest.raises(ConfigError) as refusal:
        load(f"{ONE}    {form}\n    interval: 0\n    colour: red\n", ENV)
    shown = "".join(traceback.format_exception(refusal.value)) + repr(refusal.value) + str(refusal.value)
    assert "hunter2" not in shown


def test_every_spelling_is_known() -> None:
    """A message may hold the password encoded as in the DSN, encoded in another way, or escaped as in a repr."""
    encoded = "a%2Fb%27c d%C3%A9".replace(" ", "%20")
    hide = Secrets(load(f"{ONE}    dsn: 'postgresql://u:{encoded.lower()}@h/d'\n").secrets()).hide
    for spelling in (
        "a/b'c dé",
        encoded,
        encoded.lower(),
        repr("a/b'c dé"),
        json.dumps("a/b'c dé", ensure_ascii=False),
    ):
        assert "b" not in hide(f"<{spelling}>").replace("***", "")


def test_the_secrets_of_libpq_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The passphrase of a client's key is a secret, too, and so is a password that only the environment knows."""
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    secrets = load(f"{ONE}    dsn: host=db sslpassword=hunter3\n").secrets()
    assert {"hunter2", "hunter3"} <= set(secrets)
