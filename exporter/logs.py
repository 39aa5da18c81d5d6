"""One line an event, as logfmt or JSON, and no secret in any of them."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from logging.handlers import QueueHandler
from math import isfinite
from queue import Full, Queue
from threading import Thread
from typing import Any, Literal

Form = Literal["logfmt", "json"]

MOST_WAITING = 1000  # lines that nobody has read yet; one more is lost
LAST_MOMENT = 0.5  # seconds for the last lines when the process ends
SHORTEST_SECRET = 4  # characters; a shorter one would blot out half of every line
STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}

log = logging.getLogger(__name__)


class Secrets:
    """Takes known secrets out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        longest_first = sorted(known, key=len, reverse=True)  # a secret may hold another
        self.known = [re.compile(in_any_line(secret)) for secret in longest_first]

    def hide(self, text: str) -> str:
        """The text with `***` for every secret, also where white space in it was changed on the way."""
        for secret in self.known:
            text = secret.sub("***", text)
        return text


def in_any_line(secret: str) -> str:
    """A pattern of this secret in a text that somebody, a server perhaps, has put on one line."""
    words = [re.escape(word) for word in re.split(r"\s+", secret)]
    return r"\s+".join(words) if any(words) else re.escape(secret)


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
        shown = {key: self._shown(value) for key, value in fields.items()}
        return quoted(shown) if self.form == "json" else logfmt(shown)

    def _shown(self, value: object) -> object:
        """Numbers that JSON has as they are, all else as text without secrets."""
        return value if isinstance(value, int | float) and isfinite(value) else self.secrets.hide(str(value))


def quoted(value: object) -> str:
    """A value as JSON on one line: what would end a line or move a cursor is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def logfmt(fields: Mapping[str, Any]) -> str:
    """`key=value` pairs; quoted, in JSON's way, where a value would not stay one word on one line."""
    return " ".join(f"{key}={_word(str(value))}" for key, value in fields.items())


def _word(text: str) -> str:
    plain = text and text.isprintable() and not set(text) & set(' "=\\')
    return text if plain else quoted(text)


class Background(QueueHandler):
    """
    Writes in a thread of its own: a reader of our log that has stopped must stop neither the polls nor the end.

    It writes to the file's number, since Python's streams hold a lock that the interpreter waits for when it ends.
    """

    def __init__(self, number: int) -> None:
        super().__init__(Queue[bytes | None](MOST_WAITING))  # one line too many is lost
        self.number = number
        self.writer = Thread(target=self._write, name="log", daemon=True)
        self.writer.start()

    def prepare(self, record: logging.LogRecord) -> bytes:
        """What the writer gets."""
        return f"{self.format(record)}\n".encode(errors="backslashreplace")

    def close(self) -> None:
        """Give the writer a moment for the last lines."""
        with suppress(Full):
            self.queue.put_nowait(None)
        self.writer.join(LAST_MOMENT)
        super().close()

    def _write(self) -> None:
        for line in iter(self.queue.get, None):
            with suppress(OSError):  # there is nobody left to tell
                rest = line
                while rest:
                    rest = rest[os.write(self.number, rest) :]


def set_up(level: str, form: Form, secrets: Secrets) -> None:
    """Send all that the process has to say to standard error in our form: logs, warnings, and what nobody caught."""
    handler = Background(sys.stderr.fileno())
    handler.setFormatter(Line(form, secrets))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # a log that cannot be written must not be written about, in another form
    sys.excepthook = lambda kind, error, trace: _uncaught("main", (kind, error, trace))
    threading.excepthook = lambda args: _uncaught(
        args.thread.name if args.thread else "?", (args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    )


def _uncaught(thread: str, caught: Any) -> None:
    log.critical("a bug of ours", extra={"in_thread": thread}, exc_info=caught)
