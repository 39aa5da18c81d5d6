"""
A connection that keeps to a deadline, from the look-up of the host's name to the last byte of an answer.

redis-py packs commands and reads answers. It gives each single wait a time limit, so a peer that
sends a byte now and then could keep it for ever; and it looks names up without any limit.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

import redis

from ...errors import Reason, SourceError
from ...source import nothing
from ...timing import Deadline
from ..resolve import resolve
from .errors import is_farewell, login_refused, named
from .replies import Reply
from .target import Target

NAME = "queue-exporter"  # of our connections, in Redis's CLIENT LIST
FAULTS = (redis.RedisError, ValueError, RecursionError)  # the last two of an answer that is not in Redis's protocol

Command = tuple[str | bytes | int, ...]
Resolve = Callable[[str, Deadline], list[str]]


class Connection(redis.Connection):
    """redis-py's connection, without what it would do by itself: no login, no name, no retries, no health checks."""

    deadline = Deadline(inf)  # each question brings its own

    def __init__(self, target: Target, resolve: Resolve = resolve) -> None:
        super().__init__(  # type: ignore[no-untyped-call]  # as much of redis-py
            host=target.host,
            port=target.port,
            protocol=2,
            driver_info=None,
        )
        self.target, self.resolve = target, resolve

    def _connect(self) -> Bounded:
        return Bounded(dial(self.target, self.deadline, self.resolve), self)


class Bounded:
    """A socket on which every wait ends at the deadline of its connection."""

    def __init__(self, plain: socket.socket, connection: Connection) -> None:
        self.plain, self.connection = plain, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def settimeout(self, seconds: float | None) -> None:
        """Nothing: redis-py's own limits are for single waits."""

    def recv(self, size: int) -> bytes:
        """Some bytes. Raises `SourceError`, as all of them."""
        with self._until_deadline():
            return self.plain.recv(size)

    def recv_into(self, buffer: Any) -> int:
        """The same into a buffer, which redis-py prefers where the library hiredis is there."""
        with self._until_deadline():
            return self.plain.recv_into(buffer)

    def sendall(self, data: bytes) -> None:
        """Send, but for no longer than is left."""
        with self._until_deadline():
            self.plain.sendall(data)

    @contextmanager
    def _until_deadline(self) -> Iterator[None]:
        self.plain.settimeout(self.connection.deadline.left())
        try:
            yield
        except ssl.SSLError as error:  # since TLS 1.3 a server complains of our certificate after the handshake
            raise SourceError("tls", f"{self.connection.target.shown}: {_why(error)}", unreachable=True) from None


class Link:
    """One connection to one Redis, over which one pipeline at a time is sent."""

    def __init__(self, target: Target, resolve: Resolve = resolve) -> None:
        self.target, self.resolve = target, resolve
        self._connection: Connection | None = None

    def ask(self, commands: Sequence[Command], deadline: Deadline, heard: Callable[[], None] = nothing) -> list[Reply]:
        """
        The reply to each command, connecting where there is no connection. Raises `SourceError`.

        A command that failed alone has its `SourceError` for a reply. `heard` is called when the first reply is there.
        """
        was_connected = self._connection is not None
        try:
            return self._ask(commands, deadline, heard)
        except SourceError as failure:
            if failure.reason != "connect" or not was_connected:
                raise
        # A restart, a proxy or a firewall may have closed the connection since the last poll: that is no failure yet.
        return self._ask(commands, deadline, heard)

    def close(self) -> None:
        """Close the connection; the next question opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def _ask(self, commands: Sequence[Command], deadline: Deadline, heard: Callable[[], None]) -> list[Reply]:
        try:
            connection = self._connected(deadline)
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            first = [_reply(connection) for _ in commands[:1]]
            heard()
            return first + [_reply(connection) for _ in commands[1:]]
        except SourceError:
            self.close()
            raise
        except FAULTS as error:
            self.close()
            raise named(error, lost=True) from None

    def _connected(self, deadline: Deadline) -> Connection:
        if self._connection is None:
            self._connection = Connection(self.target, self.resolve)
            self._connection.deadline = deadline
            self._connection.connect()
            self._begin(self._connection)
        self._connection.deadline = deadline
        return self._connection

    def _begin(self, connection: Connection) -> None:
        """Log in, choose the database, and say who we are, in one go."""
        target = self.target
        login = [target.password] if target.password else []
        if target.username:
            login = [target.username, target.password or ""]
        commands: list[Command] = [("AUTH", *login)] if login else []
        commands += [("SELECT", target.database)] if target.database else []
        commands += [("CLIENT", "SETNAME", NAME)]
        connection.send_packed_command(connection.pack_commands(commands), check_health=False)
        for command in commands:
            try:
                connection.read_response(disconnect_on_error=False)
            except FAULTS as error:
                failure = login_refused(error) if command[0] == "AUTH" else named(error, lost=True)
                if command[0] == "CLIENT" and isinstance(error, redis.ResponseError) and not is_farewell(error):
                    continue  # who may not give itself a name has none
                hint = f" ({target.hint})" if failure.reason == "connect" else ""
                raise SourceError(failure.reason, f"{failure}{hint}", unreachable=True) from None


def _reply(connection: Connection) -> Reply:
    try:
        return connection.read_response(disconnect_on_error=False)
    except redis.ResponseError as error:
        return named(error, lost=False)


def dial(target: Target, deadline: Deadline, resolve: Resolve = resolve) -> socket.socket:
    """
    A socket that is connected to the first address that lets us in. Raises `SourceError`.

    Each address gets an equal share of the time, so that a dead one leaves some to the next.
    """
    if target.path:
        return _to(target, socket.AF_UNIX, target.path, deadline)
    addresses = resolve(target.host, deadline.share(2))
    failures = []
    for tried, address in enumerate(addresses):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            return _to(target, family, (address, target.port), deadline.share(len(addresses) - tried))
        except SourceError as failure:
            failures.append(failure)
    said = "; ".join(dict.fromkeys(str(failure) for failure in failures))
    raise SourceError(failures[-1].reason, said, unreachable=True)


def _to(target: Target, family: socket.AddressFamily, address: Any, deadline: Deadline) -> socket.socket:
    plain = socket.socket(family)
    try:
        plain.settimeout(deadline.left())
        plain.connect(address)
        return _encrypted(plain, target, deadline) if target.tls else plain
    except OSError as error:
        plain.close()
        raise SourceError(_reason(error), f"{target.shown}: {_why(error)}", unreachable=True) from None
    except SourceError:
        plain.close()
        raise


def _encrypted(plain: socket.socket, target: Target, deadline: Deadline) -> socket.socket:
    trust = _trust(target)
    plain.settimeout(deadline.left())
    try:
        return trust.wrap_socket(plain, server_hostname=target.host)
    except TimeoutError:
        said = f"{target.shown}: the TLS handshake was not answered in time (does this Redis speak TLS?)"
        raise SourceError("timeout", said, unreachable=True) from None


def _trust(target: Target) -> ssl.SSLContext:
    """Whom we trust, and who we are. What is wrong with a file is said of that file."""
    named = f"ca_file {target.ca_file}"
    try:
        trust = ssl.create_default_context(cafile=target.ca_file)
        if target.cert_file:
            named = f"cert_file {target.cert_file}" + (f", key_file {target.key_file}" if target.key_file else "")
            trust.load_cert_chain(target.cert_file, target.key_file)
    except OSError as error:  # an SSLError is one
        said = "expected PEM, and the key of this certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise SourceError("tls", f"{named}: {said}", unreachable=True) from None
    return trust


def _reason(error: OSError) -> Reason:
    kinds: tuple[tuple[type[OSError], Reason], ...] = (
        (TimeoutError, "timeout"),
        (ssl.SSLError, "tls"),
        (ConnectionRefusedError, "refused"),
        (FileNotFoundError, "refused"),  # of a socket
        (PermissionError, "permission"),
    )
    return next((reason for kind, reason in kinds if isinstance(error, kind)), "connect")


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no connection in time"
    if isinstance(error, ssl.SSLEOFError) or "CERTIFICATE_REQUIRED" in str(error):
        return "it ended the encrypted connection: does it want to see a certificate of ours (cert_file)?"
    return str(getattr(error, "verify_message", None) or error.strerror or error)
