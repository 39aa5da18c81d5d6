"""The ways a source may fail that we know by name, and a complaint about the settings."""

from __future__ import annotations

from typing import Literal, get_args

Reason = Literal[
    "timeout",  # no answer in time, or the far side gave up because of its own time limit
    "lock_timeout",  # a lock was held for too long (an ALTER TABLE, a LOCK TABLE)
    "connect",  # the connection could not be made, or broke
    "dns",  # the name has no address
    "refused",  # nobody listens there
    "tls",  # the encrypted channel could not be agreed on
    "auth",  # the login was refused
    "too_many_connections",  # the server, or our role, has no connection left
    "permission",  # logged in, but not allowed to ask this
    "undefined_table",  # the table (or its schema) is not there
    "not_found",  # the database, queue or service is not there
    "throttled",  # asked too often
    "loading",  # starting up, or in recovery without read access
    "wrong_type",  # a key or column is of another type than Laravel writes
    "kod",  # the NTP server sent a kiss-o'-death
    "unsynchronised",  # the NTP server does not know the time itself
    "malformed",  # the answer is not what the protocol, or Laravel's schema, says
    "unexpected",  # none of these: a bug of ours, most likely
]
REASONS: tuple[Reason, ...] = get_args(Reason)


class SourceError(Exception):
    """
    The far side failed. `reason` becomes a label, so it comes from a closed set.

    `unreachable` says that nothing else can be asked over this connection either.
    """

    def __init__(self, reason: Reason, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.unreachable = unreachable


class ConfigError(Exception):
    """What is wrong with the settings: one line each, starting with the setting's path."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
