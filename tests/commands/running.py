"""The exporter as users run it: a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import yaml

from exporter.demo.daemon import free_port

from ..patience import until

COMMAND: tuple[str | Path, ...] = (sys.executable, "-m", "exporter")


class Outcome(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, in which any warning is an error."""
    return os.environ | {"PYTHONWARNINGS": "error"} | dict(more or {})


def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Outcome:
    """Run a command to its end."""
    done = subprocess.run([*COMMAND, *arguments], env=environment(env), capture_output=True, timeout=30, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def settings_file(folder: Path, dsn: str, web: Mapping[str, Any] | None = None, **changes: Any) -> Path:
    """Settings of one connection called `database`; the pages are on a free port."""
    settings = {
        "web": {"listen": f"127.0.0.1:{free_port()}"} | dict(web or {}),
        "connections": {"database": {"driver": "database", "dsn": dsn} | changes},
    }
    file = folder / "queue.yml"
    file.write_text(yaml.safe_dump(settings, allow_unicode=True))
    return file


def listen_address(file: Path) -> tuple[str, int]:
    """Where an exporter with these settings listens."""
    host, _, port = yaml.safe_load(file.read_text())["web"]["listen"].rpartition(":")
    return host, int(port)


class Serving:
    """`queue-exporter serve`, from when it listens. A context manager."""

    def __init__(self, file: Path, *arguments: str) -> None:
        self.address = listen_address(file)
        self.url = "http://{}:{}/".format(*self.address)
        command: Sequence[str | Path] = [*COMMAND, "serve", "--config", file, *arguments]
        self.log = file.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment(), stdout=log, stderr=log)

    def __enter__(self) -> Serving:
        until(self.listens)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def listens(self) -> bool:
        """Whether a client can connect."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            socket.create_connection(self.address, timeout=1).close()
        except OSError:
            return False
        return True

    def get(self, path: str = "/metrics", headers: str = "") -> bytes:
        """A whole answer, head included."""
        with socket.create_connection(self.address, timeout=10) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\n{headers}\r\n".encode())
            received = b""
            while more := client.recv(65536):
                received += more
        return received
