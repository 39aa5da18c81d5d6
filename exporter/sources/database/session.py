"""
One connection to a database, over which one question at a time is asked.

A question goes out in a single message: BEGIN READ ONLY, the limits, the question, COMMIT.
So the server never waits for us inside a transaction, whatever becomes of us, and nothing
outlives the transaction: the connection works behind PgBouncer in transaction mode.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from importlib import resources
from typing import Any, TypeVar

import psycopg
from psycopg import adapt, generators, pq, sql, waiting
from psycopg.conninfo import conninfo_attempts, conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from ...errors import SourceError
from ...timing import Clock, Deadline
from ..clock.readings import Reading, Readings
from ..resolve import resolve
from .errors import named
from .settings import Database

APPLICATION_NAME = "queue-exporter"
LOCK_TIMEOUT = 0.2  # seconds; behind an ALTER TABLE we give up rather than queue up
SERVER_SHARE = 0.9  # of the time left is the server's, so that its own timeout comes before ours
TEXT_TYPES = ("text", "varchar", "bpchar", "name")
TICK = 0.1  # seconds between two looks at the deadline

Row = dict[str, Any]
Answer = TypeVar("Answer")


def _questions() -> dict[str, str]:
    text = (resources.files(__package__) / "questions.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


QUESTIONS = _questions()


class LostError(Exception):
    """The connection broke while a question was on its way."""


class Lenient(adapt.Loader):
    """Text whose bytes may not be what the database's encoding promises (SQL_ASCII promises nothing)."""

    def load(self, data: Any) -> str:
        encoding = self.connection.info.encoding if self.connection else "utf-8"
        return bytes(data).decode("utf-8" if encoding == "ascii" else encoding, "replace")


class Connection(psycopg.Connection[Row]):
    """A connection on which every wait ends at the deadline: a deaf peer outlasts any timeout of the server's."""

    deadline: Deadline | None = None

    def wait(self, gen: Generator[Any, Any, Answer], interval: float = TICK, timeout: float | None = None) -> Answer:
        return super().wait(gen, interval, self.deadline.left() if self.deadline else timeout)


class Session:
    """Asks the questions of `questions.sql`; connects when there is no connection, and again when it was lost."""

    def __init__(self, name: str, settings: Database, readings: Readings, clock: Clock = Clock()) -> None:
        self.name, self.settings, self.readings, self.clock = name, settings, readings, clock
        self.connection: Connection | None = None

    def ask(self, question: str, deadline: Deadline, values: Mapping[str, Any] | None = None) -> list[Row]:
        """
        The rows that answer the question. Raises `SourceError`.

        In `values`, a `sql.Composable` takes the place of `{name}` in the question, anything else of `%(name)s`.
        """
        for fresh in (self.connection is None, True):
            try:
                return self._ask(question, deadline, values or {})
            except LostError as lost:
                # An idle connection may have been closed by a restart, a proxy or a firewall:
                # that is no failure yet.
                if fresh:
                    raise SourceError("connect", str(lost), unreachable=True) from None
        raise AssertionError("the second turn returns or raises")

    def ask_table(self, question: str, deadline: Deadline) -> list[Row]:
        """`ask`, for a question about the jobs table's entry in the catalogue."""
        return self.ask(question, deadline, {"schema": self.settings.schema_, "table": self.settings.table})

    def close(self) -> None:
        """Close the connection; the next question opens a new one."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def _ask(self, question: str, deadline: Deadline, values: Mapping[str, Any]) -> list[Row]:
        connection = self.connection = self.connection or self._connect(deadline)
        connection.deadline = deadline
        cursor = psycopg.ClientCursor(connection, row_factory=dict_row)
        message, plain = self._message(question, deadline, values), _plain(values)
        sent = self.clock.wall()
        try:
            cursor.execute(message, plain)
        except (SourceError, psycopg.errors._WaitTimeout):  # noqa: SLF001  # what `wait` raises has no public name
            self.close()
            raise SourceError("timeout", "no answer from the server in time", unreachable=True) from None
        except psycopg.Error as error:
            problem = named(error)
            self._recover()
            raise problem if self.connection else LostError(str(problem)) from None
        received = self.clock.wall()
        _, (limits,), answer = [cursor.fetchall() for _ in cursor.results() if cursor.description]
        self.readings.put(Reading(f"database:{self.name}", limits["now"], sent, received))
        return answer

    def _message(self, question: str, deadline: Deadline, values: Mapping[str, Any]) -> sql.Composed:
        left = deadline.left()
        limits = {
            "statement_timeout": sql.Literal(int(left * SERVER_SHARE * 1000)),
            "lock_timeout": sql.Literal(int(min(left * SERVER_SHARE, LOCK_TIMEOUT) * 1000)),
        }
        names = {key: value for key, value in values.items() if isinstance(value, sql.Composable)}
        return sql.SQL("").join(
            (
                sql.SQL(QUESTIONS["before"]).format(**limits),
                sql.SQL(QUESTIONS[question]).format(**names),
                sql.SQL("COMMIT"),
            )
        )

    def _recover(self) -> None:
        """After an error: leave the broken transaction, or drop a connection that cannot."""
        connection = self.connection
        if connection is None or connection.broken:
            self.close()
        elif connection.info.transaction_status is not pq.TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except (psycopg.Error, SourceError):
                self.close()

    def _connect(self, deadline: Deadline) -> Connection:
        attempts = list(self._attempts(deadline))
        failure: SourceError | None = None
        for tried, attempt in enumerate(attempts):
            share = deadline.left() / (len(attempts) - tried)  # so that one dead host leaves time for the next
            try:
                pgconn = waiting.wait_conn(
                    generators.connect(make_conninfo("", **attempt)), min(TICK, share), timeout=share
                )
                return _prepared(Connection(pgconn))
            except psycopg.errors._WaitTimeout:  # noqa: SLF001  # as above
                failure = SourceError("timeout", "the server did not let us in in time", unreachable=True)
            except psycopg.Error as error:
                failure = named(error, connecting=True)
        raise failure or SourceError("connect", "no host to connect to", unreachable=True)

    def _attempts(self, deadline: Deadline) -> Generator[dict[str, Any], None, None]:
        """What to try: every address of every host, in order."""
        settings = self.settings
        params: dict[str, Any] = conninfo_to_dict(
            settings.dsn.get_secret_value(), application_name=APPLICATION_NAME, fallback_application_name=None
        )
        if settings.password is not None:
            params["password"] = settings.password.get_secret_value()
        for attempt in conninfo_attempts(params):
            host = str(attempt.get("host") or os.environ.get("PGHOST") or "")
            if not host or host.startswith(("/", "@")) or attempt.get("hostaddr"):
                yield attempt
            else:
                for address in resolve(host, deadline):
                    yield attempt | {"hostaddr": address}


def _prepared(connection: Connection) -> Connection:
    connection.prepare_threshold = None  # a prepared statement would outlive the transaction
    connection.autocommit = True  # the transaction is in our own message
    for name in TEXT_TYPES:
        connection.adapters.register_loader(name, Lenient)
    return connection


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if not isinstance(value, sql.Composable)}
