"""The pages: /metrics, /, /-/healthy, /-/ready. They read memory only."""

from __future__ import annotations

import gzip
import html
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from cheroot.ssl.builtin import BuiltinSSLAdapter
from cheroot.wsgi import Server as HttpServer
from prometheus_client.exposition import CONTENT_TYPE_LATEST as TEXT
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS

from . import web
from .board import Board
from .errors import ConfigError
from .exposition import Exposition
from .status import report, text

log = logging.getLogger(__name__)

THREADS = 8  # a slow reader holds one of them, for TIMEOUT at most
TIMEOUT = 5  # seconds that a client may be silent for
LARGEST_HEADER = 16 * 1024  # bytes
LARGEST_BODY = 1024  # bytes; nobody has anything to send
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="15"><meta name="color-scheme" content="light dark">
<title>Laravel queues</title></head><body><h1>Laravel queues</h1><pre>{}</pre>
<p><a href="/metrics">metrics</a></p></body></html>
"""
VERDICT = "Queue-Exporter-Verdict"  # the exit status of `status`

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class Response(NamedTuple):
    """An answer before it is compressed."""

    body: bytes
    kind: str = "text/plain; charset=utf-8"
    status: str = "200 OK"
    headers: tuple[tuple[str, str], ...] = ()


class Pages:
    """The WSGI application."""

    def __init__(self, board: Board, exposition: Exposition, gate: web.Gate) -> None:
        self.board, self.exposition, self.gate = board, exposition, gate
        self.routes = {
            "/": self.status,
            "/metrics": self.metrics,
            "/-/healthy": self.healthy,
            "/-/ready": self.ready,
        }

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response = self.answer(environ)
        body, headers = response.body, [("Content-Type", response.kind), *response.headers]
        if "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "") and len(body) > 1024:
            body = gzip.compress(body, compresslevel=1)
            headers.append(("Content-Encoding", "gzip"))
        headers += [
            ("Content-Length", str(len(body))),
            ("Vary", "Accept, Accept-Encoding"),
            ("Cache-Control", "no-store"),
        ]
        start_response(response.status, headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def answer(self, environ: Environ) -> Response:
        """The page that was asked for, or why there is none."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return Response(b"only GET and HEAD\n", status="405 Method Not Allowed", headers=(("Allow", "GET, HEAD"),))
        page = self.routes.get(environ.get("PATH_INFO", ""))
        if page is None:
            return Response(b"no such page; there are / and /metrics\n", status="404 Not Found")
        if page not in (self.healthy, self.ready) and not self.gate.opens(environ.get("HTTP_AUTHORIZATION", "")):
            asks = (("WWW-Authenticate", 'Basic realm="queue-exporter"'),)
            return Response(b"a login is needed\n", status="401 Unauthorized", headers=asks)
        return page(environ)

    def metrics(self, environ: Environ) -> Response:
        """The exposition, in the format that was asked for."""
        if "application/openmetrics-text" in environ.get("HTTP_ACCEPT", ""):
            return Response(self.exposition.page("openmetrics"), OPENMETRICS)
        return Response(self.exposition.page("text"), TEXT)

    def status(self, environ: Environ) -> Response:
        """What is over its limit: for a browser, or as the text that `status` prints."""
        now = report(self.board, clock=self.exposition.clock)
        verdict = ((VERDICT, str(int(now.verdict))),)
        if "text/html" in environ.get("HTTP_ACCEPT", ""):
            return Response(PAGE.format(html.escape(text(now))).encode(), "text/html; charset=utf-8", headers=verdict)
        return Response(text(now).encode(), headers=verdict)

    def healthy(self, environ: Environ) -> Response:
        """The process is alive; this asks nothing else."""
        return Response(b"ok\n")

    def ready(self, environ: Environ) -> Response:
        """Whether every collector has been asked once."""
        waiting = [f"{key.source}/{key.collector}" for key, state in self.board.read().items() if state.polls == 0]
        if waiting:
            return Response(f"not asked yet: {', '.join(waiting)}\n".encode(), status="503 Service Unavailable")
        return Response(b"ready\n")


class Server(HttpServer):
    """An HTTP server with few threads, short patience and its errors in our log."""

    def error_log(self, msg: str = "", level: int = 20, traceback: bool = False) -> None:
        log.log(
            level if level > logging.INFO else logging.DEBUG,
            "http",
            extra={"error": " ".join(msg.split())},
            exc_info=traceback,
        )


def open_server(address: tuple[str, int], pages: Pages, config: web.WebConfig) -> Server:
    """Listen, without serving yet. Raises `ConfigError` if the address cannot be had."""
    server = Server(address, pages, numthreads=THREADS, max=THREADS, timeout=TIMEOUT, shutdown_timeout=1)
    server.max_request_header_size, server.max_request_body_size = LARGEST_HEADER, LARGEST_BODY
    if tls := config.tls_server_config:
        server.ssl_adapter = BuiltinSSLAdapter(str(tls.cert_file), str(tls.key_file))
        server.ssl_adapter.context = web.context(tls)
    try:
        server.prepare()
    except OSError as error:
        host, port = address
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        why = " ".join(str(error.args[-1] if error.args else error).split())
        raise ConfigError(f"web.listen: expected a free address, cannot listen on {shown}: {why}") from None
    return server
