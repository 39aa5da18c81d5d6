"""The `activity` collector on small servers: limits on connections, and what holds the horizon without a session."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import pq

from exporter.demo.postgres import Postgres

from ..conftest import debian_postgres
from ..patience import until
from ..world import HandClock, poll, value, watched

Db = psycopg.Connection[Any]

AGE = "database_oldest_transaction_age_seconds"
SETTINGS = {"max_prepared_transactions": "5", "max_connections": "20", "superuser_reserved_connections": "4"}


@pytest.fixture(scope="module", params=["debian", "wheel"])
def small(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """A server with twenty connections, of which some are reserved, and with prepared transactions."""
    if request.param == "debian":
        binaries, settings = debian_postgres(), SETTINGS
    else:
        binaries, settings = None, SETTINGS | {"reserved_connections": "2"}
    with Postgres(binaries, settings) as server:
        yield server


@pytest.fixture
def db(small: Postgres) -> Iterator[Db]:
    """A session there."""
    with psycopg.connect(small.dsn(), autocommit=True) as connection:
        yield connection


class Standby:
    """As much of a standby as sends feedback: the xmin that its own queries need."""

    def __init__(self, dsn: str, db: Db, slot: str = "") -> None:
        self.pgconn = pq.PGconn.connect(f"{dsn}?replication=true".encode())
        (lsn,) = db.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
        slot = f"SLOT {slot}" if slot else ""
        started = self.pgconn.exec_(f"START_REPLICATION {slot} PHYSICAL {lsn}".encode())
        assert started.status == pq.ExecStatus.COPY_BOTH, started.get_error_message()

    def need(self, xmin: int) -> None:
        """Send "hot standby feedback", of PostgreSQL's streaming replication protocol."""
        self.pgconn.put_copy_data(struct.pack("!cqIIII", b"h", 0, xmin, 0, 0, 0))
        self.pgconn.flush()

    def close(self) -> None:
        self.pgconn.finish()


def next_xid(db: Db) -> int:
    """A transaction id that is new."""
    (xid,) = db.execute("SELECT pg_current_xact_id()::text::int").fetchone() or (0,)
    return int(xid)


def test_usage_leaves_out_what_is_reserved(small: Postgres, db: Db) -> None:
    """Usage is against the connections that an application can get: without those for superusers, and from PostgreSQL
    16 on without `reserved_connections`."""
    free = 20 - 4 - (2 if db.info.server_version >= 160000 else 0)
    with ExitStack() as stack, watched(small.dsn()) as app:
        poll(app, "activity")
        assert value(app, "database_connections_max") == 20
        assert value(app, "database_connections_reserved") == 20 - free
        assert value(app, "database_connection_usage_ratio") == 2 / free  # this test and the exporter
        for _ in range(free):
            stack.enter_context(psycopg.connect(small.dsn()))
        poll(app, "activity")
        assert value(app, "database_connection_usage_ratio") == (2 + free) / free  # a superuser may go past it


def test_a_prepared_transaction_holds_the_horizon(small: Postgres, db: Db) -> None:
    """A transaction that was prepared and forgotten has an age of its own, though no session has it open."""
    with watched(small.dsn()) as app:
        poll(app, "activity")
        assert value(app, AGE, holder="prepared") == 0
        began = time.time()
        db.execute("BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'forgotten'")
        prepared = time.time()
        until(lambda: time.time() - prepared > 0.3)
        poll(app, "activity")
        assert 0.3 < (value(app, AGE, holder="prepared") or 0) < time.time() - began + 1
        assert value(app, AGE, holder="idle_in_transaction") == 0
        db.execute("ROLLBACK PREPARED 'forgotten'")
        poll(app, "activity")
        assert value(app, AGE, holder="prepared") == 0


def test_a_prepared_transaction_of_another_database_holds_nothing_here(small: Postgres, db: Db) -> None:
    """Old rows of this database are kept by its own transactions alone."""
    db.execute("CREATE DATABASE elsewhere")
    with psycopg.connect(small.dsn("elsewhere"), autocommit=True) as other:
        other.execute("BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'other'")
        with watched(small.dsn()) as app:
            poll(app, "activity")
            assert value(app, AGE, holder="prepared") == 0
        other.execute("ROLLBACK PREPARED 'other'")
    db.execute("DROP DATABASE elsewhere")


@pytest.mark.parametrize(("holder", "slot"), [("replication_slot", "a_slot"), ("standby", "")])
def test_an_xmin_from_afar_is_as_old_as_it_has_been_seen(small: Postgres, db: Db, holder: str, slot: str) -> None:
    """For a slot or a standby, whose xmin carries no time, the age counts from the first poll that saw this xmin."""
    hand = HandClock()
    if slot:
        db.execute("SELECT pg_create_physical_replication_slot(%s)", [slot])
    standby = Standby(small.dsn(), db, slot)
    held = (
        "SELECT xmin::text::int FROM pg_replication_slots UNION SELECT backend_xmin::text::int FROM pg_stat_replication"
    )
    with watched(small.dsn(), hand.clock) as app:

        def age_after(seconds: float, xmin: int | None) -> float | None:
            if xmin is not None:
                standby.need(xmin)
                until(lambda: (xmin,) in db.execute(held).fetchall())
            hand.pass_(seconds)
            poll(app, "activity")
            return value(app, AGE, holder=holder)

        first = next_xid(db)
        assert age_after(0, None) == 0  # there is nothing that is held
        assert age_after(10, first) == 0  # seen for the first time
        assert age_after(400, None) == 400
        assert age_after(1000, first) == 1400
        assert age_after(15, next_xid(db)) == 0  # it moves on, as it should
        assert age_after(20, None) == 20
        standby.close()
        until(lambda: db.execute("SELECT 1 FROM pg_stat_replication").fetchall() == [])
        assert age_after(30, None) == (50 if slot else 0)  # a slot keeps it for a standby that has gone
        if slot:
            db.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        assert age_after(40, None) == 0
