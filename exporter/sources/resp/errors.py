"""Redis's errors under our names."""

from __future__ import annotations

import re

import redis

from ...errors import Reason, SourceError

# The server names most of its errors by their first word, of which redis-py makes a class, and leaves the word out.
BY_CLASS: tuple[tuple[type[Exception], Reason], ...] = (
    (redis.AuthenticationError, "auth"),
    (redis.BusyLoadingError, "loading"),
    (redis.exceptions.MasterDownError, "loading"),
    (redis.exceptions.NoPermissionError, "permission"),
    (redis.exceptions.ClusterError, "not_found"),
    (redis.exceptions.AskError, "not_found"),  # and that a key has moved
    (redis.exceptions.ClusterCrossSlotError, "not_found"),
    (redis.TimeoutError, "timeout"),
    (redis.InvalidResponse, "malformed"),
    (ValueError, "malformed"),  # a length that is no number
    (RecursionError, "malformed"),
)
BY_WORDS: tuple[tuple[str, Reason], ...] = (
    (r"^WRONGTYPE", "wrong_type"),
    (r"max number of clients", "too_many_connections"),
    (r"^DENIED", "permission"),  # in protected mode it lets in its own machine alone
    (r"DB index", "not_found"),
    (r"cluster mode", "not_found"),
    (r"^BUSY", "timeout"),  # a script that does not end
    (r"^unknown command", "permission"),  # renamed to something secret, as ACLs came late; or a Sentinel
)
# Some servers repeat what they were told, and a password with it: of a login their words are never passed on.
LOGIN: tuple[tuple[str, Reason, str], ...] = (
    (r"^unknown command", "auth", "AUTH is not known here (renamed?)"),
    (r"wrong number of arguments", "auth", "this Redis knows no users: leave the user's name out"),
    (r"password configured|password is set", "auth", "a password is set here, and none in this Redis"),
    (r"max number of clients", "too_many_connections", "max number of clients reached"),
    (r"^DENIED", "permission", "in protected mode it lets in its own machine alone"),
)
CLUSTER = "this key is on another server: a Redis Cluster is not supported"


def named(error: Exception, *, lost: bool) -> SourceError:
    """What went wrong; `lost` says that there is no connection any more either."""
    said = re.sub(r"^ERR ", "", " ".join(str(error).split()))
    fallback: Reason = "connect" if lost else "unexpected"
    by_words = next((named for words, named in BY_WORDS if re.search(words, said)), fallback)
    reason = next((named for kind, named in BY_CLASS if isinstance(error, kind)), by_words)
    return SourceError(reason, CLUSTER if reason == "not_found" and "DB index" not in said else said, unreachable=lost)


def is_farewell(error: Exception) -> bool:
    """Whether this was said to all that we may ever ask: the server hangs up after it."""
    return str(error).startswith("DENIED")


def login_refused(error: Exception) -> SourceError:
    """Why we were not let in, in our own words."""
    failure = named(error, lost=True)
    for words, reason, why in LOGIN:
        if re.search(words, str(failure)):
            return SourceError(reason, f"login refused: {why}", unreachable=True)
    if failure.reason in ("connect", "timeout") and not isinstance(error, redis.ResponseError):
        return failure  # the words of our own library
    reason = "auth" if failure.reason in ("connect", "unexpected") else failure.reason
    why = "user or password is wrong" if reason == "auth" else "the answer is none to AUTH"
    return SourceError(reason, f"login refused: {why}", unreachable=True)
