"""What can be set for a connection of Laravel's `database` driver."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from ...settings import Name, QueueName, Seconds, Settings, WithSecrets, empty_as_defaults

LARAVEL_RETRY_AFTER = 90.0  # in config/queue.php of a new application
ENCODE = "percent-encode special characters in it (@ is %40, / is %2F, # is %23), or use password_file"


class Queue(Settings):
    """One queue; what is not set is taken from the connection."""

    connection: Name | None = None  # Laravel's name for a second connection on the same table
    retry_after: Seconds | None = None
    target_wait: Seconds | None = None


class Pool(Settings):
    """One kind of process, recognised in pg_stat_activity."""

    application_name: Name | None = None  # a pattern: * and ? as in a shell
    role: Name | None = None
    queues: tuple[QueueName, ...] = ()  # with queues it is a pool of workers
    timeout: Seconds | None = None  # the workers' --timeout
    pooled: bool = False  # PgBouncer stands between, so processes cannot be counted

    @model_validator(mode="after")
    def can_be_recognised(self) -> Pool:
        """A pool without a pattern or a role would be everybody."""
        if self.application_name is None and self.role is None:
            raise ValueError("expected application_name or role, to recognise its connections by")
        return self


class Cache(Settings):
    """Where Laravel keeps queue:restart and queue:pause."""

    table: Name = "cache"
    prefix: str | None = None


class Database(WithSecrets):
    """One connection of the `database` driver."""

    driver: Literal["database"]
    dsn: SecretStr = SecretStr("")  # empty: the PG* variables
    password: SecretStr | None = None
    schema_: Name = Field("public", alias="schema")
    table: Name = "jobs"
    failed_table: Name | None = "failed_jobs"
    retry_after: Seconds = LARAVEL_RETRY_AFTER
    target_wait: Seconds | None = None
    interval: Seconds = 15.0
    timeout: Seconds = 2.0
    discover: bool = True
    queues: dict[QueueName, Annotated[Queue, BeforeValidator(empty_as_defaults)]] = Field(default_factory=dict)
    pools: dict[Name, Pool] = Field(default_factory=dict)
    cache: Cache | None = Field(default_factory=Cache)

    @field_validator("dsn")
    @classmethod
    def readable(cls, dsn: SecretStr) -> SecretStr:
        """Refuse what is no DSN of PostgreSQL, without repeating any of it."""
        text = dsn.get_secret_value()
        scheme = re.match(r"\s*([A-Za-z][\w+.-]*)://", text)
        if scheme and scheme[1] not in ("postgresql", "postgres"):
            raise ValueError(f"expected a postgresql:// URL; this is {scheme[1]}://, and only PostgreSQL is supported")
        if scheme:
            check_url(text)
        check_dsn(text)
        return dsn

    def connection_of(self, queue: str, default: str) -> str:
        """Laravel's name of the connection that this queue's workers use; `default` is this connection's."""
        return (self.queues[queue].connection if queue in self.queues else None) or default

    def retry_after_of(self, queue: str) -> float:
        """Seconds that a job of this queue may be held."""
        return (self.queues[queue].retry_after if queue in self.queues else None) or self.retry_after

    def target_wait_of(self, queue: str) -> float | None:
        """Seconds that a job of this queue may wait; None if nobody decided."""
        return (self.queues[queue].target_wait if queue in self.queues else None) or self.target_wait

    def secrets(self) -> list[str]:
        """The password in each spelling that could turn up in a message, and the DSN."""
        from psycopg.conninfo import conninfo_to_dict  # only where a database is configured

        dsn = self.dsn.get_secret_value()
        passwords = [str(conninfo_to_dict(dsn).get("password") or "")]
        if self.password is not None:
            passwords.append(self.password.get_secret_value())
        return [dsn, *passwords, *(quote(p, safe="") for p in passwords), *(repr(p)[1:-1] for p in passwords)]

    @field_validator("pools")
    @classmethod
    def other_is_reserved(cls, pools: dict[str, Pool]) -> dict[str, Pool]:
        """The label `pool` has a value for connections of no pool."""
        if "other" in pools:
            raise ValueError("expected another name than 'other', which means: of no pool")
        return pools


def check_url(url: str) -> None:
    """Refuse what a raw password does to a URL: it would be cut at the wrong place, silently."""
    parts = url.split("://", 1)[1]
    authority, rest = re.fullmatch(r"([^/?#]*)(.*)", parts, re.DOTALL).groups()  # type: ignore[union-attr]  # matches all
    user = authority.rpartition("@")[0]
    wrong = (
        re.search(r"[^!-~]|[#\"'<>\\^`{|}]", parts)  # never raw in a URL
        or re.search(r"%(?![0-9A-Fa-f]{2})", parts)
        or authority.count("@") > 1
        or user.count(":") > 1
        or "@" in rest
    )
    if wrong:
        raise ValueError(f"expected a URL; if it holds a password, {ENCODE}")
    try:
        urlsplit(url)
    except ValueError:
        raise ValueError("expected a URL; an IPv6 host stands in [brackets]") from None


def check_dsn(text: str) -> None:
    """Refuse what libpq cannot read. Its own words may repeat the password, so they are not passed on."""
    from psycopg import ProgrammingError  # only where a database is configured
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(text)
    except (ProgrammingError, UnicodeError):
        raise ValueError(
            "expected postgresql://user@host:5432/database or host=… dbname=… user=… "
            f"(in a URL with a password, {ENCODE}; in the second form, quote it)"
        ) from None
