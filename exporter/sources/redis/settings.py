"""What can be set for a connection of Laravel's `redis` driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from ...documents import Complaint
from ...settings import (
    OR_EMPTY,
    File,
    Seconds,
    Secret,
    SecretFile,
    Settings,
    WholeSeconds,
    WithSecrets,
    at_least,
)
from .. import named
from ..cache import prefixes_in_redis
from ..named import NamedQueue, WithQueues
from ..resp.target import PORT, Prefix, Target, Url, UrlFile, each_spelling, parse, spellings

LARAVEL_RETRY_AFTER = 90  # seconds; in config/queue.php of a new application
LARAVEL_CACHE = 1  # the number of the database that config/database.php gives the cache
DEFAULT = "default"  # the queue of a job that says nothing else


def at_least_one(queues: object) -> object:
    """Somebody who names no queue has the one that Laravel uses then. Redis cannot be asked for all at once."""
    return queues or {DEFAULT: {}}


class Queue(named.Queue):
    """One queue; what is not set is taken from the connection."""

    timeout: WholeSeconds | None = Field(default=None, description="the workers' `--timeout`; Horizon tells its own")


class Horizon(Settings):
    """Where Horizon keeps what it knows."""

    prefix: Prefix = Field(description="`HORIZON_PREFIX`: `laravel_horizon:` for `APP_NAME=Laravel`")


class Cache(WithSecrets):
    """Where Laravel keeps queue:restart and queue:pause."""

    redis: Url | None = Field(default=None, description="URL of the cache's Redis; without it database 1 of this one")
    redis_file: UrlFile | None = Field(default=None, description="a file that holds the URL")
    prefix: Prefix | None = Field(
        default=None, description="all before `illuminate:`; without it those of Laravel's versions are tried"
    )


class Redis(WithQueues, WithSecrets):
    """One connection of the `redis` driver."""

    driver: Literal["redis"] = Field(description="`redis`")
    url: Url | None = Field(
        default=None, description="`redis://`, `rediss://` or `unix://`; without it redis://127.0.0.1:6379/0"
    )
    url_file: UrlFile | None = Field(default=None, description="a file that holds the URL")
    password: Secret | None = Field(default=None, description="instead of one in the URL")
    password_file: SecretFile | None = Field(default=None, description="a file that holds the password")
    ca_file: File | None = Field(default=None, description="for `rediss://`: CAs to trust instead of the system's")
    cert_file: File | None = Field(default=None, description="for `rediss://`: our own certificate")
    key_file: File | None = Field(default=None, description="for `rediss://`: its key")
    prefix: Prefix = Field(description="`REDIS_PREFIX`: `laravel_database_`, or `laravel-database-` since Laravel 12.1")
    retry_after: WholeSeconds | None = Field(
        default=LARAVEL_RETRY_AFTER, description="as in `config/queue.php`; null: jobs are never handed out again"
    )
    target_wait: Seconds | None = Field(default=None, description="how long a job may wait; without it nothing is late")
    interval: Annotated[Seconds, AfterValidator(at_least(0.1, "as a Redis has more to do than this"))] = Field(
        default=15.0, description="between two polls"
    )
    timeout: Annotated[Seconds, AfterValidator(at_least(0.1, "as no answer can come sooner"))] = Field(
        default=2.0,
        description="of one poll; with more than 2s a source that fails is seen healed later than in a minute",
    )
    discover: bool = Field(
        default=False, description="also look for queues that are not named here: reads through all keys, bit by bit"
    )
    queues: Annotated[dict[NamedQueue, Annotated[Queue, OR_EMPTY]], BeforeValidator(at_least_one)] = Field(
        default={DEFAULT: Queue()}, description="the queues to watch; without any, Laravel's `default`"
    )
    horizon: Horizon | None = Field(default=None, description="only where Horizon runs the workers")
    cache: Cache | None = Field(default=None, description="the cache that workers look at; null for none")

    def worker_timeout_of(self, queue: str) -> int | None:
        """Seconds that a worker of this queue may take for a job; None if nobody said."""
        return self.queues[queue].timeout if queue in self.queues else None

    def doubts(self) -> Iterator[Complaint]:
        """What is no mistake in the settings, but says that one lies in wait in Laravel."""
        for name, queue in self.queues.items():
            retry_after = self.retry_after_of(name)
            if queue.timeout is not None and retry_after is not None and queue.timeout >= retry_after:
                yield Complaint(
                    ("queues", name, "timeout"),
                    f"expected less than the {retry_after}s of retry_after: a job that takes longer is run twice",
                )

    def target(self) -> Target:
        """The Redis with the queues."""
        found = parse(self.url or self.url_file or SecretStr(f"redis://127.0.0.1:{PORT}/0"))
        password = self.password or self.password_file
        return self._trusting(replace(found, password=password.get_secret_value()) if password else found)

    def cache_target(self) -> Target | None:
        """The Redis with the cache, if there is one."""
        if self.cache is None:
            return None
        url = self.cache.redis or self.cache.redis_file
        return self._trusting(parse(url)) if url else replace(self.target(), database=LARAVEL_CACHE)

    def cache_prefixes(self) -> tuple[str, ...]:
        """What the keys of the cache may begin with: as it is set, or as Laravel's versions make it."""
        if self.cache and self.cache.prefix is not None:
            return (self.cache.prefix,)
        return prefixes_in_redis(self.prefix)

    def _trusting(self, target: Target) -> Target:
        return replace(target, ca_file=self.ca_file, cert_file=self.cert_file, key_file=self.key_file)

    def secrets(self) -> list[str]:
        """Every secret, in each spelling that could turn up in a message."""
        urls = (self.url, self.url_file, self.cache and self.cache.redis, self.cache and self.cache.redis_file)
        in_urls = [spelling for url in urls if url for spelling in spellings(url)]
        return [*each_spelling(self.target().password or ""), *in_urls]
