"""
The pages over HTTP: a thread for each client, a limit on clients and on their time.

Nobody has more to ask than one page and nobody has anything to send, so a connection carries
one request. The standard library parses it.
"""

from __future__ import annotations

import logging
import socket
import ssl
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from threading import Event, Lock
from typing import Any

from .errors import ConfigError
from .pages import Pages, Response
from .timing import Clock
from .web import WebConfig

log = logging.getLogger(__name__)

MOST_CLIENTS = 64  # one more, and we hang up on the oldest
PATIENCE = 10.0  # seconds in which a client is to ask and to take its answer
TICK = 0.25  # seconds between two looks at who is over time
WRONG_METHOD = Response(b"only GET and HEAD\n", status=HTTPStatus.METHOD_NOT_ALLOWED, headers=(("Allow", "GET, HEAD"),))


class Handler(BaseHTTPRequestHandler):
    """One client."""

    server: Server
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # or what cannot be parsed would be answered without a head
    wbufsize = -1  # head and body go out together

    def do_GET(self) -> None:
        """Answer with a page."""
        headers = {name.lower(): ", ".join(self.headers.get_all(name, ())) for name in self.headers}
        self.respond(self.server.pages.answer(self.path.partition("?")[0], headers))

    do_HEAD = do_GET  # noqa: N815  # the name in the standard library

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses: other methods, and what is not HTTP."""
        status = HTTPStatus(code)
        wrong_method = status is HTTPStatus.NOT_IMPLEMENTED
        self.respond(WRONG_METHOD if wrong_method else Response(f"{status.phrase}\n".encode(), status=status))

    def respond(self, response: Response) -> None:
        """Send the response, and with it the end of the connection."""
        self.send_response_only(response.status)
        self.send_header("Date", self.date_time_string())
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
        log.debug("http", extra={"client": self.client_address[0], "status": int(response.status)})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in the standard library
        """What clients do wrong is theirs."""


class Server(ThreadingMixIn, TCPServer):
    """Listens from the start, answers from `serve` to `stop`."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    timeout = TICK

    def __init__(
        self, address: tuple[str, int], pages: Pages, tls: ssl.SSLContext | None = None, clock: Clock = Clock()
    ) -> None:
        host, port = address
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)  # noqa: S104  # asked for
        self.address_family = found[0][0]
        self.pages, self.tls, self.clock = pages, tls, clock
        self.clients: dict[socket.socket, float] = {}  # since when, the oldest first
        self.stopped, self.at_work = Event(), Lock()
        super().__init__((str(found[0][4][0]), port), Handler)

    @property
    def port(self) -> int:
        """Where it listens, if the settings left that open with port 0."""
        return int(self.server_address[1])

    @property
    def where(self) -> str:
        """The address it listens on, in the form of `web.listen`."""
        return shown(str(self.server_address[0]), self.port)

    def serve(self) -> None:
        """Answer until stopped."""
        with self.at_work:
            while not self.stopped.is_set():
                self.handle_request()
                self.hang_up(before=self.clock.mono() - PATIENCE)

    def stop(self) -> None:
        """Stop answering and listening."""
        self.stopped.set()
        with self.at_work:
            self.server_close()

    def hang_up(self, before: float) -> None:
        """End the connections begun before that moment: whoever is stuck on one is freed by it."""
        for client, since in list(self.clients.items()):
            if since <= before:
                self.clients.pop(client, None)
                with suppress(OSError):
                    socket.socket.shutdown(client, socket.SHUT_RDWR)  # below TLS, which is not for two threads

    def get_request(self) -> tuple[Any, Any]:
        """A new client. The handshake of TLS waits for the client's own thread."""
        client, address = super().get_request()
        if self.tls:
            client = self.tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        return client, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        if len(self.clients) >= MOST_CLIENTS:
            self.hang_up(before=min(list(self.clients.values()), default=0.0))
        self.clients[request] = self.clock.mono()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """The connection is over."""
        self.clients.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks off, or speaks something else than TLS, is no news; a bug is."""
        broke_off = isinstance(sys.exc_info()[1], OSError)
        log.log(
            logging.DEBUG if broke_off else logging.ERROR, "http", extra={"client": client_address[0]}, exc_info=True
        )


def shown(host: str, port: int) -> str:
    """An address in the form of `web.listen`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_server(address: tuple[str, int], pages: Pages, config: WebConfig) -> Server:
    """Listen, without serving yet. Raises `ConfigError` if the address cannot be had."""
    tls = config.tls_server_config
    try:
        return Server(address, pages, tls.context() if tls else None)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "no such address"
        raise ConfigError(f"web.listen: expected an address that is free, {shown(*address)}: {why}") from None
