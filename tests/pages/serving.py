"""A server of pages in this process, and a client that asks it."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPMessage
from threading import Thread
from typing import NamedTuple

from exporter.board import Board, Key, State
from exporter.exposition import Exposition
from exporter.model import Sample
from exporter.pages import Pages
from exporter.server import Server, open_server
from exporter.timing import Clock
from exporter.web import Gate, WebConfig

JOBS = Key("database", "jobs")


class Answer(NamedTuple):
    """What a client was answered."""

    status: int
    headers: HTTPMessage
    body: bytes


def board(samples: Iterable[Sample] = (), clock: Clock = Clock(), polls: int = 1) -> Board:
    """A board on which one collector has said this just now."""
    made = Board()
    taken, good_until = clock.wall(), clock.mono() + 1000
    made.publish({JOBS: State(15, 15, tuple(samples), polls=polls, taken_at=taken, good_until=good_until)})
    return made


@contextmanager
def serving(shown: Board, web: WebConfig | None = None, clock: Clock = Clock()) -> Iterator[Server]:
    """The pages of this board, served on a free port. The server's own clock is the one handed in."""
    web = web or WebConfig()
    pages = Pages(shown, Exposition(shown), Gate(web.basic_auth_users))
    server = open_server(("127.0.0.1", 0), pages, web)
    server.clock = clock
    thread = Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def get(
    server: Server,
    path: str = "/metrics",
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """One request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    if tls:
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=10, context=tls)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def connect(server: Server, sent: bytes = b"") -> socket.socket:
    """A connection of somebody who has said no more than this."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    client.sendall(sent)
    return client


def rest(client: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    received = b""
    try:
        while more := client.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    return received
