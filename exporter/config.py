"""YAML and environment in, frozen settings out, every complaint at once, each with the setting's path."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError, field_validator

from .errors import ConfigError
from .settings import Name, Settings, empty_as_defaults
from .sources.clock.settings import ClockSettings
from .sources.database.settings import Database

VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
DRIVERS = ("database",)


class Web(Settings):
    """Where the exporter listens."""

    listen: str = "0.0.0.0:10087"
    config_file: Path | None = None  # TLS and basic auth, in the format of the exporter-toolkit

    @field_validator("listen")
    @classmethod
    def host_and_port(cls, listen: str) -> str:
        """An address to listen on; an IPv6 host stands in brackets."""
        host, _, port = listen.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        if not port.isdecimal() or int(port) > 65535 or (":" in bare and bare == host):
            raise ValueError("expected host:port such as 0.0.0.0:10087 or [::1]:10087")
        return listen

    @property
    def address(self) -> tuple[str, int]:
        """Host, without brackets, and port."""
        host, _, port = self.listen.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)


class Config(Settings):
    """All settings."""

    web: Annotated[Web, BeforeValidator(empty_as_defaults)] = Field(default_factory=Web)
    connections: dict[Name, Database]
    clock: Annotated[ClockSettings, BeforeValidator(empty_as_defaults)] = Field(default_factory=ClockSettings)

    @field_validator("connections")
    @classmethod
    def some_and_not_clock(cls, connections: dict[str, Database]) -> dict[str, Database]:
        """Without any connection there is nothing to do, and the label `source` tells the clocks by their name."""
        if not connections:
            raise ValueError("expected at least one connection of config/queue.php")
        if "clock" in connections:
            raise ValueError("expected another name than 'clock', which is taken by the clocks")
        return connections

    def secrets(self) -> list[str]:
        """Every secret, so that it can be kept out of messages."""
        return [secret for connection in self.connections.values() for secret in connection.secrets()]


class Loader(yaml.SafeLoader):
    """Safe, and a key given twice is an error instead of the last one winning."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise ConfigError(f"line {node.value[index][0].start_mark.line + 1}: {key!r} is given twice")
        return super().construct_mapping(node, deep)


def load(path: Path | None, env: Mapping[str, str] = os.environ) -> Config:
    """Read the settings file, or without one the environment. Raises `ConfigError`."""
    if path is None and not env.get("QUEUE_EXPORTER_DSN"):
        raise ConfigError("expected --config FILE, or a DSN in the environment variable QUEUE_EXPORTER_DSN")
    if path is None:
        return parse({"connections": {"database": {"driver": "database", "dsn": env["QUEUE_EXPORTER_DSN"]}}})
    try:
        data = yaml.load(path.read_text("utf-8"), Loader)  # noqa: S506  # Loader is a SafeLoader
    except OSError as error:
        raise ConfigError(f"{path}: expected a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}: line {line}: expected YAML: {error.problem}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{path}: expected YAML: it holds a character that YAML does not allow") from None
    except ConfigError as error:
        raise ConfigError(*(f"{path}: {problem}" for problem in error.problems)) from None
    problems: list[str] = []
    data = expand(data, env, "", problems)
    if problems:
        raise ConfigError(*problems)
    return parse(data)


def parse(data: object) -> Config:
    """Check what was read. Raises `ConfigError` with every complaint."""
    if not isinstance(data, dict):
        raise ConfigError("expected a mapping with the key connections at the top of the file")
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(*dict.fromkeys(complaint(dict(e)) for e in error.errors())) from None


def expand(value: Any, env: Mapping[str, str], at: str, problems: list[str]) -> Any:
    """Replace `${NAME}` and `${NAME:-default}` in every string, after the YAML was read: a value stays one value."""
    if isinstance(value, dict):
        return {k: expand(v, env, f"{at}.{k}".lstrip("."), problems) for k, v in value.items()}
    if isinstance(value, list):
        return [expand(v, env, f"{at}[{i}]", problems) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        if (found := env.get(match[1], match[2])) is None:
            problems.append(f"{at}: expected the environment variable {match[1]}, which is not set")
        return found or ""

    return VARIABLE.sub(variable, value)


EXPECTED = {
    "missing": "is missing",
    "extra_forbidden": "is not a known setting",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "tuple_type": "expected a list",
    "string_type": "expected text (quote it in YAML if it looks like a number)",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
}


def complaint(error: dict[str, Any]) -> str:
    """One line: the setting's path and what is expected. Never the value, which may be a secret."""
    path = ".".join(str(part) for part in error["loc"] if part != "[key]")
    if error["type"] == "literal_error" and error["loc"][-1] == "driver":
        return f"{path}: expected one of: {', '.join(DRIVERS)}"
    text = EXPECTED.get(error["type"], error["msg"].removeprefix("Value error, "))
    return f"{path}: {text}" if path else text
