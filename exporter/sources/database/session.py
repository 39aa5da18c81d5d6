"""
One connection to a database, over which one question at a time is asked.

A question goes out as one message of several statements. PostgreSQL runs such a message as
one transaction, which ends with it, by an error as well ("Multiple Statements in a Simple
Query" in its manual). So the server never waits for us inside a transaction, whatever
becomes of us, and nothing outlives the message: it works behind PgBouncer in transaction mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from ...errors import SourceError
from ...model import Note
from ...queues import OTHER
from ...timing import BELIEF, Clock, Deadline
from ..classes import JobClasses
from ..readings import Reading, Readings
from ..remembered import Remembered, called_as_shown
from .connection import Connection, connect
from .errors import question_failed
from .questions import SERVER_SHARE, message, names
from .settings import Database

if TYPE_CHECKING:
    from ..resp.cache import RedisCache

APPLICATION_NAME = "queue-exporter"
NEARLY = 0.9  # of a time limit: a question that was ended sooner was not ended by it
LAG_INTERVALS = 2  # a standby further behind than so many intervals tells the past

Row = dict[str, Any]


class Pass(NamedTuple):
    """What the last pass over the jobs table found, for who looks at single jobs of it."""

    mono: float  # when it began, on the monotonic clock
    lag: float  # seconds by which what it saw was older, on a standby
    held: frozenset[int]  # ids of the jobs that a worker held
    complete: bool  # whether these are all of them
    queues: Mapping[str, str]  # each queue, and the name it is shown under


@dataclass
class Passes:
    """What is known of the passes over the jobs table."""

    last: Pass | None = None  # that succeeded; None before the first, and on a standby too far behind
    missed: int = 0  # that failed since

    def begin(self) -> None:
        """Until it ends well, it failed."""
        self.missed += 1

    def end(self, found: Pass | None) -> None:
        """It ended well, if perhaps without anything that may be shown."""
        self.last, self.missed = found, 0


class GaveUpError(SourceError):
    """
    The server ended a question before it had the answer, and can be asked on: for who asked too much, an answer.

    `limit` is the time limit in seconds that it had reached; None where something else ended it: a
    cancel request, or a standby's replay.
    """

    def __init__(self, message: str, limit: float | None) -> None:
        super().__init__("timeout", message)
        self.limit = limit


class Session:
    """What the collectors of one database share: a connection, what it is asked by, and what is shown by name."""

    def __init__(
        self, name: str, settings: Database, readings: Readings, clock: Clock = Clock(), *, once: bool = False
    ) -> None:
        self.name, self.settings, self.readings, self.clock = name, settings, readings, clock
        self.once = once  # whether nobody will ask again
        self.names, self.classes = names(settings), JobClasses()
        self.remembered = Remembered(settings.queues, lambda _: OTHER)
        self.passes = Passes()
        self.connection: Connection | None = None
        self.cache = redis_cache(settings)

    def poll(self, deadline: Deadline) -> Poll:
        """A poll, whose questions must all be answered by the deadline."""
        return Poll(self, deadline)

    def called_as_shown(self) -> tuple[str, ...]:
        """The queues that can be asked for by the name that they are shown under, the named ones first."""
        return called_as_shown(self.settings.queues, self.passes.last.queues if self.passes.last else {}, OTHER)

    def close(self) -> None:
        """Close the connections; the next question opens a new one."""
        self.hang_up()
        if self.cache:
            self.cache.close()

    def hang_up(self) -> None:
        """Close the connection to the database."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


def redis_cache(settings: Database) -> RedisCache | None:
    """The cache that workers look at, where it is in a Redis. Its driver is imported only then."""
    target = settings.cache.target() if settings.cache else None
    if not (settings.cache and target):
        return None
    from ..resp.cache import RedisCache

    return RedisCache(target, settings.cache.prefixes())


class Poll:
    """One poll of one collector: asks the questions of the .sql files, connecting where there is no connection."""

    def __init__(self, session: Session, deadline: Deadline) -> None:
        self.session, self.deadline = session, deadline
        self.answered = False
        self.in_recovery = False  # whether the database is a standby, as the last answer said
        self.role_limit = inf  # seconds that a question of the role's may take, as far as an answer told
        self.now = 0.0  # the database's clock when it began with the last answer: Unix time

    def ask(self, question: str, limit: float = inf, **values: Any) -> list[Row]:
        """
        The rows that answer the question, in which `{name}` stands for a value or one of the session's names.

        The server gives up after `limit` seconds. Raises `SourceError`, and `GaveUpError` where it gave up.
        """
        was_idle = not self.answered and self.session.connection is not None
        try:
            return self._ask(question, limit, values)
        except SourceError as failure:
            if failure.reason == "timeout" or not (was_idle and failure.unreachable):
                raise
        # A restart, a proxy or a firewall may have closed the connection since the last poll: that is no failure yet.
        return self._ask(question, limit, values)

    def replay_lag(self) -> float | None:
        """Seconds that a standby is behind its primary, 0 for a primary; None when it cannot be known."""
        if self.answered and not self.in_recovery:
            return 0.0
        lag: float | None = self.ask("standby")[0]["replay_lag"]
        return lag

    def _ask(self, question: str, limit: float, values: dict[str, Any]) -> list[Row]:
        session = self.session
        connection = session.connection = session.connection or connect(self._parameters(), self.deadline)
        connection.deadline = self.deadline
        left = self.deadline.left()
        limit = min(limit, left * SERVER_SHARE)
        text = message(question, session.names | values, limit)
        sent = session.clock.wall()
        try:
            cursor = connection.execute(text)
        except psycopg.Error as error:
            failure = question_failed(error, lost=not connection.idle)
            raise self._gave_up(failure, min(limit, self.role_limit), left) from None
        finally:
            if not connection.idle:  # lost, or given up in the middle
                session.hang_up()
        received = session.clock.wall()
        (server,), answer = [cursor.fetchall() for _ in cursor.results() if cursor.description]
        self.answered, self.in_recovery, self.now = True, server["in_recovery"], server["now"]
        self.role_limit = server["role_limit"] or inf
        reading = Reading.between(f"database:{session.name}", server["now"], sent, received)
        session.readings.put(reading, BELIEF * session.settings.interval)
        return answer

    def _gave_up(self, failure: SourceError, limit: float, left: float) -> SourceError:
        """
        The failure, as `GaveUpError` where it is one.

        What ended the question is told by the time that it took: the words are the server's, in its own language.
        """
        if failure.reason != "timeout" or failure.unreachable:
            return failure
        took = left - self.deadline.left()
        return GaveUpError(str(failure), limit if took >= NEARLY * limit else None)

    def _parameters(self) -> dict[str, Any]:
        """Of the settings. The server converts all text to UTF-8, so that no name in the settings is beyond us."""
        ours = {"application_name": APPLICATION_NAME, "client_encoding": "UTF8"}
        return self.session.settings.parameters() | ours


def too_far_behind(lag: float | None, interval: float) -> Note | None:
    """Why nothing may be shown of the rows that a standby has, if it is this far behind its primary."""
    if lag is not None and lag <= LAG_INTERVALS * interval:
        return None
    behind = "an unknown time" if lag is None else f"{lag:.0f} s"
    return Note(f"the standby is {behind} behind its primary, so its rows are not shown", withholds=True)
