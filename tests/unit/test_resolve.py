"""The look-up of names: within the deadline, whatever the resolver does."""

from __future__ import annotations

import socket
import threading
import time
from threading import Event
from typing import Any

import pytest

from exporter.errors import SourceError
from exporter.sources.resolve import resolve
from exporter.timing import Deadline


def within(seconds: float) -> Deadline:
    """A deadline on the real clock."""
    return Deadline(time.monotonic() + seconds)


def test_addresses_in_the_resolvers_order() -> None:
    """An address resolves to itself, a name to what the resolver says, in its order."""
    assert resolve("127.0.0.1", within(2)) == ["127.0.0.1"]
    assert resolve("::1", within(2)) == ["::1"]

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", ("10.0.0.2", 0)), (0, 0, 0, "", ("10.0.0.1", 0))]

    assert resolve("db.internal", within(2), getaddrinfo) == ["10.0.0.2", "10.0.0.1"]


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
def test_no_such_name_is_dns(error: Exception) -> None:
    """A name without an address fails by `dns`, with the name and the resolver's words."""

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        raise error

    with pytest.raises(SourceError, match=r"db\.internal: (Name or service not known|label too long)") as failure:
        resolve("db.internal", within(2), getaddrinfo)
    assert failure.value.reason == "dns"


def test_a_resolver_that_hangs_costs_the_deadline_and_one_thread() -> None:
    """A resolver that does not answer is waited for until the deadline; asked again and again, it holds one thread."""
    threads, answer, asked = threading.active_count(), Event(), []

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        answer.wait(10)
        return [(0, 0, 0, "", ("10.0.0.1", 0))]

    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(SourceError, match="did not answer in time") as failure:
            resolve("hangs.internal", within(0.05), getaddrinfo)
        assert failure.value.reason == "dns"
        assert 0.05 <= time.monotonic() - began < 0.5
    assert (asked, threading.active_count()) == (["hangs.internal"], threads + 1)
    answer.set()
    assert resolve("hangs.internal", within(2), getaddrinfo) == ["10.0.0.1"]
    assert (asked, threading.active_count()) == (["hangs.internal"], threads)  # the late answer served
    assert resolve("hangs.internal", within(2), getaddrinfo) == ["10.0.0.1"]
    assert asked == ["hangs.internal"] * 2  # but only once
