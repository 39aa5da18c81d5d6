"""The questions of the .sql files beside this one, with our limits and names filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from psycopg import sql

from ... import queues
from .settings import Database

LOCK_TIMEOUT = 0.2  # seconds; behind an ALTER TABLE we give up rather than queue up
SERVER_SHARE = 0.9  # of the time left is the server's, so that its own timeout comes before ours
HEARD_OF = 35.0  # seconds; an idle primary is heard of every 30 s, half of the time limits for WAL on both sides
MOST_HELD = 2000  # jobs that are held and looked at one by one
NOW = sql.SQL("(SELECT floor(extract(epoch FROM now()))::bigint)")

Names = Mapping[str, Any]


def _questions() -> dict[str, str]:
    """By name, of all files; what stands above the first of a file is for people."""
    found: dict[str, str] = {}
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".sql"):
            parts = re.split(r"^-- name: (\w+)\n", file.read_text("utf-8"), flags=re.MULTILINE)
            found |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return found


QUESTIONS = _questions()


def message(question: str, names: Names, limit: float) -> sql.Composed:
    """
    Limits and question. The server gives up after `limit` seconds.

    Values are quoted on our side, since the simple protocol takes none; 0 would be no limit.
    """
    limits = {
        "statement_timeout": max(1, int(limit * 1000)),
        "lock_timeout": max(1, int(min(limit, LOCK_TIMEOUT) * 1000)),
    }
    return sql.SQL(QUESTIONS["before"]).format(**limits) + sql.SQL(QUESTIONS[question]).format(**names)


def names(settings: Database) -> dict[str, Any]:
    """What stands for each `{name}` in a question. A table that is set to null has none."""
    table = {"schema": settings.schema_, "table": settings.table}
    tables = {
        "jobs": settings.table,
        "failed_jobs": settings.failed_table,
        "cache": settings.cache and settings.cache.table,
    }
    return {
        **table,
        **{name: sql.Identifier(settings.schema_, table) for name, table in tables.items() if table},
        "parts": sql.SQL(QUESTIONS["parts"]).format(**table),
        "wanted": sql.SQL("true") if settings.discover else sql.SQL("queue = ANY({})").format([*settings.queues]),
        "now": NOW,
        "retry_after": _retry_after(settings),
        "earliest": queues.EARLIEST,
        "ten_years": queues.TEN_YEARS,
        "heard_of": HEARD_OF,
        "most_held": MOST_HELD,
    }


def _retry_after(settings: Database) -> sql.Composable:
    """Seconds that apply to a row, as an expression."""
    own = [(name, queue.retry_after) for name, queue in settings.queues.items() if queue.retry_after is not None]
    if not own:
        return sql.Literal(settings.retry_after)
    cases = sql.SQL(" ").join(sql.SQL("WHEN {} THEN {}").format(name, after) for name, after in own)
    return sql.SQL("CASE queue {} ELSE {} END").format(cases, settings.retry_after)
