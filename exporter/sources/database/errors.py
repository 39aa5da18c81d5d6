"""PostgreSQL's errors under our names."""

from __future__ import annotations

import re

import psycopg

from ...errors import Reason, SourceError

BY_SQLSTATE: tuple[tuple[str, Reason], ...] = (  # the first prefix that fits; Appendix A of PostgreSQL's manual
    ("57014", "timeout"),  # statement_timeout, or a pg_cancel_backend
    ("40001", "timeout"),  # on a standby: the question stood in the way of the replay for too long
    ("55P03", "lock_timeout"),
    ("53300", "too_many_connections"),
    ("42501", "permission"),
    ("42P01", "undefined_table"),
    ("3F000", "undefined_table"),
    ("3D000", "not_found"),
    ("57P03", "loading"),
    ("57P", "connect"),  # shut down, crashed, terminated
    ("08", "connect"),
    ("28", "auth"),
    ("42", "malformed"),  # a column that Laravel's table has is missing, or of another type
    ("22", "malformed"),
)

# A failed login carries no SQLSTATE in libpq, so its words have to do. A server that
# speaks another language than English ends up as "connect".
BY_WORDS: tuple[tuple[str, Reason], ...] = (
    (
        r"too many (clients|connections)|connection slots are reserved|no more connections allowed",
        "too_many_connections",
    ),
    (r"pg_hba", "auth"),  # before "tls": its message also says whether the connection was encrypted
    (r"certificate|SSL|sslmode|TLS", "tls"),
    (r"password|authentication|not permitted to log in|role .* does not exist|no such user", "auth"),
    (r"database .* does not exist|no such database", "not_found"),
    (r"starting up|shutting down|in recovery|not yet accepting|not accepting connections", "loading"),
    (r"Connection refused|No such file or directory", "refused"),
    (r"permission denied for database|CONNECT privilege", "permission"),
    (r"timeout|timed out", "timeout"),
)


def named(error: psycopg.Error, *, connecting: bool = False) -> SourceError:
    """The error with a reason from our closed set and a message of one line."""
    message = " ".join(str(error).split())
    reason: Reason = "connect" if isinstance(error, psycopg.OperationalError) else "unexpected"
    if error.sqlstate:
        reason = next((r for prefix, r in BY_SQLSTATE if error.sqlstate.startswith(prefix)), reason)
    elif connecting:
        reason = next((r for words, r in BY_WORDS if re.search(words, message, re.IGNORECASE)), reason)
    return SourceError(reason, message, unreachable=connecting)
