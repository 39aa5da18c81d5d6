"""Whoever reads our log may stop reading: that is no reason to stop polling, or not to end."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from ..patience import until
from .running import COMMAND, environment, listen_address, settings_file

PAGE = 4096  # bytes: the smallest pipe


@pytest.mark.usefixtures("db18")
def test_a_log_that_nobody_reads_stops_nothing(tmp_path: Path, dsn18: str) -> None:
    """With a full pipe on standard error polls go on, pages are served, and SIGTERM ends the exporter as always."""
    file = settings_file(tmp_path, dsn18, interval="100ms")
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PAGE)
    command = [*COMMAND, "serve", "--config", file, "--log-level", "debug"]
    process = subprocess.Popen(command, env=environment(), stderr=writing, stdout=subprocess.DEVNULL)
    os.close(writing)
    try:
        host, port = listen_address(file)
        until(lambda: waiting(reading) > PAGE - 512, 15)
        before = polls(host, port)
        until(lambda: polls(host, port) > before + 2, 15)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reading)


def waiting(pipe: int) -> int:
    """Bytes that lie in the pipe."""
    answer = bytearray(4)
    fcntl.ioctl(pipe, 0x541B, answer)  # FIONREAD
    return int.from_bytes(answer, "little")


def polls(host: str, port: int) -> float:
    """How often the jobs were asked for so far."""
    with urlopen(f"http://{host}:{port}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    name = 'laravel_queue_source_polls_total{collector="jobs",source="database"} '
    (line,) = [line for line in page.splitlines() if line.startswith(name)]
    return float(line.removeprefix(name))
