"""Behind PgBouncer in transaction mode, with one server connection for everybody."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from exporter.demo.daemon import free_port
from exporter.demo.postgres import UNPRIVILEGED, Postgres

from ..conftest import debian_postgres
from ..patience import until
from ..world import create_jobs, poll, state, states, value, watched

SETTINGS = (
    "statement_timeout", "lock_timeout", "search_path", "row_security", "jit", "timezone", "client_encoding",
    "max_parallel_workers_per_gather", "transaction_read_only", "transaction_isolation",
)  # fmt: skip


def listens(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def pgbouncer(server_port: int, **settings: object) -> Iterator[int]:
    """A PgBouncer in front of the server; yields its port."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.fail("Debian's pgbouncer is missing: `make services` installs it")
    port, root = free_port(), os.geteuid() == 0
    with TemporaryDirectory(prefix="queue-exporter-pgbouncer-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        users = folder / "users.txt"
        users.write_text('"postgres" ""\n"limited" ""\n"denied" ""\n')
        ours: dict[str, object] = {
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "server_login_retry": 0.1,
        }
        lines = [f"{key} = {value}" for key, value in (ours | settings).items()]
        ini = folder / "pgbouncer.ini"
        ini.write_text("\n".join(["[databases]", f"* = host=127.0.0.1 port={server_port}", "[pgbouncer]", *lines]))
        command = [program, "-q", *(["-u", UNPRIVILEGED] if root else []), str(ini)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: listens(port))
                yield port
            finally:
                process.kill()


def session_settings(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """What a client finds set in the session it was given."""
    return [(name, connection.execute(f"SHOW {name}".encode()).fetchall()[0][0]) for name in SETTINGS]


@pytest.fixture(scope="module")
def behind() -> Iterator[Postgres]:
    """The server behind PgBouncer, with an empty jobs table."""
    with Postgres(debian_postgres()) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            create_jobs(connection)
            connection.execute("CREATE ROLE limited LOGIN CONNECTION LIMIT 0; CREATE ROLE denied NOLOGIN")
        yield server


@pytest.fixture
def pooled(behind: Postgres) -> Iterator[str]:
    """The DSN that leads to it through PgBouncer's one server connection."""
    with pgbouncer(behind.port) as port:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"


def test_case_15_beside_a_second_client(behind: Postgres, pooled: str) -> None:
    """Case 15. Thirty polls through one server connection change nothing of what a second client finds set in it."""
    with psycopg.connect(behind.dsn()) as direct:
        expected = session_settings(direct)
    with watched(pooled, queues={"default": None}) as watching, psycopg.connect(pooled, autocommit=True) as second:
        second.prepare_threshold = None
        for _ in range(30):
            poll(watching)
            assert session_settings(second) == expected
        assert state(watching, "jobs").errors == {}
        assert value(watching, "jobs", state="ready") == 0


@pytest.mark.parametrize("pool_mode", ["session", "transaction", "statement"])
def test_every_pool_mode(behind: Postgres, pool_mode: str) -> None:
    """Each question is one message, so even statement pooling lets it pass."""
    with (
        pgbouncer(behind.port, pool_mode=pool_mode) as port,
        watched(f"postgresql://postgres@127.0.0.1:{port}/postgres", failed_table=None, cache=None) as watching,
    ):
        poll(watching)
        assert {state.error for state in states(watching).values()} == {""}


def test_an_error_gives_the_server_connection_back(pooled: str) -> None:
    """After a question that failed, the only server connection serves the next client at once."""
    with watched(pooled, table="none") as watching, psycopg.connect(pooled, autocommit=True) as second:
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "undefined_table"
        second.execute("SET statement_timeout = 0; CREATE VIEW fatal AS SELECT 1 / 0 AS queue, 0 AS reserved_at")
    with watched(pooled, table="fatal") as watching, psycopg.connect(pooled, autocommit=True) as second:
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "malformed"
        assert second.execute("SELECT 1").fetchall() == [(1,)]


def test_a_client_that_keeps_the_server_connection(pooled: str) -> None:
    """If another client keeps the only server connection, that is a `timeout`; the next poll is good."""
    with watched(pooled, timeout="300ms") as watching, psycopg.connect(pooled) as second:
        poll(watching, "jobs")
        second.execute("SELECT 1")  # in a transaction now
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "timeout"
        second.rollback()
        poll(watching, "jobs")
        assert state(watching, "jobs").up


def test_temporary_tables_of_others_are_not_used(pooled: str) -> None:
    """A temporary table that another client left in the server connection, with a name of ours, misleads nobody."""
    with watched(pooled) as watching, psycopg.connect(pooled, autocommit=True) as second:
        second.execute("CREATE TEMP TABLE pg_class AS TABLE pg_catalog.pg_class WITH NO DATA")
        second.execute("CREATE TEMP TABLE jobs AS TABLE public.jobs WITH NO DATA; INSERT INTO jobs DEFAULT VALUES")
        poll(watching)
        second.execute("DISCARD TEMP")
        assert value(watching, "queues") == 0
        assert value(watching, "table_live_tuples") == 0


def test_a_restart_behind_it_heals_in_silence(behind: Postgres, pooled: str) -> None:
    """A server restarted behind PgBouncer between two polls is no failure."""
    with watched(pooled) as watching:
        poll(watching, "jobs")
        behind.stop()
        behind.start()
        poll(watching, "jobs")
        assert state(watching, "jobs").errors == {}


def test_its_own_errors_have_their_names(behind: Postgres) -> None:
    """What PgBouncer says in words alone becomes the reason that it is."""
    with pgbouncer(behind.port, max_client_conn=2) as port:
        expected = {
            "stranger@": "auth",
            "denied@": "auth",
            "limited@": "too_many_connections",
            "postgres@/none": "not_found",
        }
        for who, reason in expected.items():
            user, _, database = who.partition("@")
            with watched(f"postgresql://{user}@127.0.0.1:{port}{database or '/postgres'}") as watching:
                poll(watching, "jobs")
                assert (who, state(watching, "jobs").reason) == (who, reason), state(watching, "jobs").error
        dsn = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        with psycopg.connect(dsn), psycopg.connect(dsn), watched(dsn) as watching:
            poll(watching, "jobs")
            assert state(watching, "jobs").reason == "too_many_connections"
