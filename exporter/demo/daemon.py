"""A server of our own in a temporary folder, whichever program it is."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self


class StartError(Exception):
    """The server did not start; the message is the end of its log."""


def free_port() -> int:
    """A TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Daemon:
    """One server. A context manager: leaves no process and no file behind."""

    program: ClassVar[str]  # its name
    starting: ClassVar[float] = 10.0  # seconds that it may take
    stopping: ClassVar[float] = 10.0
    ends_by: ClassVar[signal.Signals] = signal.SIGTERM  # in good order
    dies_by: ClassVar[signal.Signals] = signal.SIGKILL  # without a word to anybody

    def __init__(self, port: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"queue-exporter-{self.program.lower()}-"))
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def start(self) -> None:
        """Start, and wait until it is up. Raises `StartError`."""
        raise NotImplementedError

    def stop(self, how: signal.Signals | None = None) -> None:
        """Stop, in good order unless it is told `how`."""
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how or self.ends_by)
        try:
            process.wait(self.stopping)
        except subprocess.TimeoutExpired:
            process.send_signal(self.dies_by)
            process.wait(self.stopping)

    def close(self) -> None:
        """Stop, without keeping what is thrown away, and remove the folder."""
        self.stop(self.dies_by)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.folder / "log"

    def _run(self, command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        """Run it in a session of its own, so that a Ctrl-C for us does not stop it first."""
        with self.log.open("ab") as log:
            self.process = process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **how)
        until = time.monotonic() + self.starting
        while not self._is_up():
            if process.poll() is not None or time.monotonic() > until:
                raise StartError(f"{self.program} did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.01)
        return process

    def _is_up(self) -> bool:
        raise NotImplementedError
