"""Where the output goes: readers that leave, full disks, terminals of another alphabet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from exporter.demo.daemon import free_port

from ..world import add_jobs
from .running import COMMAND, environment, run, settings_file


@pytest.fixture
def gone(tmp_path: Path) -> Path:
    """Settings of a database that is not there."""
    return settings_file(tmp_path, f"host=127.0.0.1 port={free_port()}", queues={"default": None})


@pytest.mark.parametrize(("command", "status"), [("once", 1), ("status", 3), ("check", 0)])
def test_a_reader_that_has_gone(gone: Path, command: str, status: int) -> None:
    """`| head` takes what it wants and leaves: no complaint, and the status is what it would have been."""
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [*COMMAND, command, "--config", gone], env=environment(), stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert all(line.startswith(b"queue-exporter: ") for line in err.splitlines())
    assert b"Broken" not in err


def test_a_full_disk(gone: Path) -> None:
    """What cannot be written is a failure, with one line that says why."""
    with Path("/dev/full").open("wb") as full:
        command = [*COMMAND, "check", "--config", gone]
        done = subprocess.run(command, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"queue-exporter: the output cannot be written: No space left on device\n"


def test_no_output_at_all(gone: Path) -> None:
    """A script that closes both and looks at the status alone gets it."""
    command = " ".join(map(str, [*COMMAND, "check", "--config", gone, ">&- 2>&-"]))
    assert subprocess.run(["/bin/sh", "-c", command], env=environment(), check=False).returncode == 0


@pytest.mark.parametrize("command", ["once", "status"])
def test_names_in_a_locale_that_has_no_letters_for_them(
    tmp_path: Path, dsn18: str, db18: psycopg.Connection[Any], command: str
) -> None:
    """In the C locale of a cron job, names come out in UTF-8, as the format of Prometheus wants it."""
    add_jobs(db18, ("очередь-🚀", None, 5))
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = run(command, "--config", settings_file(tmp_path, dsn18), env=plain)
    assert done.status == 0
    assert "очередь-🚀" in done.out
