"""
Our clock against NTP servers. Laravel compares `available_at` with PHP's clock, so a host
whose clock is off runs delayed jobs early or late, and takes over other workers' jobs.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import ntplib

from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...timing import Clock, Deadline
from ..resolve import resolve
from . import metrics
from .readings import Reading
from .settings import ClockSettings

PORT = 123
CLIENT, SERVER = 3, 4  # NTP modes, RFC 5905
NO_LEAP_KNOWN = 3  # the leap indicator of a server that is not synchronised
UNSYNCHRONISED = 16  # stratum
LONGEST_SILENCE = 64  # intervals for which a server that said so is left alone, at most


class Answer(NamedTuple):
    """What one server made of one request: a reading, or why there is none."""

    server: str
    reading: Reading | None
    failure: SourceError | None


class Ntp:
    """Asks every server once per interval, and one that sent a kiss-o'-death far less often."""

    name = "ntp"
    metrics: tuple[Metric, ...] = metrics.METRICS

    def __init__(self, settings: ClockSettings, clock: Clock = Clock(), port: int = PORT) -> None:
        self.settings, self.interval, self.clock, self.port = settings, settings.interval, clock, port
        self.silence: dict[str, float] = {}  # server → seconds to leave it alone, since it said so
        self.not_before: dict[str, float] = {}  # server → monotonic time

    def fetch(self, deadline: Deadline) -> list[Answer]:
        """One answer for each server. Raises `SourceError` if none of them gave the time."""
        answers = []
        for index, server in enumerate(self.settings.ntp):
            share = (deadline.at - deadline.mono()) / (len(self.settings.ntp) - index)
            answers.append(self._answer(server, Deadline(deadline.mono() + share, deadline.mono)))
        failures = [answer.failure for answer in answers if answer.failure]
        if len(failures) == len(answers):
            raise SourceError(failures[0].reason, "; ".join(str(failure) for failure in failures))
        return answers

    def measure(self, raw: list[Answer], now: float) -> Iterable[Sample | Note]:
        yield from metrics.samples([answer.reading for answer in raw if answer.reading])
        yield from (Note(str(answer.failure)) for answer in raw if answer.failure)

    def _answer(self, server: str, deadline: Deadline) -> Answer:
        if self.clock.mono() < self.not_before.get(server, 0.0):
            return Answer(server, None, SourceError("kod", f"{server}: told us to ask less often, so it is left alone"))
        try:
            reading = request(server, self.port, deadline, self.clock.wall)
        except SourceError as failure:
            if failure.reason == "kod":
                silence = min(2 * self.silence.get(server, 2 * self.interval), LONGEST_SILENCE * self.interval)
                self.silence[server], self.not_before[server] = silence, self.clock.mono() + silence
            return Answer(server, None, failure)
        self.silence.pop(server, None)
        return Answer(server, reading, None)


def request(server: str, port: int, deadline: Deadline, wall: Callable[[], float] = time.time) -> Reading:
    """
    One NTP request to the first address of `server`. Raises `SourceError`.

    The socket is connected, so that a closed port is told apart from silence and nobody but
    the server can answer. Offset and round trip as in RFC 5905, section 8.
    """
    address = resolve(server, deadline)[0]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as channel:
        try:
            channel.connect((address, port))
            asked = ntplib.NTPPacket(version=4, mode=CLIENT, tx_timestamp=ntplib.system_to_ntp_time(wall()))
            channel.send(asked.to_data())
            sent_as = _decoded(asked.to_data()).tx_timestamp  # as precise as the wire is
            while True:
                channel.settimeout(deadline.left())
                answer = _decoded(channel.recv(1024))
                received = wall()
                if abs(answer.orig_timestamp - sent_as) < 1e-6:
                    return _reading(server, answer, received)
                # a late answer to an earlier request, or a forged one: wait on
        except TimeoutError:
            raise SourceError("timeout", f"{server}: no answer in time") from None
        except ConnectionRefusedError:
            raise SourceError("refused", f"{server}: nobody listens on UDP port {port}") from None
        except OSError as error:
            raise SourceError("connect", f"{server}: {error.strerror}") from None
        except ntplib.NTPException:
            raise SourceError("malformed", f"{server}: the answer is not an NTP packet") from None


def _decoded(data: bytes) -> ntplib.NTPPacket:
    packet = ntplib.NTPPacket()
    packet.from_data(data)
    return packet


def _reading(server: str, answer: ntplib.NTPPacket, received: float) -> Reading:
    if answer.mode != SERVER:
        raise SourceError("malformed", f"{server}: the answer is not from an NTP server")
    if answer.stratum == 0:
        code = answer.ref_id.to_bytes(4, "big").decode("ascii", "replace").strip("\0")
        raise SourceError("kod", f"{server}: sent the kiss-o'-death {code!r}")
    if answer.leap == NO_LEAP_KNOWN or answer.stratum >= UNSYNCHRONISED:
        raise SourceError("unsynchronised", f"{server}: does not know the time itself")
    at_server = ntplib.ntp_to_system_time((answer.recv_timestamp + answer.tx_timestamp) / 2)
    inside = answer.tx_timestamp - answer.recv_timestamp  # what the server itself took is no round trip
    sent = ntplib.ntp_to_system_time(answer.orig_timestamp)
    return Reading(f"ntp:{server}", at_server, sent + inside / 2, received - inside / 2)
