"""What INFO says of a server's memory, and one that does not say it."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from exporter.demo.redis import Redis

from ..database.proxies import Address, Proxy
from ..world import value
from .world import behind, look, state_of, watched


class Rewriting(Proxy):
    """Puts other words of the same length into the answers, as a Redis of somebody else's making may say them."""

    def __init__(self, server: Address, old: bytes, new: bytes) -> None:
        self.old, self.new = old, new
        super().__init__(server)

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data.replace(self.old, self.new) if is_answer else data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\nused_memory:", b"\nuser_memory:"),
        (b"\nmaxmemory:0", b"\nmaxmemory:?"),
        (b"\nmaxmemory_policy:", b"\nmaxmemory_police:"),
        (b"\nevicted_keys:0", b"\nevicted_keys:x"),
    ],
    ids=["used", "maxmemory", "policy", "evicted"],
)
def test_a_server_that_does_not_say_it(server: Redis, old: bytes, new: bytes) -> None:
    """What is missing, or no number, is `malformed`, and no 0; the queues are none the worse for it."""
    with Rewriting(("127.0.0.1", server.port), old, new) as proxy, watched(behind(proxy)) as app:
        look(app)
        assert state_of(app, "server").reason == "malformed"
        assert value(app, "redis_memory_used_bytes") is None
        assert state_of(app, "queues").up
