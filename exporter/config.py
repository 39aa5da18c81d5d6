"""File and environment in, frozen settings out, every complaint at once, each with the setting's path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from . import documents
from .documents import Complaint
from .errors import ConfigError
from .settings import OR_EMPTY, Name, Settings, check, refuse
from .sources.clock.settings import ClockSettings
from .sources.database.settings import Database
from .sources.redis.settings import Redis
from .sources.sqs.settings import Sqs
from .web import WebConfig, from_file

DSN = "QUEUE_EXPORTER_DSN"  # the environment variable that is enough
Driver = Database | Redis | Sqs  # the settings of one connection
DRIVERS: dict[str, type[Driver]] = {"database": Database, "redis": Redis, "sqs": Sqs}
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s:\[\]]*):([0-9]{1,5})")


class Web(Settings):
    """Where the exporter listens."""

    listen: str = Field(default="0.0.0.0:10087", description="host:port of the pages; [::]:10087 for IPv6 as well")
    config_file: Annotated[WebConfig, BeforeValidator(from_file)] = Field(
        default=WebConfig(), description="TLS and basic auth, in the format of the Prometheus exporter-toolkit"
    )

    @field_validator("listen")
    @classmethod
    def host_and_port(cls, listen: str) -> str:
        """Whether the address is one is seen when it is listened on; here, that it has the form of one."""
        match = ADDRESS.fullmatch(listen)
        if match is None or int(match[2]) > 65535:
            raise ValueError("expected host:port such as 0.0.0.0:10087 or [::1]:10087")
        return listen

    @property
    def address(self) -> tuple[str, int]:
        """Host (empty: all addresses) and port."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


def not_clock(name: str) -> str:
    """The clocks are a source of their own, and its name is taken."""
    if name == "clock":
        raise ValueError("expected another name than 'clock', which is taken by the clocks")
    return name


def by_driver(connection: object, info: ValidationInfo) -> Driver:
    """The settings of one connection. Without a driver nothing else about it can be checked."""
    if not isinstance(connection, Mapping):
        raise refuse(Complaint((), "expected a mapping"))
    driver = connection.get("driver")
    if not isinstance(driver, str) or driver not in DRIVERS:
        raise refuse(Complaint(("driver",), f"expected one of: {', '.join(DRIVERS)}"))
    return DRIVERS[driver].model_validate(connection, context=info.context)


ConnectionName = Annotated[Name, AfterValidator(not_clock)]
Connection = Annotated[Driver, BeforeValidator(by_driver)]


class Config(Settings):
    """All settings."""

    web: Annotated[Web, OR_EMPTY] = Web()
    connections: dict[ConnectionName, Connection]
    clock: Annotated[ClockSettings, OR_EMPTY] = ClockSettings()

    @field_validator("connections")
    @classmethod
    def each_queue_once(cls, connections: dict[str, Driver]) -> dict[str, Driver]:
        """Laravel's name of a connection stands in the labels, so no two places may give one."""
        if not connections:
            raise ValueError("expected at least one connection of config/queue.php")
        taken = {name: name for name in connections}
        wrong = []
        for name, connection in connections.items():
            for queue in connection.queues:
                if taken.setdefault(alias := connection.connection_of(queue, name), name) != name:
                    said = f"expected a name that no other connection uses, and {taken[alias]} does"
                    wrong.append(Complaint((name, "queues", queue, "connection"), said))
        if wrong:
            raise refuse(*wrong)
        return connections

    def queues(self) -> Iterator[tuple[str, str]]:
        """Laravel's connection and the name of each queue that is named here."""
        for name, connection in self.connections.items():
            for queue in connection.queues:
                yield connection.connection_of(queue, name), queue

    def secrets(self) -> list[str]:
        """Every secret, so that it can be kept out of messages."""
        return [secret for connection in self.connections.values() for secret in connection.secrets()]


def load(path: Path | None, env: Mapping[str, str] = os.environ) -> Config:
    """Read the settings file, or without one the environment. Raises `ConfigError`."""
    if path is None:
        return from_environment(env)
    try:
        data, found = documents.read(path, env)
    except ValueError as error:
        raise ConfigError(str(Complaint((), f"{path}: {error}"))) from None
    return parse(data, found, path.parent)


def from_environment(env: Mapping[str, str]) -> Config:
    """One connection, called `database`, with Laravel's defaults. Raises `ConfigError`."""
    if not env.get(DSN):
        raise ConfigError(f"expected --config FILE, or the DSN of a database in the environment variable {DSN}")
    try:
        return parse({"connections": {"database": {"driver": "database", "dsn": env[DSN]}}})
    except ConfigError as error:
        raise ConfigError(*(problem.replace("connections.database.dsn", DSN) for problem in error.problems)) from None


def parse(data: Any, found: list[Complaint] | None = None, folder: Path = Path()) -> Config:
    """Check what was read. Raises `ConfigError` with every complaint."""
    if not isinstance(data, dict):
        raise ConfigError("expected a mapping with the key connections at the top of the settings")
    return check(Config, data, found or (), folder)
