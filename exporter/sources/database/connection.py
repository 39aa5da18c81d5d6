"""
A connection that keeps to a deadline, from the look-up of the host's name to the last byte of an answer.

libpq and psycopg count whole seconds, two at least, and look names up without any limit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg import adapt, generators, pq, waiting
from psycopg.conninfo import conninfo_attempts, make_conninfo
from psycopg.rows import DictRow, dict_row

from ...errors import Reason, SourceError
from ...timing import Deadline
from ..resolve import resolve
from .errors import login_failed

TICK = 0.1  # seconds between two looks at signals
TEXT_TYPES = ("text", "varchar", "bpchar", "name", "json")
TimedOutError = psycopg.errors._WaitTimeout  # noqa: SLF001  # it has no public name
ANSWERED: tuple[Reason, ...] = ("auth", "not_found", "permission", "too_many_connections")

Params = dict[str, Any]  # of a DSN
Answer = TypeVar("Answer")
Resolve = Callable[[str, Deadline], list[str]]


class Lenient(adapt.Loader):
    """Text whose bytes may not be UTF-8, although we asked for it: a database in SQL_ASCII converts nothing."""

    def load(self, data: adapt.Buffer) -> str:
        return bytes(data).decode("utf-8", "replace")


class Connection(psycopg.Connection[DictRow]):
    """A connection on which every wait ends at the deadline: a deaf peer outlasts any timeout of the server's."""

    deadline = Deadline(inf)  # each question brings its own

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn, dict_row)
        self.autocommit = True  # what we send is a transaction by itself
        self.prepare_threshold = None  # a prepared statement would outlive it
        for name in TEXT_TYPES:
            self.adapters.register_loader(name, Lenient)

    @property
    def idle(self) -> bool:
        """Whether a question may be asked: the last one is over, and the connection stands."""
        return self.pgconn.transaction_status == pq.TransactionStatus.IDLE

    def wait(self, gen: Generator[Any, Any, Answer], interval: float = TICK, timeout: float | None = None) -> Answer:
        try:
            return waiting.wait(gen, self.pgconn.socket, interval, self.deadline.left())
        except TimedOutError:
            raise SourceError("timeout", "no answer from the server in time", unreachable=True) from None


def connect(params: Params, deadline: Deadline, resolve: Resolve = resolve) -> Connection:
    """
    A connection to the first address that lets us in. Raises `SourceError`.

    Each address gets an equal share of the time, so that a dead one leaves some to the next.
    A server that refuses us has answered: as in libpq, no other address is tried then, for it
    may be the same server, which counts failed logins.
    """
    try:
        attempts = conninfo_attempts(with_addresses(params, deadline, resolve))
    except psycopg.Error as error:
        raise login_failed(error) from None
    reason: Reason = "connect"
    failures = []  # as text: an error would hold on to the socket that failed
    for tried, attempt in enumerate(attempts):
        try:
            return Connection(_let_in(attempt, deadline.share(len(attempts) - tried)))
        except SourceError as failure:
            reason = failure.reason
            failures.append(str(failure))
            if reason in ANSWERED:
                break
    raise SourceError(reason, "; ".join(dict.fromkeys(failures)), unreachable=True)


def _let_in(params: Params, deadline: Deadline) -> pq.abc.PGconn:
    conninfo = make_conninfo("", **params)
    try:
        pgconn: pq.abc.PGconn = waiting.wait_conn(generators.connect(conninfo), TICK, deadline.left())
    except TimedOutError:
        server = params.get("host") or params.get("hostaddr") or "the server"
        raise SourceError("timeout", f"{server} did not let us in in time", unreachable=True) from None
    except psycopg.Error as error:
        raise login_failed(error) from None
    return pgconn


def with_addresses(params: Params, deadline: Deadline, resolve: Resolve = resolve) -> Params:
    """
    The parameters with every host's addresses, so that nobody looks a name up after us.

    Of several hosts it is enough that one has an address. Raises `SourceError("dns")`. Only
    the host of a `service=` is left to libpq, which waits for a name server as long as it takes.
    """
    given = {option.keyword.decode(): (option.val or b"").decode() for option in pq.Conninfo.get_defaults()} | params
    hosts, ports = given["host"].split(","), str(given["port"]).split(",")
    if given["hostaddr"] or not given["host"] or len(ports) not in (1, len(hosts)):
        return params  # there is no name, or a mistake that psycopg has words for
    found, failures = [], []
    reason: Reason = "dns"
    for at, host in enumerate(hosts):
        is_socket = not host or host.startswith(("/", "@"))
        try:
            addresses = [""] if is_socket else resolve(host, deadline.share(len(hosts) - at + 1))
        except SourceError as failure:
            reason = failure.reason
            failures.append(str(failure))
        else:
            found += [(host, address, ports[at % len(ports)]) for address in addresses]
    if not found:
        raise SourceError(reason, "; ".join(failures), unreachable=True)
    host, hostaddr, port = (",".join(column) for column in zip(*found, strict=True))
    return params | {"host": host, "hostaddr": hostaddr, "port": port}
