"""A peer that speaks, but no language that anybody asked for."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Thread

from ..database.proxies import Peer


class Babbler(Peer):
    """Answers every connection with a web server's complaint, and hangs up."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = Thread(target=self._babble, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Wake up who accepts, and be gone."""
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        super().close()

    def _babble(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client, suppress(OSError):
                client.recv(4096)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
