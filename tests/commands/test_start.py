"""Bad usage and bad settings: a line for each complaint, exit status 2, and nothing half-started."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter import cli

from .running import run, settings_file

ONE = "connections:\n  database:\n    driver: database\n"
BAD = {
    "no file": (None, "queue.yml: expected a readable file: No such file or directory"),
    "broken YAML": ("connections: [", "expected YAML: "),
    "unknown key": (f"{ONE}    tabel: jobs\n", "connections.database.tabel: is not a known setting"),
    "wrong type": (f"{ONE}    queues: 5\n", "connections.database.queues: expected a mapping"),
    "negative duration": (f"{ONE}    interval: -5s\n", "connections.database.interval: expected a duration above zero"),
    "empty queue": (f"{ONE}    queues: {{'': }}\n", "connections.database.queues.'': expected a queue's name"),
    "queue twice": (
        f"{ONE}    queues: {{a: , a: }}\n",
        "connections.database.queues.a: expected once, but given twice",
    ),
    "unset variable": (f"{ONE}    dsn: ${{NOWHERE}}\n", "connections.database.dsn: expected the environment variable"),
    "secret file": (
        f"{ONE}    password_file: nowhere\n",
        "connections.database.password_file: expected a readable file",
    ),
    "raw password": (f"{ONE}    dsn: 'postgresql://u:a#b@h/d'\n", "connections.database.dsn: expected postgresql://"),
    "mysql": (
        f"{ONE}    dsn: mysql://u:p@h/d\n",
        "connections.database.dsn: expected a postgresql:// URL, not mysql://",
    ),
    "web file": (f"{ONE}web: {{config_file: nowhere}}\n", "web.config_file: expected a readable file"),
    "address": (f"{ONE}web: {{listen: '10087'}}\n", "web.listen: expected host:port"),
}


@pytest.fixture
def database() -> Iterator[socket.socket]:
    """Somebody who would notice a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def nobody_came(listening: socket.socket) -> bool:
    """Whether no connection was made to it."""
    listening.settimeout(0)
    try:
        listening.accept()
    except BlockingIOError:
        return True
    return False


def dsn_of(listening: socket.socket) -> str:
    """A DSN that leads there."""
    return f"postgresql://app@127.0.0.1:{listening.getsockname()[1]}/app"


@pytest.mark.parametrize("command", ["serve", "once", "status", "check"])
@pytest.mark.parametrize("what", BAD)
def test_bad_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, what: str) -> None:
    """One line on standard error names the setting and what is expected; the exit status is 2 for every command."""
    content, expected = BAD[what]
    file = tmp_path / "queue.yml"
    if content is not None:
        file.write_text(content)
    threads = threading.active_count()
    assert cli.main([command, "--config", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("queue-exporter: ")
    assert expected in line
    assert threading.active_count() == threads


def test_no_settings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file and a variable there is nothing to watch."""
    monkeypatch.delenv("QUEUE_EXPORTER_DSN", raising=False)
    assert cli.main([]) == 2
    assert capsys.readouterr().err.startswith("queue-exporter: expected --config FILE, or the DSN of a database")


@pytest.mark.parametrize("content", ["connections: [", f"{ONE}    interval: 0\n    tabel: jobs\n"])
def test_as_a_process(tmp_path: Path, content: str) -> None:
    """What a supervisor sees: status 2, a line for each complaint, no traceback."""
    file = tmp_path / "queue.yml"
    file.write_text(content)
    done = run("--config", file)
    assert (done.status, done.out) == (2, "")
    assert len(done.err.splitlines()) == (1 if content.endswith("[") else 2)
    assert all(line.startswith("queue-exporter: ") for line in done.err.splitlines())


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:{taken}", "Address already in use"),
        ("192.0.2.1:10087", "Cannot assign requested address"),
        ("[2001:db8::1]:10087", "Cannot assign requested address|Address family not supported"),
        ("nowhere.invalid:10087", "Name or service not known|name resolution"),
        ("a..b:10087", "no such address"),
    ],
)
def test_an_address_that_cannot_be_had(tmp_path: Path, database: socket.socket, listen: str, expected: str) -> None:
    """A port in use or a foreign address is told before a connection is made to any database."""
    address = listen.format(taken=database.getsockname()[1])
    done = run("--config", settings_file(tmp_path, dsn_of(database), {"listen": address}))
    assert (done.status, done.out) == (2, "")
    assert done.err.rstrip().startswith("queue-exporter: web.listen: expected an address that is free, ")
    assert re.search(expected, done.err)
    assert len(done.err.splitlines()) == 1
    assert nobody_came(database)


def test_check_connects_to_nobody(tmp_path: Path, database: socket.socket) -> None:
    """Checking the settings touches neither the database nor the port."""
    done = run("check", "--config", settings_file(tmp_path, dsn_of(database), queues={"a": None, "b": None}))
    assert (done.status, done.out, done.err) == (
        0,
        "settings are fine: connections 1, named queues 2; nobody was asked (once does)\n",
        "",
    )
    assert nobody_came(database)


def test_case_35_check_tells_of_a_timeout_past_retry_after(tmp_path: Path, database: socket.socket) -> None:
    """Case 35. Workers that may take longer than retry_after run jobs twice, and the settings alone say so."""
    pools = {
        "default": {"application_name": "worker-*", "queues": ["default"], "timeout": 90},
        "long": {"application_name": "long-*", "queues": ["exports"], "timeout": 600},
    }
    queues = {"default": None, "exports": {"retry_after": "25m"}}
    done = run("check", "--config", settings_file(tmp_path, dsn_of(database), queues=queues, pools=pools))
    assert (done.status, done.err) == (1, "")
    (line,) = done.out.splitlines()
    assert line.startswith("connections.database.pools.default.timeout: expected less than the 90s of retry_after")


@pytest.mark.parametrize(
    "arguments",
    [["watch"], ["--colour"], ["--log-level", "loud"], ["--log-format", "xml"], ["--config"], ["serve", "once"],
     ["status", "--url", "ftp://h/"], ["status", "--url", "here"], ["status", "--url", "http://h:x/"],
     ["once", "--url", "http://h/"], ["demo", "--incident", "earthquake"]],
)  # fmt: skip
def test_bad_usage(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """What the command line does not understand ends with status 2 and says what it would."""
    try:
        status = cli.main(arguments)
    except SystemExit as ended:
        status = ended.code  # type: ignore[assignment]  # argparse gives a number
    assert status == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert shown.err


@pytest.mark.parametrize("arguments", [["--version"], ["serve", "--version"], ["status", "--version"]])
def test_version(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """It is told before anything is read."""
    with pytest.raises(SystemExit, match="0"):
        cli.main(arguments)
    assert capsys.readouterr().out.startswith("queue-exporter 0.")


@pytest.mark.parametrize("before", [True, False])
def test_options_may_stand_on_either_side(tmp_path: Path, before: bool) -> None:
    """Before the command or after it, the same options are understood."""
    options = ["--config", str(settings_file(tmp_path, "host=db")), "--log-level", "debug", "--log-format", "json"]
    parsed = cli.parser().parse_args([*options, "status"] if before else ["status", *options], cli.Options())
    assert (parsed.command, str(parsed.config), parsed.log_level, parsed.log_format) == ("status", *options[1::2])


def test_serve_is_what_it_does_if_nothing_is_said() -> None:
    """No command is `serve`, with logs as logfmt from the level info on."""
    parsed = cli.parser().parse_args([], cli.Options())
    assert (parsed.command, parsed.config, parsed.log_level, parsed.log_format) == ("serve", None, "", "logfmt")
