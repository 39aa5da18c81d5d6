"""PostgreSQL's errors under our names."""

from __future__ import annotations

import re

import psycopg

from ...errors import Reason, SourceError

BY_SQLSTATE: tuple[tuple[str, Reason], ...] = (  # the first prefix that fits; Appendix A of PostgreSQL's manual
    ("57014", "timeout"),  # statement_timeout, or a pg_cancel_backend
    ("25P04", "timeout"),  # transaction_timeout
    ("40", "timeout"),  # on a standby: the question stood in the way of the replay for too long
    ("55P03", "lock_timeout"),
    ("53300", "too_many_connections"),
    ("42501", "permission"),
    ("42P01", "undefined_table"),
    ("3F000", "undefined_table"),
    ("3D000", "not_found"),
    ("57P03", "loading"),
    ("28", "auth"),
    ("42", "malformed"),  # a column that Laravel's table has is missing, or of another type
    ("22", "malformed"),
)
DATA_EXCEPTION = "22"  # a class; its messages quote what is in a row, which is for nobody to see
PROTOCOL_VIOLATION = "08P01"  # PgBouncer gives it to almost all of its errors

# A failed login carries no SQLSTATE in libpq, so its words have to do. A server that
# speaks another language than English ends up as "connect".
BY_WORDS: tuple[tuple[str, Reason], ...] = (
    (
        r"too many (clients|connections)|connection slots are reserved|no more connections allowed",
        "too_many_connections",
    ),
    (r"could not translate host name", "dns"),
    (r"invalid response|expected authentication request|unsupported frontend protocol", "malformed"),
    (r"pg_hba", "auth"),  # before "tls": its message also says whether the connection was encrypted
    (r"certificate|private key|SSL|sslmode|TLS", "tls"),
    (r"timeout|timed out", "timeout"),
    (r"password|authentication|not permitted to log in|role .* does not exist|no such user", "auth"),
    (r"is not currently accepting connections", "auth"),  # a database that is closed to everybody
    (r"database .* does not exist|no such database", "not_found"),
    (r"starting up|shutting down|in recovery|not yet accepting|not accepting connections", "loading"),
    (r"Connection refused|No such file or directory", "refused"),
    (r"permission denied for database", "permission"),
)
QUOTED = re.compile(r'"[^"]*"')  # names of hosts, roles and databases, which may hold any word


def login_failed(error: psycopg.Error) -> SourceError:
    """Why we were not let in."""
    return SourceError(_by_words(str(error)), one_line(error), unreachable=True)


def question_failed(error: psycopg.Error, *, lost: bool) -> SourceError:
    """Why there is no answer; `lost` says that there is no connection any more either."""
    state = error.sqlstate or ""
    reason: Reason = "connect" if lost else "unexpected"
    if state == PROTOCOL_VIOLATION:
        reason = _by_words(str(error))
    reason = next((named for prefix, named in BY_SQLSTATE if state.startswith(prefix)), reason)
    message = one_line(error)
    if state.startswith(DATA_EXCEPTION):
        message = message.partition('"')[0].rstrip(" :")
    return SourceError(reason, message, unreachable=lost)


def one_line(error: psycopg.Error) -> str:
    """The error's first sentence: what follows quotes our question, or what is in a row."""
    return " ".join((error.diag.message_primary or str(error)).split())


def _by_words(message: str) -> Reason:
    words = QUOTED.sub('""', message)
    return next((named for pattern, named in BY_WORDS if re.search(pattern, words, re.IGNORECASE)), "connect")
