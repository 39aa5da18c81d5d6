"""
One connection to a database, over which one question at a time is asked.

A question goes out as one message of several statements. PostgreSQL runs such a message as
one transaction, which ends with it, by an error as well ("Multiple Statements in a Simple
Query" in its manual). So the server never waits for us inside a transaction, whatever
becomes of us, and nothing outlives the message: it works behind PgBouncer in transaction mode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql

from ...errors import SourceError
from ...timing import BELIEF, Clock, Deadline
from ..readings import Reading, Readings
from .connection import Connection, connect
from .errors import question_failed
from .settings import Database

APPLICATION_NAME = "queue-exporter"
LOCK_TIMEOUT = 0.2  # seconds; behind an ALTER TABLE we give up rather than queue up
SERVER_SHARE = 0.9  # of the time left is the server's, so that its own timeout comes before ours

Row = dict[str, Any]


def _questions() -> dict[str, str]:
    text = (resources.files(__package__) / "questions.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


QUESTIONS = _questions()


class Session:
    """Asks the questions of `questions.sql`; connects when there is no connection, and again when it was lost."""

    def __init__(self, name: str, settings: Database, readings: Readings, clock: Clock = Clock()) -> None:
        self.name, self.settings, self.readings, self.clock = name, settings, readings, clock
        self.connection: Connection | None = None

    def ask(self, question: str, deadline: Deadline, values: Mapping[str, Any] | None = None) -> list[Row]:
        """The rows that answer the question, in which `{name}` stands for `values["name"]`. Raises `SourceError`."""
        was_idle = self.connection is not None and self.connection.deadline is not deadline
        try:
            return self._ask(question, deadline, values or {})
        except SourceError as failure:
            if not (was_idle and failure.unreachable) or failure.reason == "timeout":
                raise
        # A restart, a proxy or a firewall may have closed the connection since the last poll: that is no failure yet.
        return self._ask(question, deadline, values or {})

    def ask_table(self, question: str, deadline: Deadline) -> list[Row]:
        """`ask`, for a question about the jobs table's entry in the catalogue."""
        return self.ask(question, deadline, {"schema": self.settings.schema_, "table": self.settings.table})

    def close(self) -> None:
        """Close the connection; the next question opens a new one."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def _ask(self, question: str, deadline: Deadline, values: Mapping[str, Any]) -> list[Row]:
        connection = self.connection = self.connection or connect(self._params(), deadline)
        connection.deadline = deadline
        text = message(question, deadline.left(), values)
        sent = self.clock.wall()
        try:
            cursor = connection.execute(text)
        except psycopg.Error as error:
            raise question_failed(error, lost=not connection.idle) from None
        finally:
            if not connection.idle:  # lost, or given up in the middle
                self.close()
        received = self.clock.wall()
        (limits,), answer = [cursor.fetchall() for _ in cursor.results() if cursor.description]
        reading = Reading(f"database:{self.name}", limits["now"], sent, received)
        self.readings.put(reading, BELIEF * self.settings.interval)
        return answer

    def _params(self) -> dict[str, Any]:
        """Of the settings. The server converts all text to UTF-8, so that no name in the settings is beyond us."""
        return self.settings.parameters() | {"application_name": APPLICATION_NAME, "client_encoding": "UTF8"}


def message(question: str, left: float, values: Mapping[str, Any]) -> sql.Composed:
    """Limits and question. Values are quoted on our side, since the simple protocol takes none; 0 would be no limit."""
    limits = {
        "statement_timeout": max(1, int(left * SERVER_SHARE * 1000)),
        "lock_timeout": max(1, int(min(left * SERVER_SHARE, LOCK_TIMEOUT) * 1000)),
    }
    return sql.SQL(QUESTIONS["before"]).format(**limits) + sql.SQL(QUESTIONS[question]).format(**values)
