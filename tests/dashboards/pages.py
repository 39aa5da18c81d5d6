"""Exporters that stand still: a real page, served again and again, with counters that grow by the clock."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

PER_SECOND = 10.0  # by which each counter grows
COUNTER = re.compile(r"^(laravel_queue_\w+_(?:total|bucket|count)(?:\{.*\})?) (\S+)$", re.MULTILINE)


class Standing(ThreadingHTTPServer):
    """One of them."""

    def __init__(self, page: str) -> None:
        self.page = page

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                more = PER_SECOND * (time.time() % 1e6)
                body = COUNTER.sub(lambda found: f"{found[1]} {float(found[2]) + more}", page).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in the base class
                """Say nothing."""

        super().__init__(("127.0.0.1", 0), Answer)


@contextmanager
def standing(page: str, how_many: int) -> Iterator[list[str]]:
    """So many exporters that say the same: their addresses."""
    with ExitStack() as ended:
        servers = [ended.enter_context(Standing(page)) for _ in range(how_many)]
        for server in servers:
            Thread(target=server.serve_forever, daemon=True).start()
            ended.callback(server.shutdown)
        yield [f"127.0.0.1:{server.server_port}" for server in servers]
