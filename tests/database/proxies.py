"""Hostile peers: a proxy that can be cut, black-holed and slowed, a listener that is deaf, a host that is not there."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

Address = tuple[str, int]
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset instead of a farewell
ALL = 1 << 60  # bytes


class Peer:
    """A context manager around a listening socket."""

    def __init__(self, host: str = "127.0.0.1", backlog: int = 16) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, 0), family=family, backlog=backlog)
        self.host, self.port = host, int(self.listener.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.listener.close()

    def dsn(self, rest: str) -> str:
        """A DSN that leads here."""
        return f"host={self.host} port={self.port} {rest}"


class Deaf(Peer):
    """The kernel accepts, and nobody ever reads or says a word."""


class Stranger(Peer):
    """Answers whatever it is told with a text that is not PostgreSQL's."""

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self.text = text
        Thread(target=self._answer, daemon=True).start()

    def close(self) -> None:
        _shut(self.listener, socket.SHUT_RDWR)  # wakes up who accepts
        super().close()

    def _answer(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with client:
                    client.recv(1024)
                    client.sendall(self.text)


class Absent(Peer):
    """As a host behind a firewall that drops everything: not even a connection comes about."""

    def __init__(self) -> None:
        super().__init__(backlog=0)
        self.fill = [socket.socket() for _ in range(3)]  # the queue of those who wait to be accepted is full
        for waiting in self.fill:
            waiting.setblocking(False)
            waiting.connect_ex((self.host, self.port))

    def close(self) -> None:
        for waiting in self.fill:
            waiting.close()
        super().close()


class Proxy(Peer):
    """Passes on what it gets, until it is told otherwise."""

    def __init__(self, server: Address, host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self.server = server
        self.delay = 0.0  # seconds that each answer is held back
        self.answers = ALL  # bytes of each connection's answers that are passed on; then silence
        self.accepted = 0
        self._open = Event()
        self._open.set()
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """Become a black hole: nothing passes, not even that somebody has hung up."""
        self._open.clear()

    def heal(self) -> None:
        """Pass everything on again, also what was held."""
        self.answers = ALL
        self._open.set()

    def cut(self, *, reset: bool = False) -> None:
        """Close all connections, on both sides; with `reset`, without a farewell."""
        with self._lock:
            ended, self._sockets = self._sockets, []
        for end in ended:
            if reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            _shut(end, socket.SHUT_RD if reset else socket.SHUT_RDWR)  # wakes up who reads
            end.close()

    def close(self) -> None:
        _shut(self.listener, socket.SHUT_RDWR)  # wakes up who accepts
        super().close()
        self.heal()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            server = socket.create_connection(self.server)
            with self._lock:
                self._sockets += [client, server]
            Thread(target=self._pass_on, args=(client, server, False), daemon=True).start()
            Thread(target=self._pass_on, args=(server, client, True), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                self._open.wait()
                if is_answer:
                    time.sleep(self.delay)
                    data = data[: max(0, self.answers - passed)]
                    passed += len(data)
                sink.sendall(data)
        except OSError:
            pass
        self._open.wait()
        _shut(sink, socket.SHUT_WR)


def _shut(end: socket.socket, how: int) -> None:
    with suppress(OSError):  # it is closed already
        end.shutdown(how)
