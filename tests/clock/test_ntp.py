"""The collector of NTP servers: several servers, those that want to be left alone, and never too many requests."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import pytest

from exporter.board import Board, Key, State
from exporter.config import parse
from exporter.errors import ConfigError
from exporter.exposition import Exposition
from exporter.model import Note, Sample
from exporter.poller import Poller
from exporter.source import Source
from exporter.sources.clock import metrics
from exporter.sources.clock.databases import Databases
from exporter.sources.clock.ntp import Ntp
from exporter.sources.clock.settings import ClockSettings
from exporter.sources.readings import Reading, Readings
from exporter.timing import Deadline

from ..world import HandClock, series
from .server import NtpServer, Packet, Respond, Travel

HOUR = 3600.0
OFFSET = metrics.OFFSET.name


@pytest.fixture
def hand() -> HandClock:
    """Our clock."""
    return HandClock()


@contextmanager
def servers(hand: HandClock, *responds: Respond) -> Iterator[list[NtpServer]]:
    """As many servers, on addresses of their own and, as NTP wants it, on one port."""
    with ExitStack() as stack:
        first = stack.enter_context(NtpServer(hand, responds[0]))
        others = (
            NtpServer(hand, respond, f"127.0.0.{number}", first.port) for number, respond in enumerate(responds[1:], 2)
        )
        yield [first, *(stack.enter_context(other) for other in others)]


def collector(hand: HandClock, *named: str, port: int) -> Ntp:
    """The collector for these servers."""
    return Ntp(ClockSettings(ntp=named), hand.clock, port)


class Watching:
    """The clock source as it runs, with a scrape every five seconds for the first five minutes."""

    def __init__(self, hand: HandClock, ntp: Ntp, readings: Readings | None = None) -> None:
        self.hand, self.board, self.shown = hand, Board(), set[str]()
        self.exposition = Exposition(self.board, hand.clock)
        source = Source("clock", (Databases(readings or Readings(hand.clock), ntp.interval), ntp), 2.0)
        self.poller = Poller(source, self.board, hand.clock, lambda: 0.0)
        self.scraped_until, self.until = hand.mono + 300, 0.0

    def wait(self, timeout: float) -> bool:
        """Pass the time between two polls, and scrape in it."""
        end = min(self.hand.mono + timeout, self.until)
        while self.hand.mono < min(end, self.scraped_until):
            self.hand.pass_(min(5.0, end - self.hand.mono))
            self.shown |= self.references()
        self.hand.pass_(max(0.0, end - self.hand.mono))
        return self.hand.mono >= self.until

    def play(self, seconds: float) -> None:
        """Run for so many seconds."""
        self.until = self.hand.mono + seconds
        self.poller.run(self)

    def references(self) -> set[str]:
        """The clocks that have an offset on the page now."""
        page = series(self.exposition.page("text"))
        return {dict(labels)["reference"] for name, labels in page if name == OFFSET}

    def state(self, name: str = "ntp") -> State:
        """What the board says of a collector of the clock source."""
        return self.board.read()[Key("clock", name)]


def ask(hand: HandClock, ntp: Ntp) -> list[Sample | Note]:
    """One round of all servers."""
    return list(ntp.measure(ntp.fetch(Deadline(hand.mono + 2, hand.clock.mono)), hand.wall))


def test_each_server_has_an_offset_and_an_error(hand: HandClock) -> None:
    """Two servers that disagree are both shown: who is right is for a person to see."""
    with servers(hand, Travel(hand, 0.5, 0.01, 0, 0.01), Travel(hand, -0.5, 0.02, 0, 0.02)) as (a, _):
        samples = ask(hand, collector(hand, "127.0.0.1", "127.0.0.2", port=a.port))
    assert [(s.metric, s.labels[0], round(s.value, 5)) for s in samples if isinstance(s, Sample)] == [
        (metrics.OFFSET, "ntp:127.0.0.1", 0.5),
        (metrics.ERROR, "ntp:127.0.0.1", 0.01),
        (metrics.OFFSET, "ntp:127.0.0.2", -0.5),
        (metrics.ERROR, "ntp:127.0.0.2", 0.02),
    ]


def test_case_74_one_dead_server_of_two_is_no_failure(hand: HandClock) -> None:
    """Case 74: the living one is shown, and the dead one is named in a note."""
    with servers(hand, Travel(hand)) as (living,):
        watching = Watching(hand, collector(hand, "127.0.0.2", "127.0.0.1", port=living.port))
        watching.play(1)
    assert watching.state().up
    assert watching.references() == {"ntp:127.0.0.1"}
    (note,) = watching.state().notes
    assert note.startswith("127.0.0.2: nobody listens")


def test_case_74_all_dead_is_a_failure_with_the_reason_of_the_first(hand: HandClock) -> None:
    """Case 74: the message tells of every server."""
    watching = Watching(hand, collector(hand, "no-such-server.invalid", "127.0.0.1", port=1))
    watching.play(1)
    assert watching.state().reason == "dns"
    assert "no-such-server.invalid: " in watching.state().error
    assert "; 127.0.0.1: nobody listens" in watching.state().error


def test_case_74_a_silent_server_leaves_the_other_its_time(hand: HandClock) -> None:
    """Case 74: of two servers each has half of the time allowed, so silence of the first costs the second nothing."""
    with servers(hand, lambda packet: [], Travel(hand)) as (silent, _):
        ntp = Ntp(ClockSettings(ntp=("127.0.0.1", "127.0.0.2")), port=silent.port)
        answers = ntp.fetch(Deadline(time.monotonic() + 0.4))
    assert [answer.failure and answer.failure.reason for answer in answers] == ["timeout", None]


def test_case_74_no_old_offset_past_its_time_limit(hand: HandClock) -> None:
    """Case 74: an offset is gone after the second failure in a row, at the latest three and a half intervals on."""
    with servers(hand, Travel(hand)) as (living,):
        watching = Watching(hand, collector(hand, "127.0.0.1", port=living.port))
        watching.play(1)
    assert watching.references() == {"ntp:127.0.0.1"}
    watching.play(66)
    assert watching.state().reason == "refused"
    assert watching.references() == {"ntp:127.0.0.1"}
    watching.play(66)
    assert watching.references() == set()


@pytest.mark.parametrize(("code", "requests"), [(b"RATE", 9), (b"DENY", 6)])
def test_case_72_a_kiss_of_death_is_obeyed(hand: HandClock, code: bytes, requests: int) -> None:
    """Case 72: no offset, reason `kod`, and a server that wants to be left alone is asked a few times in hours."""
    with servers(hand, lambda packet: [bytes(Packet(packet, 5, 5, stratum=0, reference=code))]) as (server,):
        watching = Watching(hand, collector(hand, "127.0.0.1", port=server.port))
        watching.play(6 * HOUR)
    assert watching.shown == set()
    assert set(watching.state().errors) == {"kod"}
    assert watching.state().up is False
    assert len(server.asked) == requests
    gaps = [later - earlier for earlier, later in pairwise(server.asked)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 4 * 64
    assert gaps[-1] == gaps[-2] <= 1.2 * HOUR


def test_case_72_forgiven_after_the_silence(hand: HandClock) -> None:
    """Case 72: a server that gives the time again is asked at the usual pace again, and its next kiss is its first."""
    answers = iter([b"RATE", None, b"RATE", None])
    travel = Travel(hand)

    def respond(packet: bytes) -> Iterable[bytes]:
        code = next(answers, None)
        return travel(packet) if code is None else [bytes(Packet(packet, 5, 5, stratum=0, reference=code))]

    with servers(hand, respond) as (server,):
        Watching(hand, collector(hand, "127.0.0.1", port=server.port)).play(700)
    gaps = [later - earlier for earlier, later in pairwise(server.asked)]
    assert [round(gap / 66) for gap in gaps[:4]] == [4, 1, 4, 1]


def test_case_72_one_unfriendly_server_of_two_is_a_note(hand: HandClock) -> None:
    """Case 72: while one is left alone, the other is asked as ever."""
    kiss: Respond = lambda packet: [bytes(Packet(packet, 5, 5, stratum=0, reference=b"RATE"))]  # noqa: E731
    with servers(hand, kiss, Travel(hand)) as (unfriendly, friendly):
        watching = Watching(hand, collector(hand, "127.0.0.1", "127.0.0.2", port=friendly.port))
        watching.play(HOUR)
    assert watching.references() == {"ntp:127.0.0.2"}
    assert "left alone" in watching.state().notes[0]
    assert (len(unfriendly.asked), len(friendly.asked)) == (4, 55)


def test_case_72_never_two_requests_within_64_seconds(hand: HandClock) -> None:
    """Case 72: however slow the server before it is, and however often somebody scrapes, no server is asked sooner."""
    slow = Travel(hand)

    def sometimes_slow(packet: bytes) -> Iterable[bytes]:
        slow.there = 0.9 - slow.there  # 0.9 s, then none, so the second is asked late and then early
        return slow(packet)

    with servers(hand, sometimes_slow, Travel(hand)) as both:
        watching = Watching(hand, collector(hand, "127.0.0.1", "127.0.0.2", port=both[0].port))
        watching.play(3 * HOUR)
    for server in both:
        assert len(server.asked) > 150
        assert min(later - earlier for earlier, later in pairwise(server.asked)) >= 64


def test_case_88_servers_that_fail_leave_the_databases_clocks(hand: HandClock) -> None:
    """Case 88: with no NTP server in reach only that collector is down."""
    readings = Readings(hand.clock)
    readings.put(Reading("database:database", 1, 0.01))
    watching = Watching(hand, collector(hand, "127.0.0.1", port=1), readings)
    watching.play(1)
    assert (watching.state("databases").up, watching.state("ntp").up) == (True, False)
    assert watching.references() == {"database:database"}


@pytest.mark.parametrize(
    ("clock", "path"),
    [
        ({"ntp": ["a"], "interval": "30s"}, "clock.interval"),
        ({"ntp": ["a", "b", "a"]}, "clock.ntp"),
        ({"ntp": [""]}, "clock.ntp.0"),
    ],
)
def test_settings_that_would_hurt_a_server_are_refused(clock: dict[str, object], path: str) -> None:
    """Asking more often than every 64 s, or one server twice, is refused by the name of the setting."""
    connections = {"database": {"driver": "database", "dsn": "postgresql://127.0.0.1/app"}}
    with pytest.raises(ConfigError) as caught:
        parse({"connections": connections, "clock": clock})
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [path]
