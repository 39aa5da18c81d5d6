"""Clients that are slow, silent, many, broken or hostile: none of them holds up another, none fills the log."""

from __future__ import annotations

import logging
import operator
import re
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from exporter.queues import JOBS
from exporter.server import MOST_CLIENTS, PATIENCE, Server
from exporter.timing import Clock

from ..patience import until
from ..world import HandClock
from .serving import board, connect, get, rest, serving

GET = b"GET /-/healthy HTTP/1.1\r\n"
SMUGGLED = b"GET /metrics HTTP/1.1\r\n\r\n"


@pytest.fixture
def hand() -> HandClock:
    """The clock by which the server's patience is measured."""
    return HandClock()


@pytest.fixture
def server(hand: HandClock) -> Iterator[Server]:
    """A server whose patience ends when the test says so."""
    with serving(board(), clock=hand.clock) as running:
        yield running


def answered_at_once(server: Server) -> bool:
    """Whether somebody who asks properly is answered while the others wait."""
    began = time.monotonic()
    return get(server, "/-/healthy").body == b"ok\n" and time.monotonic() - began < 1


@pytest.mark.parametrize(
    "sent", [b"", b"G", GET, GET + b"X-A: 1\r\n"], ids=["nothing", "a letter", "a line", "a header"]
)
def test_many_who_do_not_finish_asking(server: Server, sent: bytes) -> None:
    """Fifty clients that connect and say nothing, or stop in the middle, hold up nobody."""
    waiting = [connect(server, sent) for _ in range(50)]
    assert answered_at_once(server)
    for client in waiting:
        client.close()


def test_a_byte_at_a_time(server: Server, hand: HandClock) -> None:
    """Who sends a byte now and then is heard for ten seconds in all, and holds up nobody."""
    with connect(server) as slow:
        until(lambda: len(server.clients) == 1)
        for byte in GET[:9]:
            slow.sendall(bytes([byte]))
            hand.pass_(1)
            assert answered_at_once(server)
        until(lambda: len(server.clients) == 1)
        hand.pass_(PATIENCE - 9 + 0.1)
        assert rest(slow) == b""
    until(lambda: not server.clients)


def test_who_never_reads(hand: HandClock) -> None:
    """A client that does not take its page is given up after ten seconds, and holds up nobody."""
    large = [JOBS(1, "database", f"queue {number}", "ready") for number in range(3000)]
    with serving(board(large), clock=hand.clock) as server, socket.socket() as deaf:
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # its connections have it, too
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", server.port))
        deaf.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert deaf.recv(8) == b"HTTP/1.1"
        assert answered_at_once(server)
        until(lambda: len(server.clients) == 1)
        hand.pass_(PATIENCE + 0.1)
        until(lambda: not server.clients)
        assert answered_at_once(server)


def test_more_than_are_served(server: Server, hand: HandClock) -> None:
    """Whoever comes when all places are taken gets the place of the one who has been there longest."""
    first = connect(server)
    until(lambda: len(server.clients) == 1)
    hand.pass_(1)
    others = [connect(server) for _ in range(MOST_CLIENTS - 1)]
    until(lambda: len(server.clients) == MOST_CLIENTS)
    assert answered_at_once(server)
    assert rest(first) == b""
    assert len(server.clients) >= MOST_CLIENTS - 2
    for client in (first, *others):
        client.close()


def test_connections_are_not_kept(server: Server) -> None:
    """A client that would like to ask twice over one connection is answered once, so no idle one takes up a place."""
    with connect(server, 2 * (GET + b"Connection: keep-alive\r\n\r\n")) as client:
        assert rest(client).count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n", None),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET /-/healthy HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /-/healthy FTP/1.1\r\n\r\n", b"400"),
        (b"GET /-/healthy HTTP/1.1 x\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (GET + b"X: " + b"x" * 70_000 + b"\r\n\r\n", b"431"),
        (GET + b"X: 1\r\n" * 200 + b"\r\n", b"431"),
        (GET + b"no colon\r\n\r\n", b"200"),
        (GET + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, b"200"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + SMUGGLED, b"405"),
        (GET + b"Content-Length: -1\r\n\r\n", b"200"),
        (b"GET http://other.internal/metrics HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /-/healthy HTTP/1.0\r\n\r\n", b"200"),
    ],
)  # fmt: skip
def test_nonsense(server: Server, sent: bytes, status: bytes | None) -> None:
    """What is no request, too large, or two requests in one is answered once and hung up on; the next is served."""
    with connect(server, sent) as client:
        client.shutdown(socket.SHUT_WR)
        received = rest(client)
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == ([] if status is None else [status])
    assert b"laravel_queue" not in received
    assert answered_at_once(server)


def test_clients_that_break_off_are_no_news(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Resets, half requests and nonsense are logged for those who debug, and for nobody else."""
    caplog.set_level(logging.DEBUG)
    for sent in (b"", GET, b"\x00\xff" * 50 + b"\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\n"):
        client = connect(server, sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # with a reset
    until(lambda: not server.clients)
    assert answered_at_once(server)
    assert {record.levelno for record in caplog.records} <= {logging.DEBUG}


def test_a_bug_of_ours_is_news(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """An exception in a page is logged as an error, with its traceback; the next client is served."""
    server.pages.open["/-/ready"] = operator.itemgetter("missing")
    with connect(server, b"GET /-/ready HTTP/1.1\r\n\r\n") as client:
        assert rest(client) == b""
    until(lambda: not server.clients)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info
    assert record.exc_info[0] is KeyError
    assert answered_at_once(server)


def test_the_end_waits_for_nobody(hand: HandClock) -> None:
    """While a client holds a connection open, the server stops as fast as without one."""
    with serving(board(), clock=Clock()) as server:
        client = connect(server, GET)
        until(lambda: len(server.clients) == 1)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 1
        client.close()
    with pytest.raises(ConnectionRefusedError):
        connect(server)
