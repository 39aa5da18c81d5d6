"""The kinds of value that settings are made of, shared by all sources."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, SecretStr, model_validator

UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")


def seconds(value: object) -> float:
    """Seconds in `90`, `90s`, `1.5m`; more than zero."""
    match = None if isinstance(value, bool) else DURATION.fullmatch(str(value).strip())
    if match is None or float(match[1]) <= 0:
        raise ValueError("expected a duration above zero such as 90, 90s or 2m")
    return float(match[1]) * UNITS[match[2] or ""]


def name(value: str) -> str:
    """A name that can stand in a label, a log line and a page."""
    if not 0 < len(value) <= 255 or not value.isprintable():
        raise ValueError("expected a name of 1 to 255 printable characters")
    return value


def queue(value: str) -> str:
    """A queue's name: any text that fits Laravel's column, which holds no NUL and no half of a surrogate pair."""
    if not 0 < len(value) <= 255 or re.search(r"[\0\ud800-\udfff]", value):
        raise ValueError("expected a queue's name of 1 to 255 characters")
    return value


def empty_as_defaults(value: object) -> object:
    """`default:` with nothing behind it means: all defaults."""
    return {} if value is None else value


Seconds = Annotated[float, BeforeValidator(seconds)]
Name = Annotated[str, AfterValidator(name)]
QueueName = Annotated[str, AfterValidator(queue)]


class Settings(BaseModel):
    """Frozen; an unknown key is an error; no value is ever repeated in a message."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=False)


class WithSecrets(Settings):
    """Settings in which each secret `x` may also be given as `x_file`, the path of a file that holds it."""

    @model_validator(mode="before")
    @classmethod
    def read_secret_files(cls, data: Any) -> Any:
        """Put what is in the file where the secret would stand."""
        if not isinstance(data, dict):
            return data
        secrets = [key for key, field in cls.model_fields.items() if SecretStr in (field.annotation, *_parts(field))]
        read = dict(data)
        for secret in secrets:
            if (path := read.pop(f"{secret}_file", None)) is None:
                continue
            if read.get(secret) is not None:
                raise ValueError(f"{secret} and {secret}_file: expected one of the two")
            read[secret] = _secret(f"{secret}_file", path)
        return read


def _parts(field: Any) -> tuple[Any, ...]:
    return tuple(getattr(field.annotation, "__args__", ()))


def _secret(key: str, path: object) -> str:
    try:
        text = Path(str(path)).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ValueError(f"{key}: expected a readable file, {path}: {why}") from None
    if not text:
        raise ValueError(f"{key}: expected a secret in {path}, which is empty")
    return text
