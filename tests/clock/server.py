"""
An NTP server whose every byte the test decides, on loopback.

It writes its packets without the library that the product reads them with, so that the two
check each other.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Thread
from types import TracebackType

from ..world import HandClock

TO_1970 = 2_208_988_800  # seconds from the beginning of NTP's time, 1900
PACKET = struct.Struct("!BBBb II4s QQQQ")  # RFC 5905, figure 8

Respond = Callable[[bytes], Iterable[bytes]]


def wire(unix: float) -> int:
    """A Unix time as NTP writes it: seconds and their 2³²nd parts, the era left out."""
    return round((unix + TO_1970) * 2**32) % 2**64


@dataclass
class Packet:
    """An answer of a server that is well, unless the test changes a field."""

    request: bytes
    received: float = 0.0  # Unix times by the server's clock
    sent: float = 0.0
    leap: int = 0
    mode: int = 4
    stratum: int = 2
    reference: bytes = b"\x7f\x00\x00\x01"
    originate: int | None = None  # None: the time at which the request says it was sent, as it should be

    def __bytes__(self) -> bytes:
        originate = PACKET.unpack(self.request[:48])[-1] if self.originate is None else self.originate
        first = self.leap << 6 | 4 << 3 | self.mode
        times = (wire(self.sent - 10), originate, wire(self.received), wire(self.sent))
        return PACKET.pack(first, self.stratum, 6, -20, 0, 0, self.reference, *times)


@dataclass
class Travel:
    """The way of a packet: it moves the clock by hand, and the server's clock is off by `offset`."""

    hand: HandClock
    offset: float = 0.0
    there: float = 0.0
    inside: float = 0.0  # what the server itself takes
    back: float = 0.0

    def __call__(self, request: bytes) -> Iterable[bytes]:
        self.hand.pass_(self.there)
        received = self.hand.wall + self.offset
        self.hand.pass_(self.inside)
        sent = self.hand.wall + self.offset
        self.hand.pass_(self.back)
        return [bytes(Packet(request, received, sent))]


class NtpServer:
    """Answers each request with the datagrams that `respond` makes of it; remembers when it was asked."""

    def __init__(self, hand: HandClock, respond: Respond, host: str = "127.0.0.1", port: int = 0) -> None:
        self.hand, self.respond, self.asked = hand, respond, list[float]()
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((host, port))
        self.host, self.port = host, int(self.socket.getsockname()[1])
        self.thread = Thread(target=self._serve, name=f"ntp {host}", daemon=True)

    def __enter__(self) -> NtpServer:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with socket.socket(self.socket.family, socket.SOCK_DGRAM) as bell:
            bell.sendto(b"stop", (self.host, self.port))
        self.thread.join()
        self.socket.close()

    def _serve(self) -> None:
        while (received := self.socket.recvfrom(1024))[0] != b"stop":
            request, client = received
            self.asked.append(self.hand.mono)
            for datagram in self.respond(request):
                self.socket.sendto(datagram, client)
