"""An encrypted connection to Redis: whom we trust, who we are, and what is said when it does not come about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from exporter.demo.daemon import free_port
from exporter.demo.redis import Redis

from .world import counts, look, state_of, watched


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A certificate authority of one's own."""
    return trustme.CA()


@pytest.fixture(scope="module")
def encrypted(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A Redis that speaks TLS alone, called localhost, and wants to see a certificate."""
    folder, port = tmp_path_factory.mktemp("tls"), free_port()
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    files = {"tls-cert-file": "server.pem", "tls-key-file": "server.pem", "tls-ca-cert-file": "ca.pem"}
    settings = {name: str(folder / file) for name, file in files.items()}
    with Redis({"port": "0", "tls-port": str(port)} | settings, port) as server:
        yield server


def test_case_16_tls(encrypted: Redis, authority: trustme.CA, tmp_path: Path) -> None:
    """Case 16: with the right authority and our own certificate we are in; the host's name is checked."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("exporter").private_key_and_cert_chain_pem.write_to_path(tmp_path / "us.pem")
    ours: dict[str, Any] = {"ca_file": str(tmp_path / "ca.pem"), "cert_file": str(tmp_path / "us.pem")}
    with watched(f"rediss://localhost:{encrypted.port}/0", **ours) as app:
        assert counts(app) == {}
        assert state_of(app, "queues").up
    nothing: dict[str, Any] = {}
    for url, files in (("127.0.0.1", ours), ("localhost", nothing)):
        with watched(f"rediss://{url}:{encrypted.port}/0", **files) as app:
            look(app)
            assert (state_of(app, "queues").reason, state_of(app, "queues").streak) == ("tls", 3)


def test_tls_with_a_redis_that_has_none(server: Redis) -> None:
    """A Redis that does not speak TLS waits for the end of what it takes for a command: the message suspects it."""
    with watched(f"rediss://127.0.0.1:{server.port}/0", timeout="1s") as app:
        look(app, "queues")
        assert state_of(app, "queues").reason == "timeout"
        assert "TLS" in state_of(app, "queues").error


def test_no_tls_with_a_redis_that_has_it(encrypted: Redis) -> None:
    """A Redis that speaks TLS alone hangs up: the message says how TLS is asked for."""
    with watched(f"redis://localhost:{encrypted.port}/0") as app:
        look(app, "queues")
        assert state_of(app, "queues").reason == "connect"
        assert "write rediss://" in state_of(app, "queues").error


def test_case_16_what_is_wrong_with_a_file_is_said_of_it(
    encrypted: Redis, authority: trustme.CA, tmp_path: Path
) -> None:
    """Case 16: a file that is not there, or holds something else, is named; and that a certificate is missing."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    (tmp_path / "text").write_text("hello")
    ca, text, gone = (str(tmp_path / name) for name in ("ca.pem", "text", "gone"))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ca_file": gone}, f"ca_file {gone}: No such file"),
        ({"ca_file": text}, f"ca_file {text}: expected PEM"),
        ({"ca_file": ca, "cert_file": gone}, f"cert_file {gone}: No such file"),
        ({"ca_file": ca, "cert_file": ca, "key_file": text}, f"cert_file {ca}, key_file {text}: expected PEM"),
        ({"ca_file": ca}, "cert_file"),
    ]
    for files, words in cases:
        with watched(f"rediss://localhost:{encrypted.port}/0", **files) as app:
            look(app, "queues")
            assert state_of(app, "queues").reason in ("tls", "connect")
            assert words in state_of(app, "queues").error
