"""TLS and basic auth, from a file in the format of the Prometheus exporter-toolkit."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, model_validator

from . import documents
from .settings import OR_EMPTY, File, Settings, beside, empty_as_defaults, refuse

BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
MOST_WAITING = 8  # logins to be checked; one more is refused
REMEMBERED = 64  # logins that were right; bcrypt is slow on purpose, and Prometheus sends the same one each time
VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
CLIENTS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}


def readable(path: Path) -> Path:
    """A file that can be read now is told apart from one that holds the wrong thing."""
    documents.text(path)
    return path


def bcrypt_hash(hashed: SecretStr) -> SecretStr:
    """Each step of the cost doubles the time; at 16 it is some seconds already."""
    if not BCRYPT.fullmatch(hashed.get_secret_value()):
        raise ValueError("expected a bcrypt hash, of cost 16 at most")
    return hashed


BcryptHash = Annotated[SecretStr, AfterValidator(bcrypt_hash)]
PemFile = Annotated[File, AfterValidator(readable)]


class Tls(Settings):
    """What of the toolkit's `tls_server_config` we know."""

    cert_file: PemFile
    key_file: PemFile
    client_ca_file: PemFile | None = None
    client_auth_type: Literal["NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"] = "NoClientCert"
    min_version: Literal["TLS12", "TLS13"] = "TLS12"

    @model_validator(mode="after")
    def can_be_used(self) -> Tls:
        """What is wrong is told at the start, not by each handshake."""
        if (self.client_ca_file is None) != (self.client_auth_type == "NoClientCert"):
            raise ValueError("expected client_ca_file and a client_auth_type that verifies, or neither")
        try:
            self.context()
        except OSError as error:  # an ssl.SSLError is one, too
            why = getattr(error, "reason", None) or error.strerror or "not readable"
            raise ValueError(f"expected a certificate and its unencrypted key, in PEM: {why}") from None
        return self

    def context(self) -> ssl.SSLContext:
        """The server's side of TLS."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = VERSIONS[self.min_version]
        made.verify_mode = CLIENTS[self.client_auth_type]
        made.load_cert_chain(self.cert_file, self.key_file, password="")  # or OpenSSL would ask for one
        if self.client_ca_file:
            made.load_verify_locations(self.client_ca_file)
        return made


class WebConfig(Settings):
    """The file. Passwords are bcrypt hashes."""

    tls_server_config: Tls | None = None
    basic_auth_users: Annotated[dict[str, BcryptHash], OR_EMPTY] = Field(default_factory=dict)


def from_file(value: object, info: ValidationInfo) -> object:
    """What the file of this name says; without one, neither TLS nor logins."""
    if value is None:
        return WebConfig()
    if not isinstance(value, str):
        raise ValueError("expected the path of a file")  # noqa: TRY004  # pydantic wants this one
    path = beside(Path(value), info)
    data, found = documents.read(path)
    if found:
        raise refuse(*found)
    return WebConfig.model_validate(empty_as_defaults(data), context={"folder": path.parent})


class Gate:
    """Lets in who knows a password; everybody if there are no users."""

    def __init__(self, users: Mapping[str, SecretStr]) -> None:
        self.users = {user: hashed.get_secret_value().encode() for user, hashed in users.items()}
        self.right: dict[bytes, None] = {}  # digests of logins that were right, the oldest first
        self.lock = Lock()  # one at a time, so that guessing keeps no more than one processor busy
        self.places = BoundedSemaphore(MOST_WAITING)

    def opens(self, authorization: str) -> bool:
        """Whether the value of the `Authorization` header is a right login."""
        if not self.users:
            return True
        digest = hashlib.sha256(authorization.encode("utf-8", "replace")).digest()
        if digest in self.right:
            return True
        if not self.places.acquire(blocking=False):
            return False  # a flood of guesses must not keep a thread for each
        try:
            with self.lock:
                if not self._checked(authorization):
                    return False
                self.right[digest] = None
                if len(self.right) > REMEMBERED:
                    del self.right[next(iter(self.right))]
        finally:
            self.places.release()
        return True

    def _checked(self, authorization: str) -> bool:
        import bcrypt  # only where there are users

        scheme, _, encoded = authorization.partition(" ")
        try:
            user, _, password = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
        except (binascii.Error, ValueError):
            return False
        hashed = self.users.get(user) or next(iter(self.users.values()))  # an unknown user costs as much time
        try:
            right = bcrypt.checkpw(password.encode()[:72], hashed)
        except ValueError:  # a NUL in the password
            return False
        return right and user in self.users and scheme.lower() == "basic"
