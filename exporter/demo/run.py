"""The demonstration: a server, a world in it, and the exporter that watches it."""

from __future__ import annotations

from threading import Event

import psycopg

from .. import app, config
from .postgres import Postgres

LISTEN = "127.0.0.1:10087"


def demo(incident: str | None, stop: Event) -> int:
    """Run until `stop` is set. Returns the exit status."""
    print("starting PostgreSQL", flush=True)
    with Postgres() as postgres:
        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE jobs (id bigserial PRIMARY KEY, queue varchar(255) NOT NULL, payload text NOT NULL,"
                " attempts smallint NOT NULL, reserved_at int, available_at int NOT NULL, created_at int NOT NULL)"
            )
        settings = config.parse(
            {
                "web": {"listen": LISTEN},
                "connections": {"database": {"driver": "database", "dsn": postgres.dsn(), "queues": {"default": None}}},
            }
        )
        wired = app.build(settings)
        server = app.listen(wired, settings)
        print(f"the exporter is on http://{LISTEN}; Ctrl-C stops everything", flush=True)
        wired.serve(server, stop)
    print("stopped", flush=True)
    return 0
