"""Where a Redis is and how to get in, as it is set. No driver is needed to read this."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from ...settings import Secret, in_file

PORT = 6379
EXPECTED = (
    "expected redis://[user[:password]@]host[:6379][/0], rediss:// for TLS, or unix:///path[?db=0]; percent-encode "
    "what is special in the password (@ is %40, / is %2F, # is %23, % is %25), or put it in a file (…_file), and put "
    "an IPv6 host in [brackets]"
)

# Without an @ or : where a raw password would leave one.
PLAIN = r"(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"
LOGIN = rf"(?:{PLAIN}*(?::{PLAIN}*)?@)?"
URL = re.compile(
    rf"(?i:rediss?://{LOGIN}(?:\[[\w:.%]+\]|[\w.~-]+)?(?::[0-9]{{1,5}})?(?:/[0-9]{{0,5}})?"
    rf"|unix://{LOGIN}/(?:{PLAIN}|[/@:])+(?:\?db=[0-9]{{1,5}})?)",
    re.ASCII,
)


def check_url(url: SecretStr) -> SecretStr:
    """A URL of a Redis. What is wrong with it is said without repeating it."""
    text = url.get_secret_value().strip()
    if not URL.fullmatch(text):
        raise ValueError(EXPECTED)
    port = None if text.lower().startswith("unix:") else urlsplit(text).netloc.rpartition("@")[2].rpartition(":")[2]
    if port and port.isdigit() and not 0 < int(port) < 65536:
        raise ValueError("expected a port from 1 to 65535")
    return SecretStr(text)


def prefix(value: str) -> str:
    """What keys begin with; it may be nothing."""
    if len(value) > 255 or not value.isprintable():
        raise ValueError("expected a prefix of up to 255 printable characters")
    return value


Url = Annotated[Secret, AfterValidator(check_url)]
UrlFile = Annotated[Url, BeforeValidator(in_file)]
Prefix = Annotated[str, AfterValidator(prefix)]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a Redis is, and how to get in."""

    host: str  # empty for a unix socket
    port: int
    path: str  # of a unix socket; else empty
    database: int
    username: str | None
    password: str | None
    tls: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @property
    def shown(self) -> str:
        """How it is called in a message."""
        return self.path or (f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}")

    @property
    def hint(self) -> str:
        """What may be wrong with these settings where a server hangs up before it has said a word."""
        if self.tls:
            return "does it want to see a certificate of ours, cert_file?"
        return "does it listen there without TLS? If with it, write rediss://"


def parse(url: SecretStr) -> Target:
    """The parts of a URL that was checked."""
    text = url.get_secret_value()
    parts = urlsplit(text)
    login, found, place = parts.netloc.rpartition("@")
    username, has_password, password = login.partition(":") if found else ("", "", "")
    is_socket = parts.scheme.lower() == "unix"
    host, _, port = place.rpartition(":") if re.search(r":[0-9]+$", place) else (place, "", "")
    number = parts.query.removeprefix("db=") if is_socket else parts.path.strip("/")
    return Target(
        host="" if is_socket else host.strip("[]") or "127.0.0.1",
        port=int(port or PORT),
        path=unquote(parts.path) if is_socket else "",
        database=int(number or 0),
        username=unquote(username) or None,
        password=(unquote(password) if has_password else "") or None,
        tls=parts.scheme.lower() == "rediss",
    )


def spellings(url: SecretStr) -> Iterator[str]:
    """The password in a URL, in each spelling that could turn up in a message."""
    login, found, _ = url.get_secret_value().partition("@")
    raw = login.rpartition(":")[2]
    if found and raw and not raw.startswith("//"):
        yield raw
    yield from each_spelling(parse(url).password or "")


def each_spelling(password: str) -> Iterator[str]:
    """A password as it is, percent-encoded, and as Python would write it."""
    if password:
        yield from (password, quote(password, safe=""), repr(password)[1:-1])
