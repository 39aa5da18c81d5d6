"""A Redis server of our own, from the redis-server that is on PATH."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress

from .daemon import Daemon, StartError

SETTINGS = {
    "bind": "127.0.0.1",
    "save": "",  # nothing in here is worth keeping
    "appendonly": "no",
    "repl-diskless-sync-delay": "0",  # seconds to wait for a second replica
}


class Redis(Daemon):
    """One server."""

    program = "Redis"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(port)
        self.settings = SETTINGS | dict(settings or {})
        self.environment = {**os.environ, **(environment or {})}

    def url(self, database: int = 0, login: str = "") -> str:
        """A URL to connect with; a `login` is `user:password`."""
        return f"redis://{login}{'@' if login else ''}127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and wait until connections are accepted; the server may still be loading."""
        binary = shutil.which("redis-server")
        if binary is None:
            raise StartError("there is no redis-server on PATH")
        options = {"port": str(self.port), "dir": str(self.folder)} | self.settings
        words = (word for name, value in options.items() for word in (f"--{name}", *_words(name, value)))
        self._run([binary, *words], env=self.environment)

    def _is_up(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False


def _words(name: str, value: str) -> list[str]:
    return [value] if name == "save" else value.split(" ")
