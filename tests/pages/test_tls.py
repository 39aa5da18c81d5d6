"""TLS, set up by a file in the format of the exporter-toolkit."""

from __future__ import annotations

import logging
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from exporter.server import PATIENCE, Server

from ..patience import until
from ..settings.complaints import ONE, complaint, complaints, load
from ..world import HandClock
from .serving import board, connect, get, rest, serving

TLS = "web.config_file.tls_server_config"
PAIR = "cert_file: server.crt, key_file: server.key"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who signs the server's certificate."""
    return trustme.CA()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    """A certificate, its key, another's key, the key with a passphrase, and what is none of these."""
    folder = tmp_path_factory.mktemp("web")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(folder / "server.crt")
    issued.private_key_pem.write_to_path(folder / "server.key")
    trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(folder / "other.key")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hunter2"))
    (folder / "locked.key").write_bytes(locked)
    (folder / "no.pem").write_text("hunter2")
    return folder


def settings(folder: Path, tls: str) -> str:
    """Settings with a web file that holds this; its own paths are relative to it."""
    (folder / "web.yml").write_text(f"tls_server_config: {{{tls}}}\n")
    return f"{ONE}web: {{config_file: {folder}/web.yml}}\n"


@pytest.fixture
def hand() -> HandClock:
    """The clock by which the server's patience is measured."""
    return HandClock()


@pytest.fixture
def server(folder: Path, hand: HandClock) -> Iterator[Server]:
    """It speaks TLS alone."""
    web = load(settings(folder, PAIR)).web.config_file
    with serving(board(), web, hand.clock) as running:
        yield running


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """A client that trusts the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_pages_over_tls(server: Server, trusting: ssl.SSLContext) -> None:
    """The pages are the same, for those who trust the authority; the others are told by their own library."""
    assert b"laravel_queue_source_up" in get(server, tls=trusting).body
    with pytest.raises(ssl.SSLCertVerificationError):
        get(server, tls=ssl.create_default_context())


def test_nobody_waits_for_another_handshake(server: Server, hand: HandClock, trusting: ssl.SSLContext) -> None:
    """Fifty clients that connect and say nothing hold up nobody, and are hung up on after ten seconds."""
    silent = [connect(server) for _ in range(50)]
    until(lambda: len(server.clients) == 50)
    began = time.monotonic()
    assert get(server, "/-/healthy", tls=trusting).body == b"ok\n"
    assert time.monotonic() - began < 1
    hand.pass_(PATIENCE + 0.1)
    assert [rest(client) for client in silent] == [b""] * 50
    for client in silent:
        client.close()


def test_who_speaks_something_else(server: Server, trusting: ssl.SSLContext, caplog: pytest.LogCaptureFixture) -> None:
    """Plain HTTP on this port is hung up on, shows nothing and fills no log; the next client is served."""
    caplog.set_level(logging.DEBUG)
    for sent in (b"GET /metrics HTTP/1.1\r\n\r\n", b"\x00" * 100, b"\x16\x03\x01\xff\xff"):
        with connect(server, sent) as client:
            hand_over = rest(client) if sent[0] != 0x16 else b""
            assert b"laravel" not in hand_over
    until(lambda: not server.clients)
    assert get(server, "/-/healthy", tls=trusting).status == 200
    assert {record.levelno for record in caplog.records} <= {logging.DEBUG}


@pytest.mark.parametrize(("least", "fine"), [("TLS12", True), ("TLS13", False)])
def test_the_oldest_version(folder: Path, trusting: ssl.SSLContext, least: str, fine: bool) -> None:
    """A client that knows TLS 1.2 alone is refused where 1.3 is asked for."""
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    web = load(settings(folder, f"{PAIR}, min_version: {least}")).web.config_file
    with serving(board(), web) as server:
        if fine:
            assert get(server, tls=trusting).status == 200
        else:
            with pytest.raises(ssl.SSLError):
                get(server, tls=trusting)


@pytest.mark.parametrize(
    ("kind", "let_in"),
    [("VerifyClientCertIfGiven", [True, True, False]), ("RequireAndVerifyClientCert", [True, False, False])],
)
def test_certificates_of_clients(folder: Path, authority: trustme.CA, kind: str, let_in: list[bool]) -> None:
    """A client shows a certificate of our authority, none, or one of another."""
    web = load(settings(folder, f"{PAIR}, client_ca_file: ca.pem, client_auth_type: {kind}")).web.config_file
    seen = []
    with serving(board(), web) as server:
        for signer in (authority, None, trustme.CA()):
            client = ssl.create_default_context()
            authority.configure_trust(client)
            if signer:
                signer.issue_cert("prometheus").configure_cert(client)
            try:
                seen.append(get(server, tls=client).status == 200)
            except (ssl.SSLError, ConnectionError):
                seen.append(False)
    assert seen == let_in


@pytest.mark.parametrize(
    ("tls", "path", "expected"),
    [
        ("cert_file: server.crt", ".key_file", "is missing"),
        ("cert_file: nowhere.crt, key_file: server.key", ".cert_file", "expected a readable file: No such file"),
        ("cert_file: server.crt, key_file: .", ".key_file", "expected a readable file: Is a directory"),
        ("cert_file: server.crt, key_file: other.key", "", "expected a certificate and its unencrypted key, in PEM"),
        ("cert_file: server.crt, key_file: locked.key", "", "expected a certificate and its unencrypted key, in PEM"),
        ("cert_file: no.pem, key_file: server.key", "", "expected a certificate and its unencrypted key, in PEM"),
        ("cert_file: server.key, key_file: server.crt", "", "expected a certificate and its unencrypted key, in PEM"),
        (f"{PAIR}, client_ca_file: no.pem, client_auth_type: RequireAndVerifyClientCert", "", "expected a certificate"),
        (f"{PAIR}, client_auth_type: RequireAndVerifyClientCert", "", "expected client_ca_file and a client_auth_type"),
        (
            f"{PAIR}, client_ca_file: ca.pem",
            "",
            "expected client_ca_file and a client_auth_type that verifies, or neither",
        ),
        (f"{PAIR}, client_auth_type: RequestClientCert", ".client_auth_type", "expected 'NoClientCert', "),
        (f"{PAIR}, min_version: TLS10", ".min_version", "expected 'TLS12' or 'TLS13'"),
        (f"{PAIR}, cipher_suites: []", ".cipher_suites", "is not a known setting"),
    ],
)
def test_tls_settings_that_cannot_work(folder: Path, tls: str, path: str, expected: str) -> None:
    """What is wrong is told at the start with its path, and a passphrase is not asked for on the terminal."""
    problem = complaint(settings(folder, tls))
    assert problem.startswith(f"{TLS}{path}: {expected}")
    assert "hunter2" not in problem


def test_nobody_is_asked_for_a_passphrase(folder: Path, tmp_path: Path) -> None:
    """Started in a terminal, it does not wait for somebody to type the passphrase of its key."""
    file = tmp_path / "queue.yml"
    file.write_text(settings(folder, "cert_file: server.crt, key_file: locked.key"))
    command = f"{sys.executable} -m exporter check --config {file}"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, timeout=20, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith(b"queue-exporter: web.config_file.tls_server_config: expected a certificate")


def test_an_empty_web_file(tmp_path: Path) -> None:
    """No TLS and no logins, as in the toolkit."""
    (tmp_path / "web.yml").write_text("# later\n")
    assert complaints(f"{ONE}web: {{config_file: {tmp_path}/web.yml}}\n") == []
