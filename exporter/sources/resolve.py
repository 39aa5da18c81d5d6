"""A host's addresses, within a deadline: the resolver itself cannot be given one."""

from __future__ import annotations

import socket
from threading import Thread

from ..errors import SourceError
from ..timing import Deadline


def resolve(host: str, deadline: Deadline) -> list[str]:
    """
    The addresses of `host`, in the resolver's order. Raises `SourceError("dns")`.

    The look-up runs in a thread of its own, which is left behind when the deadline comes
    first; it ends when the resolver gives up.
    """
    answers: list[list[str] | OSError | UnicodeError] = []

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
            answers.append([str(address[0]) for *_, address in found])
        except (OSError, UnicodeError) as error:
            answers.append(error)

    thread = Thread(target=look_up, name=f"resolve {host}", daemon=True)
    thread.start()
    thread.join(deadline.left())
    if not answers:
        raise SourceError("dns", f"{host}: the name server did not answer in time", unreachable=True)
    if isinstance(answer := answers[0], Exception):
        raise SourceError("dns", f"{host}: {getattr(answer, 'strerror', None) or answer}", unreachable=True)
    return answer
