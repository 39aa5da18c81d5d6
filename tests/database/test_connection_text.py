"""Text on its way to the database and back: nothing in a name is ever taken for SQL, in any encoding."""

from __future__ import annotations

import psycopg

from exporter.demo import laravel
from exporter.demo.postgres import Postgres

from ..world import add_jobs, poll, state, value, watched
from .onlooker import Db

ODD = (
    "a'b", "''", 'a"b', "a\\b", "\\'; --", "100%", "%s", "%(now)s", "{now}", "{}", "{{", "$$", "E'\\'", "a\nb", ";",
)  # fmt: skip


def test_queues_named_like_sql(dsn: str, db: Db) -> None:
    """Queues whose names hold quotes, backslashes, percent signs or braces are counted by their own retry_after."""
    db.execute(f"ALTER DATABASE {db.info.dbname} SET standard_conforming_strings = off".encode())
    add_jobs(db, *[(name, 50, 60) for name in ODD])
    for discover in (True, False):
        queues = {name: {"retry_after": 40} for name in ODD}
        with watched(dsn, queues=queues, discover=discover) as watching:
            poll(watching, "jobs")
            assert state(watching, "jobs").error == ""
            for name in ODD:
                assert value(watching, "jobs", queue=name, state="expired") == 1
                assert value(watching, "jobs", queue=name, state="reserved") == 0


def test_a_database_in_euc_jp(server: Postgres) -> None:
    """What the database converts is shown; a name in the settings that its encoding lacks is told as the reason."""
    with psycopg.connect(server.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE japanese ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0")
        with psycopg.connect(server.dsn("japanese"), autocommit=True, client_encoding="UTF8") as db:
            db.execute(laravel.TABLES)
            add_jobs(db, ("メール", 50, 60))
        with watched(server.dsn("japanese"), queues={"メール": {"retry_after": 40}}) as watching:
            poll(watching)
            assert value(watching, "jobs", queue="メール", state="expired") == 1
            assert {state(watching, turn.collector.name).error for turn in watching.pollers[0].turns} == {""}
        with watched(server.dsn("japanese"), queues={"🚀": {"retry_after": 40}}) as watching:
            poll(watching, "jobs")
            assert state(watching, "jobs").reason == "malformed"
            assert state(watching, "jobs").error.startswith("character with byte sequence")
        owner.execute("DROP DATABASE japanese WITH (FORCE)")
