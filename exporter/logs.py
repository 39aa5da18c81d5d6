"""One line an event, as logfmt or JSON, and no secret in any of them."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

Form = Literal["logfmt", "json"]

SHORTEST_SECRET = 4  # a shorter one would blot out half of every line
STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class Secrets:
    """Takes known secrets out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self.known = sorted(known, key=len, reverse=True)  # a secret may hold another

    def hide(self, text: str) -> str:
        """The text with `***` for every secret."""
        for secret in self.known:
            text = text.replace(secret, "***")
        return text


class Line(logging.Formatter):
    """A record as one line, with the fields given as `extra`."""

    def __init__(self, form: Form, secrets: Secrets) -> None:
        super().__init__()
        self.form, self.secrets = form, secrets

    def format(self, record: logging.LogRecord) -> str:
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "ts": f"{now}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "msg": record.getMessage(),
            **{key: value for key, value in record.__dict__.items() if key not in STANDARD},
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        hidden = {key: self.secrets.hide(v) if isinstance(v, str) else v for key, v in fields.items()}
        return json.dumps(hidden, ensure_ascii=False) if self.form == "json" else logfmt(hidden)


def logfmt(fields: Mapping[str, Any]) -> str:
    """`key=value` pairs; quoted, in JSON's way, where a value would not stay one word on one line."""
    return " ".join(f"{key}={_word(value)}" for key, value in fields.items())


def _word(value: object) -> str:
    word = str(value)
    plain = word and word.isprintable() and not set(word) & set(' "=')
    return word if plain else json.dumps(word, ensure_ascii=not word.isprintable())


def set_up(level: str, form: Form, secrets: Secrets) -> None:
    """Send all logs of the process to standard error, in our form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Line(form, secrets))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
