"""`status` asks the running exporter; nobody else is taken for one, and when nobody answers it looks for itself."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trustme

from exporter import asking
from exporter.config import Web
from exporter.errors import ConfigError
from exporter.queues import JOBS
from exporter.status import Verdict
from exporter.web import Tls, WebConfig

from ..pages.serving import board, serving
from ..pages.test_logins import hashed
from ..world import add_jobs
from .running import Serving, run, settings_file


def why(url: str, certificate: Path | None = None) -> str:
    """Why nobody there is an exporter."""
    with pytest.raises(asking.NoAnswerError) as silence:
        asking.ask(asking.Where(url, certificate))
    return str(silence.value)


@contextmanager
def somebody(said: bytes) -> Iterator[str]:
    """Another program: whoever connects is told this and hung up on. Its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(65536)
                client.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield "http://127.0.0.1:{1}/".format(*listening.getsockname())
        thread.join(10)


def test_the_report_and_its_verdict() -> None:
    """What the page says is what the command says."""
    with serving(board([JOBS(1, "database", "очередь", "expired")])) as server:
        text, verdict = asking.ask(asking.Where(f"http://127.0.0.1:{server.port}/"))
    assert text.startswith("OVER ITS LIMIT\n  database/очередь ")
    assert verdict is Verdict.OVER


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n", "another program answers there"),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", "another program answers there"),
        (b"HTTP/1.1 200 OK\r\nQueue-Exporter-Verdict: 2\r\n\r\n", "another program answers there"),
        (b"HTTP/1.1 200 OK\r\nQueue-Exporter-Verdict: x\r\n\r\n", "another program answers there"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "another program answers there"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-OpenSSH_9.2"),
        (b"-ERR unknown command\r\n", "-ERR unknown command"),
        (b"", "Remote end closed connection without response"),
        (b"HTTP/1.1 200 OK\r\nQueue-Exporter-Verdict: 0\r\nContent-Length: 9\r\n\r\n\xff\xfe", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nQueue-Exporter-Verdict: 0\r\nContent-Length: 2\r\n\r\n\xff\xfe", "can't decode"),
        (b"x" * 70_000, "got more than 65536 bytes"),
    ],
)
def test_another_program_is_not_taken_for_an_exporter(said: bytes, reason: str) -> None:
    """Whatever answers on that port, without the header of our page it is none."""
    with somebody(said) as url:
        assert reason in why(url)


def test_nobody_listens() -> None:
    """The reason is the system's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert why(f"http://127.0.0.1:{port}/") == "Connection refused"


def test_somebody_who_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience ends."""
    monkeypatch.setattr(asking, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert why("http://127.0.0.1:{1}/".format(*listening.getsockname())) == "timed out"


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://h/", "file:///etc/passwd", "http://", "http://h:x/", "http://[::1/", "//h/"]
)
def test_what_is_no_url(url: str) -> None:
    """Nothing is opened but http and https."""
    with pytest.raises(ConfigError, match=r"--url: expected a URL such as http://127\.0\.0\.1:10087/"):
        asking.ask(asking.Where(url))


def test_a_page_with_a_login() -> None:
    """Without one it says what to give; with one in the URL it is answered, and the password is shown nowhere."""
    with serving(board(), WebConfig(basic_auth_users={"me@work": hashed("a:b/c")})) as server:
        assert why(f"http://127.0.0.1:{server.port}/") == "it asks for a login: --url http://USER:PASSWORD@HOST:PORT/"
        where = asking.Where(f"http://me%40work:a%3Ab%2Fc@127.0.0.1:{server.port}/")
        assert asking.ask(where)[1] is Verdict.FINE
        assert where.shown == f"http://127.0.0.1:{server.port}/"


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    """A certificate for another name, by an authority that nobody knows."""
    issued = trustme.CA().issue_cert("exporter.internal")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "server.crt")
    issued.private_key_pem.write_to_path(tmp_path / "server.key")
    return Tls(cert_file=tmp_path / "server.crt", key_file=tmp_path / "server.key")


def test_our_own_certificate_is_trusted(tls: Tls, tmp_path: Path) -> None:
    """On the same machine, the certificate in the settings is trusted by itself, and no other one."""
    web = WebConfig(tls_server_config=tls)
    with serving(board(), web) as server:
        here = asking.here(Web.model_construct(listen=f"127.0.0.1:{server.port}", config_file=web))
        assert here.url == f"https://127.0.0.1:{server.port}/"
        assert asking.ask(here)[1] is Verdict.FINE
        assert "certificate" in why(here.url)
        trustme.CA().issue_cert("exporter.internal").cert_chain_pems[0].write_to_path(tmp_path / "other.crt")
        assert "certificate" in why(here.url, tmp_path / "other.crt")


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("0.0.0.0:10087", "http://127.0.0.1:10087/"), ("[::]:10087", "http://[::1]:10087/"), (":1", "http://127.0.0.1:1/"),
        ("10.0.0.5:80", "http://10.0.0.5:80/"), ("[fe80::1]:80", "http://[fe80::1]:80/"), ("db:80", "http://db:80/"),
    ],
)  # fmt: skip
def test_where_it_asks(listen: str, url: str) -> None:
    """The configured address, or this machine where it listens on all of them; a login alone makes no https."""
    web = WebConfig(basic_auth_users={"a": hashed("x")})
    assert asking.here(Web.model_construct(listen=listen, config_file=web)) == (url, None)


def test_the_command_asks_the_running_exporter(tmp_path: Path, dsn18: str, db18: psycopg.Connection[Any]) -> None:
    """With an exporter that runs, `status` prints its page, polls nothing itself, and needs no settings with --url."""
    add_jobs(db18, ("default", 120, 200))
    file = settings_file(tmp_path, dsn18, interval="1h")
    with Serving(file) as exporter:
        while b"200 OK" not in exporter.get("/-/ready"):
            pass
        asked, told = run("status", "--config", file), run("status", "--url", exporter.url)
        page = exporter.get("/").decode().partition("\r\n\r\n")[2]
        polls = exporter.get("/metrics").decode()
    ages = re.compile(r"\d+m \d+s|\d+s ago|\d+s")
    assert ages.sub("", asked.out) == ages.sub("", told.out) == ages.sub("", page)
    assert (asked.status, asked.err, told.status, told.err) == (1, "", 1, "")
    assert 'laravel_queue_source_polls_total{collector="jobs",source="database"} 1.0' in polls


def test_the_command_looks_for_itself(tmp_path: Path, dsn18: str, db18: psycopg.Connection[Any]) -> None:
    """When nobody answers, or somebody else does, it polls once and says so; the verdict is that of its own poll."""
    file = settings_file(tmp_path, dsn18)
    handler = type("Other", (BaseHTTPRequestHandler,), {"log_message": lambda *_: None})
    with HTTPServer(("127.0.0.1", 0), handler) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        alone = run("status", "--config", file)
        among = run("status", "--config", file, "--url", f"http://me:hunter2@127.0.0.1:{other.server_port}/")
        other.shutdown()
        thread.join()
    for done, reason in ((alone, "Connection refused"), (among, "another program answers there")):
        assert done.status == 0
        assert done.out.startswith("NOTHING IS OVER ITS LIMIT\n")
        said = rf"no exporter answers at http://127.0.0.1:\d+/ \({reason}\); this is one poll of its own"
        assert re.fullmatch(f"queue-exporter: {said}\n", done.err)
