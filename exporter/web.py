"""TLS and basic auth, from a file in the format of the Prometheus exporter-toolkit."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BeforeValidator, Field, SecretStr, ValidationError

from .config import Loader, complaint
from .errors import ConfigError
from .settings import Settings, empty_as_defaults

NOBODY = "$2b$10$abcdefghijklmnopqrstuuuT0gbRC4Yyf0NgFTOkrMOgFDFOkiIxu"  # so that an unknown user costs as much time
REMEMBERED = 64  # logins that were right; bcrypt is slow on purpose, and Prometheus sends the same one each time
VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
CLIENTS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}


class Tls(Settings):
    """What of the toolkit's `tls_server_config` we know."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_auth_type: Literal["NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"] = "NoClientCert"
    min_version: Literal["TLS12", "TLS13"] = "TLS12"


class WebConfig(Settings):
    """The file. Passwords are bcrypt hashes."""

    tls_server_config: Tls | None = None
    basic_auth_users: Annotated[dict[str, SecretStr], BeforeValidator(empty_as_defaults)] = Field(default_factory=dict)


def load(path: Path | None) -> WebConfig:
    """Read the file; without one, neither TLS nor logins. Raises `ConfigError`."""
    if path is None:
        return WebConfig()
    try:
        data = yaml.load(path.read_text("utf-8"), Loader) or {}  # noqa: S506  # Loader is a SafeLoader
        config = WebConfig.model_validate(data)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"web.config_file: expected a readable file, {path}: {_why(error)}") from None
    except yaml.YAMLError:
        raise ConfigError(f"web.config_file: expected YAML in {path}") from None
    except ValidationError as error:
        raise ConfigError(*(f"web.config_file: {complaint(dict(e))}" for e in error.errors())) from None
    if config.tls_server_config:
        context(_beside(path, config.tls_server_config))
        return config.model_copy(update={"tls_server_config": _beside(path, config.tls_server_config)})
    return config


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or "not UTF-8 text"


def _beside(path: Path, tls: Tls) -> Tls:
    """Relative paths are relative to the file, as in the toolkit."""
    ours = {key: path.parent / value for key, value in tls if isinstance(value, Path)}
    return tls.model_copy(update=ours)


def context(tls: Tls) -> ssl.SSLContext:
    """The server's side of TLS. Raises `ConfigError`."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = VERSIONS[tls.min_version]
    made.verify_mode = CLIENTS[tls.client_auth_type]
    try:
        made.load_cert_chain(tls.cert_file, tls.key_file)
        if tls.client_ca_file:
            made.load_verify_locations(tls.client_ca_file)
    except OSError as error:  # an ssl.SSLError is one, too
        raise ConfigError(
            f"web.config_file: tls_server_config: expected a certificate and its key in PEM: {error.strerror or error}"
        ) from None
    return made


class Gate:
    """Lets in who knows a password; everybody if there are no users."""

    def __init__(self, users: Mapping[str, SecretStr]) -> None:
        self.users = users
        self.right: dict[bytes, None] = {}  # digests of logins that were right, the oldest first

    def opens(self, authorization: str) -> bool:
        """Whether the value of the `Authorization` header is a right login."""
        if not self.users:
            return True
        digest = hashlib.sha256(authorization.encode("latin-1", "replace")).digest()
        if digest in self.right:
            return True
        if not self._checked(authorization):
            return False
        self.right[digest] = None
        while len(self.right) > REMEMBERED:
            self.right.pop(next(iter(self.right)), None)
        return True

    def _checked(self, authorization: str) -> bool:
        import bcrypt  # only where there are users

        scheme, _, encoded = authorization.partition(" ")
        try:
            user, _, password = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        known = self.users.get(user)
        hashed = known.get_secret_value() if known else NOBODY
        try:
            right = bcrypt.checkpw(password.encode()[:72], hashed.encode())
        except ValueError:  # not a bcrypt hash
            return False
        return right and known is not None and scheme.lower() == "basic"
