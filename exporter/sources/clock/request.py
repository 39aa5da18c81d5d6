"""One NTP request and its answer: RFC 5905, as far as a client needs it that only wants to know how late it is."""

from __future__ import annotations

import socket
from typing import NamedTuple

import ntplib

from ...errors import SourceError
from ...timing import Clock, Deadline
from ..readings import Reading
from ..resolve import resolve

CLIENT, SERVER = 3, 4  # modes
NO_LEAP_KNOWN = 3  # the leap indicator of a server that is not synchronised
UNSYNCHRONISED = 16  # stratum
ERA = 2.0**32  # seconds after which NTP's timestamps begin anew; the next time in February 2036
COARSEST = 0.02  # seconds in one tick of the coarsest clock that a server may have


class KissError(SourceError):
    """A kiss-o'-death: the server gives no time, but says in a `code` of four letters what it wants."""

    def __init__(self, server: str, code: str) -> None:
        super().__init__("kod", f"{server}: sent the kiss-o'-death {code!r}")
        self.code = code


class Exchange(NamedTuple):
    """A request and its answer: when the server got the one and sent the other, and our clock when it came."""

    server: str
    arrived: float  # NTP's timestamps
    answered: float
    received: float  # Unix time
    elapsed: float  # seconds since we sent the request, by the clock that never jumps


def request(server: str, port: int, deadline: Deadline, clock: Clock = Clock()) -> Exchange:
    """
    Ask the first address of `server` once. Raises `SourceError`.

    The socket is connected, so that a closed port is told apart from silence and nobody but
    the server can answer.
    """
    address = resolve(server, deadline)[0]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as channel:
            channel.connect((address, port))
            return _exchange(channel, server, deadline, clock)
    except TimeoutError:
        raise SourceError("timeout", f"{server}: no answer in time") from None
    except ConnectionRefusedError:
        raise SourceError("refused", f"{server}: nobody listens on UDP port {port}") from None
    except OSError as error:
        raise SourceError("connect", f"{server}: {error.strerror}") from None
    except ntplib.NTPException:
        raise SourceError("malformed", f"{server}: the answer is not an NTP packet") from None


def _exchange(channel: socket.socket, server: str, deadline: Deadline, clock: Clock) -> Exchange:
    question = ntplib.NTPPacket(version=4, mode=CLIENT, tx_timestamp=timestamp(clock.wall())).to_data()
    sent = clock.mono()
    channel.send(question)
    while (left := deadline.at - deadline.mono()) > 0:
        channel.settimeout(left)
        answer = _decoded(channel.recv(1024))
        received, elapsed = clock.wall(), clock.mono() - sent
        if answer.orig_timestamp == _decoded(question).tx_timestamp:
            _check(server, answer, elapsed)
            return Exchange(server, answer.recv_timestamp, answer.tx_timestamp, received, elapsed)
        # a late answer to an earlier request, or a forged one: wait on
    raise TimeoutError


def _decoded(data: bytes) -> ntplib.NTPPacket:
    packet = ntplib.NTPPacket()
    packet.from_data(data)
    return packet


def _check(server: str, answer: ntplib.NTPPacket, elapsed: float) -> None:
    """Raises `SourceError` if the answer gives no time, or one that cannot be."""
    if answer.mode != SERVER:
        raise SourceError("malformed", f"{server}: the answer is not from an NTP server")
    if answer.stratum == 0:
        raise KissError(server, answer.ref_id.to_bytes(4, "big").decode("ascii", "replace").strip("\0"))
    if answer.leap == NO_LEAP_KNOWN or answer.stratum >= UNSYNCHRONISED:
        raise SourceError("unsynchronised", f"{server}: does not know the time itself")
    inside = apart(answer.tx_timestamp, answer.recv_timestamp)
    if answer.tx_timestamp == 0 or not -COARSEST <= inside <= elapsed + COARSEST:
        raise SourceError("malformed", f"{server}: the answer has times that cannot be")


def reading(exchange: Exchange) -> Reading:
    """
    The server's clock against ours as it stood when the answer came.

    Offset and round trip as in RFC 5905, section 8, but the time that passed is taken from
    the clock that never jumps: ours may have been set between question and answer.
    """
    server, arrived, answered, received, elapsed = exchange
    there, back = apart(arrived, timestamp(received - elapsed)), apart(answered, timestamp(received))
    inside = apart(answered, arrived)  # what the server itself took is no round trip
    return Reading(f"ntp:{server}", (there + back) / 2, abs(elapsed - inside) / 2)


def timestamp(unix: float) -> float:
    """NTP's timestamp of this Unix time, within its era."""
    return float(ntplib.system_to_ntp_time(unix)) % ERA


def apart(later: float, earlier: float) -> float:
    """Seconds from one timestamp to another; negative if it is the other way round. Right across the end of an era."""
    return (later - earlier + ERA / 2) % ERA - ERA / 2
