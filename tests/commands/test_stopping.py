"""Signals: `serve` ends within two seconds whatever it is doing, and survives what is no request to end."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..patience import until
from .running import COMMAND, Serving, environment, settings_file

LIMIT = 2.0  # seconds, as promised


@pytest.fixture
def deaf() -> Iterator[str]:
    """The DSN of a server that lets everybody connect and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield "postgresql://app@127.0.0.1:{1}/app".format(*listening.getsockname())


def connected_to(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether the process has a connection to this port."""
    table = Path(f"/proc/{process.pid}/net/tcp").read_text()
    return any(line.split()[2].endswith(f":{port:04X}") and line.split()[3] == "01" for line in table.splitlines()[1:])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_while_a_poll_hangs_and_a_client_waits(tmp_path: Path, deaf: str, number: signal.Signals) -> None:
    """A poll waits half a minute for a deaf database and a client holds its connection open: both are left behind."""
    file = settings_file(tmp_path, deaf, timeout="30s")
    with Serving(file) as exporter, socket.create_connection(exporter.address) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
        until(lambda: connected_to(exporter.process, int(deaf.rpartition(":")[2].partition("/")[0])))
        began = time.monotonic()
        exporter.process.send_signal(number)
        assert exporter.process.wait(10) == 0
        assert time.monotonic() - began < LIMIT
        log = exporter.log.read_text()
    assert "Traceback" not in log
    assert all(line.startswith("ts=") for line in log.splitlines())


def test_a_second_signal_is_no_other_end(tmp_path: Path, deaf: str) -> None:
    """An impatient Ctrl-C after another changes nothing: no traceback, status 0, and never a standstill."""
    with Serving(settings_file(tmp_path, deaf)) as exporter:
        for _ in range(20):
            exporter.process.send_signal(signal.SIGINT)
        assert exporter.process.wait(10) == 0
        assert "Traceback" not in exporter.log.read_text()


def test_hangup_asks_for_nothing(tmp_path: Path, deaf: str) -> None:
    """Somebody's habit to reload a service by SIGHUP does not end it."""
    with Serving(settings_file(tmp_path, deaf)) as exporter:
        exporter.process.send_signal(signal.SIGHUP)
        assert b"200 OK" in exporter.get("/-/healthy")
        exporter.process.send_signal(signal.SIGTERM)
        assert exporter.process.wait(10) == 0


def test_a_terminal_that_closes_ends_it(tmp_path: Path, deaf: str) -> None:
    """Tried out in a terminal, it is not left behind on its port when that is closed."""
    terminal, side = pty.openpty()
    command = [*COMMAND, "--config", settings_file(tmp_path, deaf)]
    process = subprocess.Popen(command, env=environment(), stdout=side, stderr=side, stdin=side, start_new_session=True)
    os.close(side)
    until(lambda: b"msg=serving" in os.read(terminal, 4096))
    process.send_signal(signal.SIGHUP)
    assert process.wait(10) == -signal.SIGHUP
    os.close(terminal)


@pytest.mark.parametrize("command", ["once", "status"])
def test_a_look_can_be_broken_off(tmp_path: Path, deaf: str, command: str) -> None:
    """Ctrl-C while a database is silent: no traceback, and the usual status of an interrupted program."""
    file = settings_file(tmp_path, deaf, timeout="30s")
    process = subprocess.Popen(
        [*COMMAND, command, "--config", file], env=environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    until(lambda: connected_to(process, int(deaf.rpartition(":")[2].partition("/")[0])))
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, b"Traceback" in err) == (130, False)
    assert time.monotonic() - began < LIMIT
