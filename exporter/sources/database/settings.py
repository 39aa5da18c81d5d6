"""What can be set for a connection of Laravel's `database` driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from ...documents import Complaint
from ...settings import (
    OR_EMPTY,
    File,
    Name,
    QueueName,
    Seconds,
    Secret,
    SecretFile,
    Settings,
    WholeSeconds,
    WithSecrets,
    at_least,
    each_once,
    in_file,
)
from ..cache import USUAL, USUAL_IN_REDIS
from ..named import NamedQueue, Queue, WithQueues, not_other
from ..resp.target import Target, Url, UrlFile, each_spelling, parse, spellings

LARAVEL_RETRY_AFTER = 90  # seconds; in config/queue.php of a new application
EXPECTED = (
    "expected postgresql://user@host:5432/database or host=… dbname=… user=…; in a URL, percent-encode what is special "
    "in the password (@ is %40, / is %2F, # is %23, % is %25), or use password_file, and put an IPv6 host in [brackets]"
)

# A URL as RFC 3986 has it, but without an @ or : where a raw password would leave one. What
# this lets through, libpq understands as it was meant.
PLAIN = r"(?:[\w.~!$'()*+,;=-]|%[0-9A-F]{2})"
LOGIN = rf"(?:{PLAIN}|&)*(?::(?:{PLAIN}|&)*)?@"
HOST = r"(?:\[[\w:.%]+\]|(?:[\w.~-]|%[0-9A-F]{2})*)(?::[0-9]*)?"
DATABASE = rf"/(?:{PLAIN}|[&:])*"
PARAMETER = rf"(?:user=(?:{PLAIN}|@)*|(?!user=)\w+=(?:{PLAIN}|[:/])*)"
URL = re.compile(
    rf"(?i:postgres(?:ql)?://(?:{LOGIN})?{HOST}(?:,{HOST})*(?:{DATABASE})?(?:\?{PARAMETER}(?:&{PARAMETER})*)?)",
    re.ASCII,
)


def check_dsn(dsn: SecretStr) -> SecretStr:
    """A DSN that libpq reads as it was meant. Its own complaints may repeat the password, so they are not passed on."""
    from psycopg import ProgrammingError  # only where a database is configured
    from psycopg.conninfo import conninfo_to_dict

    text = dsn.get_secret_value().strip()
    scheme = re.match(r"([a-z][\w+.-]*)://", text, re.IGNORECASE)
    if scheme and scheme[1].lower() not in ("postgresql", "postgres"):
        raise ValueError(f"expected a postgresql:// URL, not {scheme[1]}://; only PostgreSQL is supported")
    if scheme and not URL.fullmatch(text):
        raise ValueError(EXPECTED)
    try:
        ports = str(conninfo_to_dict(text).get("port") or "").split(",")
    except (ProgrammingError, UnicodeError):
        raise ValueError("expected only parameters that libpq knows, after the ?" if scheme else EXPECTED) from None
    if not all(port == "" or is_port(port) for port in ports):
        raise ValueError("expected a port from 1 to 65535")
    return SecretStr(text)


def is_port(text: str) -> bool:
    """Whether this is a TCP port; libpq would only say so when it connects."""
    return re.fullmatch("[0-9]{1,5}", text) is not None and 0 < int(text) < 65536


def prefix(value: str) -> str:
    """What the keys begin with; it may be nothing, and has to fit Laravel's column, which holds no NUL."""
    if len(value) > 255 or re.search(r"[\0\ud800-\udfff]", value):
        raise ValueError("expected a prefix of up to 255 characters")
    return value


Dsn = Annotated[Secret, AfterValidator(check_dsn)]
DsnFile = Annotated[Dsn, BeforeValidator(in_file)]
PoolName = Annotated[Name, AfterValidator(not_other)]
CachePrefix = Annotated[str, AfterValidator(prefix)]


class Pool(Settings):
    """One kind of process, recognised in pg_stat_activity."""

    application_name: Name | None = Field(default=None, description="a pattern: * and ? as in a shell")
    role: Name | None = Field(default=None, description="the database role; at least one of the two is needed")
    queues: Annotated[tuple[QueueName, ...], AfterValidator(each_once)] = Field(
        default=(), description="what its workers listen to; without queues it only explains connections"
    )
    timeout: WholeSeconds | None = Field(default=None, description="the workers' `--timeout`")
    pooled: bool = Field(default=False, description="PgBouncer stands between, so its processes cannot be counted")

    @model_validator(mode="after")
    def can_be_recognised(self) -> Pool:
        """A pool without a pattern or a role would be everybody."""
        if self.application_name is None and self.role is None:
            raise ValueError("expected application_name or role, to recognise its connections by")
        return self


class Cache(WithSecrets):
    """Where Laravel keeps queue:restart and queue:pause: in a table beside the jobs, or in a Redis."""

    table: Name = Field(default="cache", description="the table of the `database` cache store, or a view of it")
    redis: Url | None = Field(
        default=None, description="instead of the table: URL of the cache's Redis, with the number of its database"
    )
    redis_file: UrlFile | None = Field(default=None, description="a file that holds the URL")
    ca_file: File | None = Field(default=None, description="for `rediss://`: CAs to trust instead of the system's")
    cert_file: File | None = Field(default=None, description="for `rediss://`: our own certificate")
    key_file: File | None = Field(default=None, description="for `rediss://`: its key")
    prefix: CachePrefix | None = Field(
        default=None,
        description="`CACHE_PREFIX`, in a Redis behind `REDIS_PREFIX`; without it those that Laravel makes of "
        "`APP_NAME=Laravel` are tried",
    )

    @model_validator(mode="after")
    def is_in_one_place(self) -> Cache:
        """Nobody should have to know which of two caches is looked at."""
        if self.url and "table" in self.model_fields_set:
            raise ValueError("expected table or redis, but both are given")
        return self

    @property
    def url(self) -> SecretStr | None:
        """Of its Redis, if it is in one."""
        return self.redis or self.redis_file

    def target(self) -> Target | None:
        """The Redis that it is in, if it is in one."""
        if self.url is None:
            return None
        return replace(parse(self.url), ca_file=self.ca_file, cert_file=self.cert_file, key_file=self.key_file)

    def prefixes(self) -> tuple[str, ...]:
        """What its keys may begin with: as it is set, or as Laravel's versions make it."""
        if self.prefix is not None:
            return (self.prefix,)
        return USUAL_IN_REDIS if self.url else USUAL


class Database(WithQueues, WithSecrets):
    """One connection of the `database` driver."""

    driver: Literal["database"] = Field(description="`database`")
    dsn: Dsn | None = Field(default=None, description="URL or keyword form; without it the PG* variables are used")
    dsn_file: DsnFile | None = Field(default=None, description="a file that holds the DSN")
    password: Secret | None = Field(default=None, description="instead of one in the DSN")
    password_file: SecretFile | None = Field(default=None, description="a file that holds the password")
    schema_: Name = Field(default="public", alias="schema", description="where the tables are")
    table: Name = Field(default="jobs", description="its name as in the catalogue, prefix included")
    failed_table: Name | None = Field(default="failed_jobs", description="null for none")
    retry_after: WholeSeconds = Field(default=LARAVEL_RETRY_AFTER, description="as in `config/queue.php`")
    target_wait: Seconds | None = Field(default=None, description="how long a job may wait; without it nothing is late")
    interval: Annotated[Seconds, AfterValidator(at_least(0.1, "as a database has more to do than this"))] = Field(
        default=15.0, description="between two polls"
    )
    timeout: Annotated[Seconds, AfterValidator(at_least(0.1, "as no answer can come sooner"))] = Field(
        default=2.0,
        description="of one poll; with more than 2s a source that fails is seen healed later than in a minute",
    )
    discover: bool = Field(default=True, description="also show queues that are not named here")
    queues: Annotated[dict[NamedQueue, Annotated[Queue, OR_EMPTY]], OR_EMPTY] = Field(
        default_factory=dict, description="queues that say zero when they are empty"
    )
    pools: Annotated[dict[PoolName, Pool], OR_EMPTY] = Field(
        default_factory=dict, description="kinds of processes that connect"
    )
    cache: Cache | None = Field(default=Cache(), description="the cache that workers look at; null for none")

    def retry_after_of(self, queue: str) -> int:
        """Seconds that a job of this queue may be held."""
        return self.own(queue).retry_after or self.retry_after

    def worker_timeout_of(self, queue: str) -> float | None:
        """Seconds that a worker of this queue may take for a job, the longest of its pools; None if nobody said."""
        timeouts = [pool.timeout for pool in self.pools.values() if queue in pool.queues and pool.timeout is not None]
        return max(timeouts, default=None)

    def doubts(self) -> Iterator[Complaint]:
        """What is no mistake in the settings, but says that one lies in wait in Laravel."""
        for name, pool in self.pools.items():
            for queue in pool.queues:
                if pool.timeout is not None and pool.timeout >= (retry_after := self.retry_after_of(queue)):
                    yield Complaint(
                        ("pools", name, "timeout"),
                        f"expected less than the {retry_after}s of retry_after of the queue {queue!r}: "
                        "a job that takes longer than that is run twice",
                    )

    def parameters(self) -> dict[str, Any]:
        """What libpq connects with; the rest it takes from the PG* variables."""
        from psycopg.conninfo import conninfo_to_dict  # only where a database is configured

        dsn, password = self.dsn or self.dsn_file, self.password or self.password_file
        parameters = conninfo_to_dict(dsn.get_secret_value()) if dsn else {}
        return parameters | ({"password": password.get_secret_value()} if password else {})

    def secrets(self) -> list[str]:
        """Every secret, in each spelling that could turn up in a message."""
        from psycopg.conninfo import make_conninfo
        from psycopg.pq import Conninfo

        options = [*Conninfo.parse(make_conninfo("", **self.parameters()).encode()), *Conninfo.get_defaults()]
        plain = {option.val.decode(errors="replace") for option in options if option.dispchar == b"*" and option.val}
        dsn = (self.dsn or self.dsn_file or SecretStr("")).get_secret_value()
        as_in_dsn = [part for part in re.split("[:@/?&=]", dsn) if unquote(part) in plain]
        url = self.cache.url if self.cache else None
        of_cache = spellings(url) if url else ()
        return [*of_cache, *as_in_dsn, *(spelling for text in plain for spelling in each_spelling(text))]
