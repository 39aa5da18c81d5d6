"""One NTP request: what is read from a right answer, and what becomes of every wrong one."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.errors import SourceError
from exporter.sources.clock.request import KissError, apart, reading, request, timestamp
from exporter.sources.readings import Reading
from exporter.timing import Deadline

from ..world import HandClock
from .server import NtpServer, Packet, Respond, Travel

MICROSECOND = pytest.approx(0, abs=1e-6)


@pytest.fixture
def hand() -> HandClock:
    """Our clock, which the packets' way and the servers move."""
    return HandClock()


def ask(hand: HandClock, server: NtpServer, seconds: float = 5.0) -> Reading:
    """One request to this server."""
    deadline = Deadline(hand.mono + seconds, hand.clock.mono)
    return reading(request(server.host, server.port, deadline, hand.clock))


def refusal(hand: HandClock, respond: Respond, seconds: float = 5.0) -> SourceError:
    """How a request fails when the server responds like that."""
    with NtpServer(hand, respond) as server, pytest.raises(SourceError) as caught:
        ask(hand, server, seconds)
    assert str(caught.value).startswith("127.0.0.1: ")
    return caught.value


@pytest.mark.parametrize("offset", [0.0, 0.002, -0.002, 40.0, -3600.0])
def test_offset_is_reference_minus_ours(hand: HandClock, offset: float) -> None:
    """Case 71: what counts is the offset, here right to the microsecond; no flag of the kernel is looked at."""
    with NtpServer(hand, Travel(hand, offset, there=0.01, back=0.01)) as server:
        reading = ask(hand, server)
    assert reading.reference == "ntp:127.0.0.1"
    assert reading.offset - offset == MICROSECOND


def test_error_is_half_the_round_trip_without_the_servers_own_time(hand: HandClock) -> None:
    """A server that thinks for 300 ms is as exact as one that answers at once: 20 ms there and 10 back are ± 15 ms."""
    with NtpServer(hand, Travel(hand, 5.0, there=0.02, inside=0.3, back=0.01)) as server:
        reading = ask(hand, server)
    assert reading.error - 0.015 == MICROSECOND
    assert reading.offset - 5.005 == MICROSECOND
    assert abs(reading.offset - 5.0) <= reading.error


def test_our_clock_is_set_during_the_request(hand: HandClock) -> None:
    """The offset is that of our clock as it stands now, and the step is not taken for a round trip."""
    travel = Travel(hand, there=0.01, back=0.01)

    def step(packet: bytes) -> Iterable[bytes]:
        answer = travel(packet)
        hand.wall += 3600
        return answer

    with NtpServer(hand, step) as server:
        reading = ask(hand, server)
    assert reading.offset + 3600 == MICROSECOND
    assert reading.error - 0.01 == MICROSECOND


@pytest.mark.parametrize("before", [0.05, -0.05, 3600.0, -3600.0])
def test_the_era_ends(hand: HandClock, before: float) -> None:
    """On 7 February 2036 NTP's seconds begin again at zero; neither side of that night has an offset of 136 years."""
    hand.wall = 2**32 - 2_208_988_800 - before
    with NtpServer(hand, Travel(hand, 0.02, there=0.1, back=0.1)) as server:
        reading = ask(hand, server)
    assert reading.offset - 0.02 == MICROSECOND
    assert reading.error - 0.1 == MICROSECOND


@given(st.floats(0, 6e9), st.floats(-2e9, 2e9))
def test_timestamps_keep_the_microsecond(unix: float, later: float) -> None:
    """From 1970 to 2160, two times up to sixty years apart have the same distance as timestamps as they had before."""
    assert apart(timestamp(unix + later), timestamp(unix)) == pytest.approx((unix + later) - unix, abs=5e-6)


def test_a_wrong_originate_timestamp_is_ignored(hand: HandClock) -> None:
    """A forged or late answer, which does not name our request, is passed over, and the right one behind it is read."""
    travel = Travel(hand, 0.5, there=0.01, back=0.01)

    def respond(packet: bytes) -> Iterable[bytes]:
        forged = bytes(Packet(packet, hand.wall + 999, hand.wall + 999, originate=12345))
        return [forged, bytes(Packet(packet, hand.wall, hand.wall, originate=0)), *travel(packet)]

    with NtpServer(hand, respond) as server:
        assert ask(hand, server).offset - 0.5 == MICROSECOND


def test_nothing_but_forged_answers_is_a_timeout(hand: HandClock) -> None:
    """However many come, they do not keep a request alive past its deadline."""

    def respond(packet: bytes) -> Iterable[bytes]:
        for _ in range(5):
            hand.pass_(0.1)
            yield bytes(Packet(packet, hand.wall, hand.wall, originate=1))

    assert refusal(hand, respond, seconds=0.3).reason == "timeout"


def test_silence_is_a_timeout(hand: HandClock) -> None:
    """Case 74: a firewall that drops UDP 123 looks like this."""
    assert refusal(hand, lambda packet: [], seconds=0.1).reason == "timeout"


def test_a_closed_port_is_refused(hand: HandClock) -> None:
    """Case 74: the kernel says that nobody listens, and nobody waits for the deadline."""
    with NtpServer(hand, Travel(hand)) as server:
        pass
    with pytest.raises(SourceError) as caught:
        ask(hand, server, seconds=60)
    assert caught.value.reason == "refused"
    assert str(server.port) in str(caught.value)


def test_a_name_without_an_address_is_dns() -> None:
    """Case 74: the message says which name."""
    with pytest.raises(SourceError, match=r"^no-such-server\.invalid: ") as caught:
        request("no-such-server.invalid", 123, Deadline(HandClock().mono + 5, HandClock().clock.mono))
    assert caught.value.reason == "dns"


def test_ipv6(hand: HandClock) -> None:
    """A server may have no IPv4 address."""
    with NtpServer(hand, Travel(hand, 1.0), host="::1") as server:
        assert ask(hand, server).offset - 1.0 == MICROSECOND


@pytest.mark.parametrize("code", [b"RATE", b"DENY", b"RSTR", b"X\0\0\0", b"\xff\x1b\x00\x07"])
def test_case_72_a_kiss_of_death_is_no_time(hand: HandClock, code: bytes) -> None:
    """Case 72: stratum 0 carries a code instead of a time, shown without what could harm a terminal."""
    failure = refusal(hand, lambda packet: [bytes(Packet(packet, 5, 5, stratum=0, reference=code))])
    assert isinstance(failure, KissError)
    assert failure.reason == "kod"
    assert str(failure).isprintable()


@pytest.mark.parametrize(("leap", "stratum"), [(3, 2), (0, 16), (0, 17), (3, 16)])
def test_case_71_a_server_that_does_not_know_the_time(hand: HandClock, leap: int, stratum: int) -> None:
    """Case 71: a server that calls itself unsynchronised is believed in that, and in nothing else."""
    failure = refusal(hand, lambda packet: [bytes(Packet(packet, hand.wall, hand.wall, leap=leap, stratum=stratum))])
    assert failure.reason == "unsynchronised"


@pytest.mark.parametrize("leap", [1, 2])
def test_an_announced_leap_second_is_no_fault(hand: HandClock, leap: int) -> None:
    """The month before a leap second is a month like any other."""
    with NtpServer(hand, lambda packet: [bytes(Packet(packet, hand.wall, hand.wall, leap=leap))]) as server:
        assert ask(hand, server).offset == MICROSECOND


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 5, 6, 7])
def test_an_answer_that_is_none_is_malformed(hand: HandClock, mode: int) -> None:
    """An echo of our own request, a broadcast or a control message is not a server's answer."""
    failure = refusal(hand, lambda packet: [bytes(Packet(packet, hand.wall, hand.wall, mode=mode))])
    assert failure.reason == "malformed"


@pytest.mark.parametrize("length", [0, 1, 20, 47])
def test_a_truncated_packet_is_malformed(hand: HandClock, length: int) -> None:
    """Half an answer is none."""
    failure = refusal(hand, lambda packet: [bytes(Packet(packet, hand.wall, hand.wall))[:length]])
    assert failure.reason == "malformed"


def test_extensions_behind_the_packet_do_no_harm(hand: HandClock) -> None:
    """A signature or other fields that we did not ask for may follow."""
    with NtpServer(hand, lambda packet: [bytes(Packet(packet, hand.wall, hand.wall)) + bytes(200)]) as server:
        assert ask(hand, server).offset == MICROSECOND


@pytest.mark.parametrize(("received", "sent"), [(0.0, -1.0), (-10.0, 0.0), (-1e9, 0.0)])
def test_times_that_cannot_be_are_malformed(hand: HandClock, received: float, sent: float) -> None:
    """A server cannot answer before it was asked, nor have held the question for longer than we waited."""
    failure = refusal(hand, lambda packet: [bytes(Packet(packet, hand.wall + received, hand.wall + sent))])
    assert failure.reason == "malformed"


def test_no_time_at_all_is_malformed(hand: HandClock) -> None:
    """Zero is NTP's word for unknown, not the year 1900."""
    failure = refusal(hand, lambda packet: [bytes(Packet(packet, -2_208_988_800, -2_208_988_800))])
    assert failure.reason == "malformed"


def test_a_coarse_clock_is_no_fault(hand: HandClock) -> None:
    """A server whose clock ticks 64 times a second may seem to have held the question longer than we waited."""
    with NtpServer(hand, lambda packet: [bytes(Packet(packet, hand.wall - 1 / 64, hand.wall))]) as server:
        reading = ask(hand, server)
    assert 0 < abs(reading.offset) <= reading.error + 1e-6


def test_requests_leave_nothing_behind(hand: HandClock) -> None:
    """Five hundred requests, answered or not, leave threads and descriptors as they were."""
    travel = Travel(hand)

    def footprint() -> tuple[int, int]:
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    with NtpServer(hand, lambda packet: travel(packet) if len(server.asked) % 2 else [b"no"]) as server:
        before = footprint()
        for _ in range(500):
            with contextlib.suppress(SourceError):
                ask(hand, server)
        assert footprint() == before
    assert len(server.asked) == 500
