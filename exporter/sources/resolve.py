"""A host's addresses, within a deadline: the resolver itself cannot be given one."""

from __future__ import annotations

import socket
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from ..errors import SourceError
from ..timing import Deadline


class LookUp(Thread):
    """One question to the resolver. Left behind if nobody waits for it any longer; it ends when the resolver does."""

    def __init__(self, host: str, getaddrinfo: Callable[..., Any]) -> None:
        super().__init__(name=f"resolve {host}", daemon=True)
        self.host, self.getaddrinfo = host, getaddrinfo
        self.addresses: list[str] = []
        self.error: OSError | UnicodeError | None = None

    def run(self) -> None:
        try:
            found = self.getaddrinfo(self.host, None, type=socket.SOCK_DGRAM)
            self.addresses = [str(address[0]) for *_, address in found]
        except (OSError, UnicodeError) as error:
            self.error = error


_lock = Lock()
_under_way: dict[str, LookUp] = {}  # by host: a resolver that hangs for ever costs one thread, not one a poll


def resolve(host: str, deadline: Deadline, getaddrinfo: Callable[..., Any] = socket.getaddrinfo) -> list[str]:
    """
    The addresses of `host`, in the resolver's order. Raises `SourceError("dns")`.

    An answer that came too late for one poll serves the next: a resolver that is slower than
    our patience is overcome in two.
    """
    with _lock:
        look_up = _under_way.get(host)
        if look_up is None:
            look_up = _under_way[host] = LookUp(host, getaddrinfo)
            look_up.start()
    look_up.join(deadline.left())
    if look_up.is_alive():
        raise SourceError("dns", f"{host}: the name server did not answer in time", unreachable=True)
    with _lock:
        if _under_way.get(host) is look_up:
            del _under_way[host]
    if look_up.error is not None:
        why = getattr(look_up.error, "strerror", None) or look_up.error
        raise SourceError("dns", f"{host}: {why}", unreachable=True)
    return look_up.addresses
