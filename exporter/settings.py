"""The kinds of value that settings are made of, shared by all sources, and how they are checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from . import documents
from .documents import Complaint
from .errors import ConfigError

UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h)?")
SHORTEST, LONGEST = 0.001, 366 * 24 * 3600.0  # seconds
LARGEST_SECRET = 64 * 1024  # bytes
SETTING = re.compile(r"[A-Za-z_][\w-]{0,40}")  # what a misspelt setting looks like


def seconds(value: object) -> float:
    """Seconds in `90`, `90s`, `1.5m`; more than zero, and a year at most."""
    match = None if isinstance(value, bool) else DURATION.fullmatch(str(value).strip())
    found = float(match[1]) * UNITS[match[2] or ""] if match else 0.0
    if not SHORTEST <= found <= LONGEST:
        raise ValueError("expected a duration above zero, and of a year at most, such as 90, 90s, 2m or 1.5h")
    return found


def at_least(least: float, why: str) -> Callable[[float], float]:
    """A check that a duration is not shorter than `least` seconds."""

    def check(value: float) -> float:
        if value < least:
            raise ValueError(f"expected {least:g}s or more, {why}")
        return value

    return check


def whole_seconds(value: object) -> int:
    """The same in whole seconds, as Laravel counts; one at least."""
    found = round(seconds(value), 6)  # what multiplying with a unit has added goes
    if found < 1 or not found.is_integer():
        raise ValueError("expected 1s or more, in whole seconds, as Laravel counts")
    return int(found)


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


def each_once(values: tuple[str, ...]) -> tuple[str, ...]:
    """A list in which nothing is given twice."""
    if len(set(values)) < len(values):
        raise ValueError("expected each name once, but one is given twice")
    return values


def empty_as_defaults(value: object) -> object:
    """`default:` with nothing behind it means: all defaults."""
    return {} if value is None else value


def beside(path: Path, info: ValidationInfo) -> Path:
    """A relative path starts at the file that names it, wherever the exporter was started."""
    folder: Path = (info.context or {}).get("folder", Path())
    return folder / path


def not_empty(secret: SecretStr) -> SecretStr:
    """A secret that is given says something. libpq would cut it at a NUL."""
    if not secret or "\0" in secret.get_secret_value():
        raise ValueError("expected a secret, but it is empty or binary")
    return secret


def in_file(value: object, info: ValidationInfo) -> str:
    """The secret in the file of this name, without the line end that editors add."""
    if not isinstance(value, str):
        raise ValueError("expected the path of a file")  # noqa: TRY004  # pydantic wants this one
    return documents.text(beside(Path(value), info), LARGEST_SECRET).rstrip("\r\n")


OR_EMPTY = BeforeValidator(empty_as_defaults)
Seconds = Annotated[float, BeforeValidator(seconds)]
WholeSeconds = Annotated[int, BeforeValidator(whole_seconds)]
Name = Annotated[str, AfterValidator(name)]
QueueName = Annotated[str, AfterValidator(queue)]
File = Annotated[Path, AfterValidator(beside)]
Secret = Annotated[SecretStr, AfterValidator(not_empty)]
SecretFile = Annotated[Secret, BeforeValidator(in_file)]


class Settings(BaseModel):
    """Frozen; an unknown key is an error; no value is ever repeated in a message."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class WithSecrets(Settings):
    """Settings in which a secret `x` may instead be given as `x_file`, the path of a file that holds it."""

    @field_validator("*")
    @classmethod
    def one_of_the_two(cls, value: object, info: ValidationInfo) -> object:
        """Nobody should have to know which of two secrets is used."""
        name = info.field_name or ""
        secret = name.removesuffix("_file")
        if value is not None and secret != name and info.data.get(secret) is not None:
            raise ValueError(f"expected {secret} or {name}, but both are given")
        return value


Model = TypeVar("Model", bound=Settings)


def check(model: type[Model], data: object, found: Sequence[Complaint] = (), folder: Path = Path()) -> Model:
    """
    `data` as settings. Raises `ConfigError` with every complaint, those already `found` included.

    Where something was found, nothing more is said about the value: it is not what was meant.
    """
    known = {complaint.at for complaint in found}
    try:
        checked = model.model_validate(data, context={"folder": folder})
    except ValidationError as error:
        found = [*found, *(said for said in map(complaint, error.errors()) if said.at not in known)]
    if found:
        raise ConfigError(*dict.fromkeys(map(str, found)))
    return checked


def refuse(*complaints: Complaint) -> ValidationError:
    """What a validator raises to complain about a path below its own value's."""
    return ValidationError.from_exception_data(
        "settings",
        [
            {"type": PydanticCustomError("refused", "{said}", {"said": c.text}), "loc": c.at, "input": None}
            for c in complaints
        ],
    )


EXPECTED = {
    "missing": "is missing",
    "extra_forbidden": "is not a known setting",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "tuple_type": "expected a list",
    "string_type": "expected text",
    "string_unicode": "expected UTF-8 text",
    "path_type": "expected the path of a file",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
}


def complaint(error: Any) -> Complaint:
    """One of pydantic's errors in our words."""
    at, kind = tuple(error["loc"]), error["type"]
    if at[-1:] == ("[key]",):
        at = at[:-1]
    if kind == "extra_forbidden" and not SETTING.fullmatch(str(at[-1])):
        return Complaint(at[:-1], "holds something that is not a setting (is there a space after each colon?)")
    said = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    return Complaint(at, EXPECTED.get(kind, said))
