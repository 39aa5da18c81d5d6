"""A Redis server of our own in a temporary folder, from the redis-server that is on PATH."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .postgres import StartError, free_port

STARTING = 10.0  # seconds
STOPPING = 10.0
SETTINGS = {
    "bind": "127.0.0.1",
    "save": "",  # nothing in here is worth keeping
    "appendonly": "no",
    "repl-diskless-sync-delay": "0",  # seconds to wait for a second replica
    "enable-debug-command": "local",
}


class Redis:
    """One server. A context manager: leaves no process and no file behind."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="queue-exporter-redis-"))
        self.settings = SETTINGS | dict(settings or {})
        self.port = port or free_port()
        self.environment = {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Redis:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def url(self, database: int = 0, login: str = "") -> str:
        """A URL to connect with; a `login` is `user:password`."""
        return f"redis://{login}{'@' if login else ''}127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and wait until connections are accepted; the server may still be loading."""
        binary = shutil.which("redis-server")
        if binary is None:
            raise StartError("there is no redis-server on PATH")
        options = {"port": str(self.port), "dir": str(self.folder)} | self.settings
        command = [binary, *(word for name, value in options.items() for word in (f"--{name}", *_words(name, value)))]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.environment, start_new_session=True
            )
        until = time.monotonic() + STARTING
        while not self._accepts():
            if self.process.poll() is not None or time.monotonic() > until:
                raise StartError(f"Redis did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.01)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop; SIGKILL does not even tell who is connected."""
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOPPING)

    def close(self) -> None:
        """Stop, and remove the folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.folder / "log"

    def _accepts(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False


def _words(name: str, value: str) -> list[str]:
    return [value] if name == "save" else value.split(" ")
