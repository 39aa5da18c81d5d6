"""
Our clock against NTP servers. Laravel compares `available_at` with PHP's clock, so a host
whose clock is off runs delayed jobs early or late, and takes over other workers' jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...timing import Clock, Deadline
from . import metrics
from .request import Exchange, KissError, reading, request
from .settings import PORT, ClockSettings

GO_AWAY = ("DENY", "RSTR")  # "stop sending packets to that server": RFC 5905, section 7.4
FIRST_SILENCE, LONGEST_SILENCE = 4, 64  # intervals for which a server that said so is left alone


class Answer(NamedTuple):
    """What one server made of one request: an exchange, or why there is none."""

    exchange: Exchange | None
    failure: SourceError | None


class Ntp:
    """Asks every server once per interval, and one that sent a kiss-o'-death far less often."""

    name = "ntp"
    metrics: tuple[Metric, ...] = metrics.METRICS

    def __init__(self, settings: ClockSettings, clock: Clock = Clock(), port: int = PORT) -> None:
        self.settings, self.clock, self.port = settings, clock, port
        # A server may be asked late in one round, after a dead one, and early in the next.
        self.interval = settings.interval + settings.timeout
        self.silence: dict[str, float] = {}  # server → seconds to leave it alone, since it said so
        self.not_before: dict[str, float] = {}  # server → monotonic time

    def fetch(self, deadline: Deadline) -> list[Answer]:
        """One answer for each server. Raises `SourceError` if none of them gave the time."""
        servers = self.settings.ntp
        answers = [self._answer(server, deadline.share(len(servers) - asked)) for asked, server in enumerate(servers)]
        failures = [answer.failure for answer in answers if answer.failure]
        if len(failures) == len(answers):
            raise SourceError(failures[0].reason, "; ".join(str(failure) for failure in failures))
        return answers

    def measure(self, raw: list[Answer], now: float) -> Iterable[Sample | Note]:
        """Offset and error of each server that gave the time, and a note for each that did not."""
        yield from metrics.samples([reading(answer.exchange) for answer in raw if answer.exchange])
        yield from (Note(str(answer.failure)) for answer in raw if answer.failure)

    def _answer(self, server: str, deadline: Deadline) -> Answer:
        if self.clock.mono() < self.not_before.get(server, float("-inf")):
            return Answer(None, SourceError("kod", f"{server}: told us to ask less often, so it is left alone"))
        try:
            exchange = request(server, self.port, deadline, self.clock)
        except KissError as kiss:
            self._leave_alone(server, kiss.code)
            return Answer(None, kiss)
        except SourceError as failure:
            return Answer(None, failure)
        self.silence.pop(server, None)
        return Answer(exchange, None)

    def _leave_alone(self, server: str, code: str) -> None:
        """Twice as long each time; one that wants to see us gone is asked about once an hour, if that changed."""
        longest = LONGEST_SILENCE * self.interval
        doubled = 2 * self.silence.get(server, FIRST_SILENCE / 2 * self.interval)
        self.silence[server] = longest if code in GO_AWAY else min(doubled, longest)
        self.not_before[server] = self.clock.mono() + self.silence[server]
