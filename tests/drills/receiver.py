"""Who is paged and who gets a ticket: a webhook of Alertmanager's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

PAGER, TICKETS = "laravel-queue-pager", "laravel-queue-tickets"
PREFIX = "LaravelQueue"


class Receiver:
    """What arrived, by receiver: names of alerts without their prefix, in the order in which they came."""

    def __init__(self) -> None:
        self.told: dict[str, list[str]] = {PAGER: [], TICKETS: []}
        self.url = ""

    @property
    def alerts(self) -> set[str]:
        """All that anybody was told of."""
        return {name for names in self.told.values() for name in names}

    def take(self, receiver: str, body: bytes) -> None:
        """One notification."""
        for alert in json.loads(body)["alerts"]:
            if alert["status"] == "firing":
                self.told[receiver].append(alert["labels"]["alertname"].removeprefix(PREFIX))


@contextmanager
def receiving() -> Iterator[Receiver]:
    """One that listens on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name is http.server's
            receiver.take(self.path.strip("/"), self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *said: object) -> None:
            """Nothing: the test says what arrived."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        listening = Thread(target=server.serve_forever)
        listening.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            listening.join()
