"""A streaming replica as what is watched. Case 22."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from threading import Thread

import psycopg
import pytest

from exporter.app import App
from exporter.demo.postgres import UNPRIVILEGED, Postgres, as_whom
from exporter.status import Verdict, report

from ..patience import until
from ..world import add_jobs, create_jobs, poll, state, states, value, watched
from .onlooker import Db, ours
from .proxies import Proxy

NUMBERS = count()


class Replica(Postgres):
    """A standby that follows its primary through a proxy, and lets nothing hold up its replay."""

    def __init__(self, primary: Postgres, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(primary.binaries, {"max_standby_streaming_delay": "0", "wal_retrieve_retry_interval": "100ms"})

    def _initialise(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, UNPRIVILEGED)
        command = [str(self.binaries / "pg_basebackup"), "-D", str(self.data), "-d", self.proxy.dsn("user=postgres")]
        command += ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, **as_whom())


@dataclass(frozen=True)
class Pair:
    """A primary, its standby, and the proxy between them."""

    primary: Db
    standby: Db
    dsn: str  # of the standby
    proxy: Proxy

    def catch_up(self) -> None:
        """Wait until the standby has all that the primary has written."""
        written = self.primary.execute("SELECT pg_current_wal_lsn()").fetchall()[0][0]
        until(lambda: self.standby.execute("SELECT pg_last_wal_replay_lsn() >= %s", [written]).fetchone() == (True,))


@pytest.fixture(scope="module")
def pair(server: Postgres) -> Iterator[Pair]:
    """Each PostgreSQL with a streaming replica of it."""
    with (
        Proxy(("127.0.0.1", server.port)) as proxy,
        Replica(server, proxy) as replica,
        psycopg.connect(server.dsn(), autocommit=True) as primary,
        psycopg.connect(replica.dsn(), autocommit=True) as standby,
    ):
        yield Pair(primary, standby, replica.dsn(), proxy)


@pytest.fixture
def table(pair: Pair) -> Iterator[str]:
    """A jobs table with two ready jobs, on both."""
    name = f"jobs_{next(NUMBERS)}"
    create_jobs(pair.primary, name)
    add_jobs(pair.primary, ("default", None, 5), ("default", None, 5), table=name)
    pair.catch_up()
    yield name
    pair.primary.execute(f"DROP TABLE {name} CASCADE".encode())


def lag(watching: App) -> float:
    """The lag that is shown after one more poll."""
    poll(watching, "statistics")
    return value(watching, "database_replay_lag_seconds") or 0


def test_case_22_a_standby_is_read(pair: Pair, table: str) -> None:
    """Case 22. A standby gives the rows of the jobs table and says what it is; its counters and pops are not shown."""
    pair.primary.execute("ALTER ROLE postgres SET default_transaction_isolation = 'serializable'")  # none on a standby
    pair.catch_up()
    try:
        with watched(pair.dsn, table=table, failed_table=None, cache=None) as watching:
            poll(watching)
            assert {state.error for state in states(watching).values()} == {""}
            assert value(watching, "database_in_recovery") == 1
            assert value(watching, "database_replay_lag_seconds") == 0
            assert value(watching, "jobs", queue="default", state="ready") == 2
            assert value(watching, "table_live_tuples") is None
            assert value(watching, "database_connections_max") is None
            assert value(watching, "table_lock_waiters") is None
            assert value(watching, "pop_duration_seconds") is None
    finally:
        pair.primary.execute("ALTER ROLE postgres RESET default_transaction_isolation")


@pytest.mark.parametrize(("wanted", "in_recovery"), [("read-write", 0), ("standby", 1), ("prefer-standby", 1)])
def test_case_22_the_wanted_server_of_several(pair: Pair, wanted: str, in_recovery: int) -> None:
    """Case 22. Of several hosts the one of the wanted kind is watched, wherever it stands in the DSN."""
    ports = (pair.primary.info.port, pair.standby.info.port)
    for order in (ports, reversed(ports)):
        port = ",".join(map(str, order))
        dsn = f"host=127.0.0.1,127.0.0.1 port={port} user=postgres dbname=postgres target_session_attrs={wanted}"
        with watched(dsn) as watching:
            poll(watching, "statistics")
            assert value(watching, "database_in_recovery") == in_recovery


def test_case_22_a_recovery_conflict_is_one_error(pair: Pair, table: str) -> None:
    """Case 22. A question cancelled because it held up the replay is one error, and the next poll is good."""
    pair.primary.execute(f"CREATE VIEW slow AS SELECT * FROM {table} WHERE pg_sleep(0.4) IS NOT NULL".encode())
    pair.catch_up()
    with watched(pair.dsn, table="slow") as watching:
        polling = Thread(target=poll, args=(watching, "jobs"))
        polling.start()
        until(lambda: [session.waits_for for session in ours(pair.standby)] == ["PgSleep"])
        with pair.primary.transaction():
            pair.primary.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        polling.join()
        assert state(watching, "jobs").errors == {"timeout": 1}
        assert state(watching, "jobs").error.startswith("canceling statement due to conflict with recovery")
        poll(watching, "jobs")
        assert state(watching, "jobs").up
        assert len(ours(pair.standby)) == 1


def test_case_22_a_standby_that_lags_tells_no_past(pair: Pair, table: str) -> None:
    """Case 22. Further behind than two intervals a standby's rows are withheld, with a note, and come back after it."""
    with watched(pair.dsn, table=table, interval="200ms", queues={"default": None}) as watching:
        pair.standby.execute("SELECT pg_wal_replay_pause()")
        add_jobs(pair.primary, ("default", None, 5), table=table)
        until(lambda: lag(watching) > 0.4)
        poll(watching, "jobs", "reservations")
        assert value(watching, "jobs", state="ready") is None
        assert value(watching, "source_fresh", collector="jobs") == 0
        assert value(watching, "reservations_repeated_total") is None
        assert report(watching.board).verdict is Verdict.BLIND
        assert "behind its primary" in state(watching, "jobs").notes[0]
        pair.standby.execute("SELECT pg_wal_replay_resume()")
        until(lambda: lag(watching) == 0)
        poll(watching, "jobs")
        assert value(watching, "jobs", state="ready") == 3


def test_case_22_a_standby_that_lags_accuses_no_worker(pair: Pair, table: str) -> None:
    """Case 22. A reservation that comes to a standby late is not that of a clock that is behind."""
    with watched(pair.dsn, table=table) as watching:
        pair.standby.execute("SELECT pg_wal_replay_pause()")
        add_jobs(pair.primary, ("default", 0, 5), table=table)
        until(lambda: lag(watching) > 2.5)
        poll(watching, "jobs", "reservations")
        assert value(watching, "jobs", state="reserved") == 0
        pair.standby.execute("SELECT pg_wal_replay_resume()")
        pair.catch_up()
        poll(watching, "jobs", "reservations")
        assert value(watching, "jobs", state="reserved") == 1
        assert value(watching, "reserved_at_lead_seconds") in (-1, 0)


def test_case_22_a_standby_alone_claims_nothing(pair: Pair, table: str) -> None:
    """Case 22. Without a connection to its primary a standby does not know its lag, so it never says 0."""
    with watched(pair.dsn, table=table, interval="200ms") as watching:
        pair.proxy.swallow()
        pair.proxy.cut()
        until(lambda: pair.standby.execute("SELECT * FROM pg_stat_wal_receiver").fetchall() == [])
        first = lag(watching)
        assert first > 0
        until(lambda: lag(watching) > max(first, 0.4))
        poll(watching, "jobs")
        assert value(watching, "jobs", state="ready") is None
        assert "behind its primary" in state(watching, "jobs").notes[0]
    pair.proxy.heal()


def test_a_silent_primary_is_not_taken_for_an_idle_one(pair: Pair, table: str) -> None:
    """While the link is a black hole the WAL receiver lives on; the standby has heard of nothing, and never says 0."""
    with watched(pair.dsn, table=table) as watching:
        session = watching.pollers[0].source.collectors[0].session  # type: ignore[attr-defined]  # all of them share it
        session.names["heard_of"] = 1.0
        poll(watching, "statistics")
        pair.proxy.swallow()
        until(lambda: lag(watching) > 0)
        assert pair.standby.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (1,)
    pair.proxy.heal()
