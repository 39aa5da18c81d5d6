"""Servers that speak TLS, or should."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
import trustme

from exporter.demo.postgres import UNPRIVILEGED, Postgres

from ..conftest import debian_postgres
from ..world import create_jobs, poll, state, value, watched
from .proxies import Proxy

PASSWORD = "correct horse battery staple"  # of a server that lives for a minute


class Tls(NamedTuple):
    server: Postgres
    authority: Path  # the certificate of the server's own CA


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tls]:
    """A server with a certificate for `localhost` from its own CA; over TCP it demands TLS and a password."""
    authority = trustme.CA()
    folder = tmp_path_factory.mktemp("tls")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    with Postgres(debian_postgres()) as server:
        certificate = authority.issue_cert("localhost")
        certificate.cert_chain_pems[0].write_to_path(server.data / "server.crt")
        certificate.private_key_pem.write_to_path(server.data / "server.key")
        (server.data / "server.key").chmod(0o600)
        if os.geteuid() == 0:
            owner = pwd.getpwnam(UNPRIVILEGED)
            os.chown(server.data / "server.key", owner.pw_uid, owner.pw_gid)
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            create_jobs(connection)
            connection.execute(f"CREATE ROLE watcher SUPERUSER LOGIN PASSWORD '{PASSWORD}'".encode())
            (server.data / "pg_hba.conf").write_text("hostssl all watcher all scram-sha-256\nlocal all all trust\n")
            connection.execute("ALTER SYSTEM SET ssl = on")
            connection.execute("SELECT pg_reload_conf()")
        yield Tls(server, folder / "ca.pem")


def dsn(tls: Tls, more: str, host: str = "localhost") -> str:
    return f"host={host} port={tls.server.port} dbname=postgres user=watcher {more}"


def test_case_16_require(tls: Tls) -> None:
    """Case 16. `sslmode=require` is enough for a server that demands TLS, and so is the default."""
    for more in ("sslmode=require", ""):
        with watched(dsn(tls, more), password=PASSWORD) as watching:
            poll(watching)
            assert value(watching, "source_up", collector="jobs") == 1
            assert value(watching, "source_up", collector="sizes") == 1


def test_case_16_verified(tls: Tls) -> None:
    """Case 16. With the server's CA its certificate and its name are verified."""
    with watched(dsn(tls, f"sslmode=verify-full sslrootcert={tls.authority}"), password=PASSWORD) as watching:
        poll(watching, "jobs")
        assert value(watching, "source_up", collector="jobs") == 1


@pytest.mark.parametrize(
    ("host", "more", "says"),
    [
        ("127.0.0.1", "sslmode=verify-full sslrootcert={ca}", 'server certificate for "localhost" does not match'),
        ("localhost", "sslmode=verify-full", 'root certificate file "'),
        ("localhost", "sslmode=verify-full sslrootcert=system", "certificate verify failed"),
        ("localhost", "sslmode=verify-full sslrootcert={ca} sslcert={ca} sslkey=/none", "/none"),
    ],
)
def test_case_16_refused_by_us(tls: Tls, monkeypatch: pytest.MonkeyPatch, host: str, more: str, says: str) -> None:
    """Case 16. A wrong host, no CA, another CA or a missing key is `tls`; its message says which."""
    monkeypatch.setenv("HOME", "/nonexistent")  # libpq looks for a CA below it
    with watched(dsn(tls, more.format(ca=tls.authority), host), password=PASSWORD) as watching:
        poll(watching, "jobs")
        found = state(watching, "jobs")
        assert (found.reason, "\n" in found.error) == ("tls", False)
        assert says in found.error
        assert PASSWORD not in found.error


def test_a_server_without_tls(dsn18: str) -> None:
    """Asking for TLS where there is none is `tls`."""
    with watched(f"{dsn18}?sslmode=require") as watching:
        poll(watching, "jobs")
        assert state(watching, "jobs").reason == "tls"


def test_tls_that_ends_or_falls_silent(tls: Tls) -> None:
    """An encrypted connection that is closed while idle heals in silence; a silent one is a `timeout`."""
    with (
        Proxy(("127.0.0.1", tls.server.port)) as proxy,
        watched(
            proxy.dsn("dbname=postgres user=watcher sslmode=require"), password=PASSWORD, timeout="500ms"
        ) as watching,
    ):
        poll(watching, "jobs")
        proxy.cut()
        poll(watching, "jobs")
        proxy.cut(reset=True)
        poll(watching, "jobs")
        assert state(watching, "jobs").errors == {}
        proxy.swallow()
        poll(watching, "jobs")
        assert state(watching, "jobs").errors == {"timeout": 1}
        proxy.heal()
        proxy.answers = 1500  # in the middle of the handshake
        poll(watching, "jobs")
        assert state(watching, "jobs").errors == {"timeout": 2}
