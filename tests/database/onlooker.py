"""What somebody else sees of the exporter's sessions, over a connection of his own."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg

from exporter.sources.database.session import APPLICATION_NAME

Db = psycopg.Connection[Any]


class Seen(NamedTuple):
    """One of our sessions in pg_stat_activity."""

    pid: int
    state: str
    in_transaction: bool
    waits_for: str | None


def ours(onlooker: Db) -> list[Seen]:
    """Our sessions in the onlooker's database."""
    rows = onlooker.execute(
        "SELECT pid, state, xact_start IS NOT NULL, wait_event FROM pg_stat_activity"
        " WHERE application_name = %s AND datname = current_database()",
        [APPLICATION_NAME],
    )
    return [Seen(*row) for row in rows]


def terminate(onlooker: Db) -> None:
    """Ends our sessions, as an administrator would, and waits until they are gone."""
    for session in ours(onlooker):
        onlooker.execute("SELECT pg_terminate_backend(%s, 5000)", [session.pid])
