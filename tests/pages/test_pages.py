"""What each page says."""

from __future__ import annotations

import html
import socket
from threading import Thread

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.amounts import printable
from exporter.board import Board, Key, State
from exporter.exposition import Exposition
from exporter.pages import Pages
from exporter.queues import JOBS, TARGET_WAIT
from exporter.server import Server, open_server
from exporter.web import Gate, WebConfig

from .conftest import HOSTILE
from .serving import board, connect, get, rest, serving


def test_every_answer_has_its_head(server: Server) -> None:
    """Its length, its kind, which no browser may guess anew, that it is not to be kept, and that the connection is
    over; not what serves it."""
    paths = ("/", "/metrics", "/-/healthy", "/-/ready", "/nowhere", "/runbooks/", "/runbooks/nowhere")
    for answer in (get(server, "/", method="POST"), *(get(server, path) for path in paths)):
        assert answer.headers["Content-Type"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert int(answer.headers["Content-Length"]) == len(answer.body)
        assert (answer.headers["Cache-Control"], answer.headers["Connection"]) == ("no-store", "close")
        assert answer.headers["Server"] is None
        assert answer.headers["Date"]


@pytest.mark.parametrize("path", ["/", "/runbooks/", "/runbooks/LaravelQueueWaitTooLong"])
def test_a_page_for_a_browser_may_load_nothing(server: Server, path: str) -> None:
    """No script, no frame, no form: should a name ever get into it as HTML, it does nothing."""
    policy = get(server, path, {"Accept": "text/html"}).headers["Content-Security-Policy"]
    allowed = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert allowed.pop("style-src") == "'unsafe-inline'"
    assert allowed.pop("img-src") == "data:"
    assert allowed == dict.fromkeys(("default-src", "base-uri", "form-action", "frame-ancestors"), "'none'")
    assert get(server, path).headers["Content-Security-Policy"] is None


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/nowhere"])
def test_head(server: Server, path: str) -> None:
    """HEAD is the head of GET."""
    whole, head = get(server, path), get(server, path, method="HEAD")
    assert (head.status, head.body) == (whole.status, b"")
    names = [name for name in whole.headers if name not in ("Date", "Content-Length")]
    assert [head.headers[name] for name in names] == [whole.headers[name] for name in names]
    assert int(head.headers["Content-Length"]) > 0
    with connect(server, f"HEAD {path} HTTP/1.1\r\n\r\n".encode()) as client:
        assert rest(client).endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"])
def test_other_methods(server: Server, method: str) -> None:
    """Nobody has anything to send."""
    answer = get(server, method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/metrics/", "/METRICS", "/../etc/passwd", "/%2e%2e/etc/passwd", "/metrics%00", "*", "/é"],
)
def test_unknown_paths(server: Server, path: str) -> None:
    """No such page, and what there is; nothing of the path is repeated."""
    with connect(server, f"GET {path} HTTP/1.1\r\n\r\n".encode()) as client:
        answer = rest(client)
    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert answer.endswith(b"\r\n\r\nno such page; there are /, /metrics and /runbooks/\n")


def test_a_query_changes_nothing(server: Server) -> None:
    """Some load balancers add one."""
    assert get(server, "/-/healthy?probe=1").body == b"ok\n"


def test_ready_once_every_collector_has_polled() -> None:
    """503 while one has not, whatever came of the others' polls; 200 from then on, even if all fail."""
    shown = Board()
    shown.publish({Key("database", "jobs"): State(15, 15), Key("clock", "ntp"): State(64, 64)})
    with serving(shown) as server:
        assert (get(server, "/-/ready").status, get(server, "/-/healthy").status) == (503, 200)
        shown.publish({Key("database", "jobs"): State(15, 15, polls=1)})
        assert get(server, "/-/ready").body == b"collectors that have not polled yet: 1\n"
        shown.publish({Key("clock", "ntp"): State(64, 64, polls=1, streak=1, reason="timeout")})
        assert get(server, "/-/ready").status == 200


def test_hostile_names_stay_text(server: Server) -> None:
    """A queue's name is shown exactly in the metrics, and can neither be markup nor move a cursor on the page."""
    page = get(server).body.decode()
    shown = {sample.labels.get("queue") for family in text_string_to_metric_families(page) for sample in family.samples}
    assert HOSTILE in shown
    as_html = get(server, "/", {"Accept": "text/html"}).body.decode()
    assert "<script" not in as_html
    as_text = get(server, "/").body.decode()
    assert "\x1b" not in as_text + as_html
    spelled = printable(HOSTILE)
    assert spelled in as_text
    assert spelled in html.unescape(as_html)


@pytest.mark.parametrize(("host", "asked"), [("::1", "::1"), ("::", "::1"), ("::", "127.0.0.1"), ("", "127.0.0.1")])
def test_where_it_listens(host: str, asked: str) -> None:
    """On one address of IPv6, on all of both kinds, or on all of IPv4."""
    shown = board()
    server = open_server((host, 0), Pages(shown, Exposition(shown), Gate({})), WebConfig())
    thread = Thread(target=server.serve)
    thread.start()
    with socket.create_connection((asked, server.port), timeout=10) as client:
        client.sendall(b"GET /-/healthy HTTP/1.1\r\n\r\n")
        assert rest(client).endswith(b"\r\n\r\nok\n")
    server.stop()
    thread.join()


def test_the_status_page_tells_its_verdict() -> None:
    """The header is the exit status of `status`: 0 fine, 1 over a limit, 3 blind."""
    jobs = [JOBS(1, "database", "default", "expired")]
    said = []
    for shown in (board([TARGET_WAIT(60, "database", "default")]), board(jobs), Board()):
        if not shown.read():
            shown.publish({Key("database", "jobs"): State(15, 15, polls=1, streak=1, reason="refused")})
        with serving(shown) as server:
            said.append(get(server, "/").headers["Queue-Exporter-Verdict"])
    assert said == ["0", "1", "3"]
