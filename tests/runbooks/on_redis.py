"""
Where runbooks about Redis are run: the demo's world, whose Horizon is a program of a real Supervisor.

Supervisor starts, stops and signals a process; the world does what that says. It is paused by SIGUSR2,
goes on at SIGCONT, ends at SIGTERM and reads `config/horizon.php` when it starts, as the real one does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from exporter import app
from exporter.demo.horizon import HORIZON, PREFIX, HorizonWorld
from exporter.demo.incidents import INCIDENTS
from exporter.demo.plan import Horizon
from exporter.demo.redis import Redis

from ..patience import until
from ..redis.world import settings
from .stage import STARTING, Stage, serving
from .supervised import SUPERVISOR

PROGRAM = """
[program:horizon]
command=sh {folder}/horizon
autostart={autostart}
startsecs=0
"""
HORIZON_PHP = """<?php
return ['defaults' => ['supervisor-1' => [
    'connection' => 'redis',
    'queue' => ['default', 'mails'],
    'balance' => 'simple',
    'processes' => 3,
]]];
"""
PROCESS = """
cd {folder}
say() {{ echo $1 > new && mv new state; }}
trap 'say paused' USR2
trap 'say running' CONT
trap 'say down; exit 0' TERM
cp config/horizon.php started-with.php
say running
while :; do sleep 0.1; done
"""
State = Literal["running", "paused", "down"]
PLAIN_WORKER = ("APP_USER", "TRIES", "TIMEOUT", "MEMORY", "BACKOFF")  # of what is not run here


@dataclass(frozen=True, slots=True)
class Directed:
    """What the process says, as the world's plan."""

    folder: Path

    @property
    def state(self) -> State:
        """What Horizon does now."""
        return cast("State", (self.folder / "state").read_text().strip())

    def now(self, plan: Horizon) -> Horizon:
        """The plan with Horizon's state, and three workers for each queue that it was started with."""
        listed = re.search(r"'queue' => \[(.*)\]", (self.folder / "started-with.php").read_text())
        queues = re.findall(r"'(\w+)'", listed[1] if listed else "")
        return replace(plan, state=self.state, workers=dict.fromkeys(queues, 3))


@contextmanager
def on_redis(name: str, queue: str = "default") -> Iterator[Stage]:
    """This incident of the demo, with the variables of every page that is about Redis or Horizon."""
    plan = INCIDENTS[name].plan.horizon
    folder = Path(tempfile.mkdtemp(prefix="queue-exporter-horizon-"))  # a test's own path is too long for a socket
    watched = {"horizon": {"prefix": HORIZON}, "target_wait": "1m", "interval": 1}
    queues = dict.fromkeys((*plan.per_second, *plan.due))
    try:
        with _supervisor(folder, plan.state) as path, Redis(plan.server) as server:
            watching = app.build(settings(server.url(), queues=queues, **watched))
            with HorizonWorld(plan, server.port, now=Directed(folder).now), serving(watching) as address:
                variables = {"EXPORTER": address, "REDIS": server.url(), "PREFIX": PREFIX, "HORIZON": HORIZON}
                variables |= {"QUEUE": queue, "APP": str(folder), "PATH": path, "TMPDIR": str(folder)}
                yield Stage(variables | {"MEGABYTES": "64"} | dict.fromkeys(PLAIN_WORKER, "-"), watching)
    finally:
        shutil.rmtree(folder)


@contextmanager
def _supervisor(folder: Path, state: State) -> Iterator[str]:
    """Supervisor, with a Horizon in this state: the PATH on which `supervisorctl` finds it."""
    settings, tool = folder / "supervisord.conf", folder / "bin" / "supervisorctl"
    for name in ("bin", "conf.d", "config"):
        (folder / name).mkdir()
    program = PROGRAM.format(folder=folder, autostart=str(state != "down").lower())
    for path, text in {
        settings: SUPERVISOR.format(folder=folder),
        folder / "conf.d" / "horizon.conf": program,
        folder / "horizon": PROCESS.format(folder=folder),
        folder / "config" / "horizon.php": HORIZON_PHP,
        folder / "started-with.php": HORIZON_PHP,
        folder / "state": "down",
        tool: f'#!/bin/sh\nexec {shutil.which("supervisorctl")} -c {settings} "$@"\n',
    }.items():
        path.write_text(text)
    tool.chmod(0o755)
    horizon = Directed(folder)
    with subprocess.Popen(["supervisord", "-c", str(settings)], stdout=subprocess.DEVNULL) as supervisord:
        try:
            until((folder / "supervisor.sock").exists, STARTING)
            if state != "down":
                until(lambda: horizon.state == "running", STARTING)
            if state == "paused":
                subprocess.run([tool, "signal", "USR2", "horizon"], check=True, stdout=subprocess.DEVNULL)
                until(lambda: horizon.state == "paused", STARTING)
            yield f"{tool.parent}:{os.environ['PATH']}"
        finally:
            supervisord.terminate()
