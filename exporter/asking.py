"""Asking the running exporter what is over its limit."""

from __future__ import annotations

import base64
import ssl
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from .config import Web
from .errors import ConfigError
from .pages import VERDICT
from .status import Verdict

PATIENCE = 3.0  # seconds for each step of the conversation
HERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  # where one listens, and where one asks


class NoAnswerError(Exception):
    """Nobody who answers there is an exporter; the message says why."""


class Where(NamedTuple):
    """Where to ask. With a certificate, that one is trusted and no other, whatever names are in it."""

    url: str
    certificate: Path | None = None

    @property
    def shown(self) -> str:
        """The URL without a login."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def here(web: Web) -> Where:
    """Where an exporter with these settings can be asked from this machine."""
    host, port = web.address
    host, tls = HERE.get(host, host), web.config_file.tls_server_config
    netloc = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Where(f"https://{netloc}/", tls.cert_file) if tls else Where(f"http://{netloc}/")


def ask(where: Where) -> tuple[str, Verdict]:
    """The report of the exporter there, and its verdict. Raises `NoAnswerError`, or `ConfigError` for no URL."""
    try:
        parts = urlsplit(where.url)
        connection = _connection(parts, where.certificate)
    except ValueError:
        raise ConfigError("--url: expected a URL such as http://127.0.0.1:10087/") from None
    try:
        connection.request("GET", parts.path or "/", headers={"Accept": "text/plain", **_login(parts)})
        with connection.getresponse() as response:
            return _report(response)
    except (OSError, HTTPException, UnicodeError) as error:
        why = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error) or repr(error)
        raise NoAnswerError(why) from None
    finally:
        connection.close()


def _connection(parts: SplitResult, certificate: Path | None) -> HTTPConnection:
    if not parts.hostname or parts.scheme not in ("http", "https"):
        raise ValueError
    if parts.scheme == "http":
        return HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
    trust = ssl.create_default_context(cafile=certificate)
    if certificate:
        trust.check_hostname = False
        trust.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # it need not have signed itself
    return HTTPSConnection(parts.hostname, parts.port, timeout=PATIENCE, context=trust)


def _login(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _report(response: HTTPResponse) -> tuple[str, Verdict]:
    if response.status == 401:
        raise NoAnswerError("it asks for a login: --url http://USER:PASSWORD@HOST:PORT/")
    try:
        verdict = Verdict(int(response.getheader(VERDICT, "")))
    except ValueError:
        raise NoAnswerError("another program answers there") from None
    return response.read().decode(), verdict
