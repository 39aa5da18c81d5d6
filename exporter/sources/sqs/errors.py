"""The errors of AWS, and of botocore on the way there, under our names."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, IncompleteRead
from typing import Any

from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from ...errors import Reason, SourceError

UNKNOWN: Reason = "unexpected"
REFUSALS: tuple[Reason, ...] = ("auth", "permission", "not_found", "malformed")  # of a role
ODD = (  # raised where an answer has no shape
    ResponseParserError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError,
)  # fmt: skip


class NotAssumedError(Exception):
    """The role could not be assumed, for the reason that the cause has."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.__cause__ = cause


class NoClientError(Exception):
    """Nothing could be asked, for something is wrong here and not there; the message says what."""


ANY = (aws.BotoCoreError, aws.ClientError, OSError, SourceError, NotAssumedError, NoClientError, *ODD)  # of a request

BY_CODE: tuple[tuple[str, Reason], ...] = (  # the first that fits
    (r"RequestTimeTooSkewed|RequestExpired|RequestInTheFuture", "auth"),
    (r"Throttl|TooManyRequests|RequestLimitExceeded|SlowDown|ServiceUnavailable|429|503", "throttled"),
    (
        r"Expired|InvalidClientTokenId|UnrecognizedClient|InvalidAccessKeyId|Signature|AuthenticationToken"
        r"|InvalidSecurity|AuthFailure|OptInRequired|NotSignedUp",
        "auth",
    ),
    (r"AccessDenied|Unauthorized|NotAuthorized|AuthorizationError|Forbidden|403", "permission"),
    (r"NonExistentQueue|QueueDoesNotExist|NotFound|InvalidAddress|404", "not_found"),
    (r"RequestTimeout|GatewayTimeout|408|504", "timeout"),
    (r"InternalFailure|InternalError|InternalServiceError|ServerException|5\d\d", "connect"),
    (r"\d\d\d|Invalid|Missing|Unsupported|Validation|Malformed|Serialization|UnknownOperation", "malformed"),
)
CREDENTIALS = (
    aws.NoCredentialsError, aws.PartialCredentialsError, aws.CredentialRetrievalError, aws.MetadataRetrievalError,
    aws.ProfileNotFound, aws.UnknownCredentialError, aws.SSOError, aws.ConfigParseError, aws.ConfigNotFound,
    aws.InvalidConfigError, aws.ParamValidationError,
)  # fmt: skip
UNSENDABLE = re.compile(r"Invalid header value|Invalid leading whitespace")
ENDED_AGAIN = "Credentials were refreshed, but"  # as botocore's RuntimeError says
PRINTING = (aws.CredentialRetrievalError, aws.MetadataRetrievalError)
CLOCK = re.compile(r"TooSkewed|RequestExpired|InTheFuture|Signature expired|Signature not yet current")
ENDED = re.compile(r"ExpiredToken|MissingAuthenticationToken")  # codes that are not about one place or one service
BY_CLASS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Reason], ...] = (  # the first that fits
    (socket.gaierror, "dns"),
    (ConnectionRefusedError, "refused"),
    ((ssl.SSLError, aws.SSLError), "tls"),
    ((TimeoutError, aws.ReadTimeoutError, aws.ConnectTimeoutError), "timeout"),
    ((OSError, IncompleteRead, aws.HTTPClientError, aws.ConnectionError), "connect"),
    ((HTTPException, *ODD), "malformed"),
)


def request_failed(error: BaseException) -> SourceError:
    """Why there is no answer."""
    if isinstance(error, SourceError):
        return error
    if isinstance(error, aws.ClientError):
        return refused(error.response, error.operation_name)
    if words := amiss_here(error):
        return SourceError("auth", words, unreachable=True)
    if isinstance(error, NotAssumedError):
        failure = request_failed(error.__cause__ or error)
        refusal = isinstance(error.__cause__, aws.ClientError) and failure.reason in REFUSALS
        reason: Reason = "auth" if refusal else failure.reason
        return SourceError(reason, f"AssumeRole: {str(failure).removeprefix('AssumeRole: ')}", unreachable=True)
    reason = next((reason for cause in causes(error) for kind, reason in BY_CLASS if isinstance(cause, kind)), UNKNOWN)
    if reason == "malformed":  # botocore would repeat the answer, which may be one with credentials
        return SourceError(reason, "the answer cannot be read")
    return SourceError(reason, one_line(error))


def amiss_here(error: BaseException) -> str:
    """What is wrong on this side, so that whatever else is asked gets no answer either; "" if nothing is."""
    if isinstance(error, NoClientError):
        return str(error)
    if isinstance(error, CREDENTIALS) or str(error).startswith(ENDED_AGAIN):
        return retrieval_failed(error)
    if isinstance(error, FileNotFoundError) and error.filename:  # at this time only credentials are read from files
        return f"no such file: {short(str(error.filename))}"
    if UNSENDABLE.match(str(error)):
        return "the credentials hold a character that they cannot have"
    return ""


@contextmanager
def reading(answer: str) -> Iterator[None]:
    """What an answer of an odd shape makes us stumble over in here is a `SourceError`, and no fault of ours."""
    try:
        yield
    except ODD:
        raise SourceError("malformed", f"{answer}: the answer is not what it should be") from None


@contextmanager
def making_a_client() -> Iterator[None]:
    """What is wrong with the environment is no answer that cannot be read."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        if said.startswith("Invalid endpoint"):
            raise NoClientError(
                "expected a URL, such as https://sqs.internal, in AWS_ENDPOINT_URL… and endpoint_url"
            ) from None
        raise NoClientError(
            f"credentials or settings of AWS in the environment cannot be used: {type(error).__name__}"
        ) from None


def retrieval_failed(error: BaseException) -> str:
    """Why there are no credentials, without a word of what a program or a service printed in their place."""
    if isinstance(error, PRINTING):
        return f"no credentials could be had from {error.kwargs.get('provider', 'the metadata service')}"
    return one_line(error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """What is behind an error, the deepest first: botocore's own says only that there was one."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        inner = following.kwargs.get("error") if isinstance(following, aws.BotoCoreError) else None
        following = inner or following.__cause__ or following.__context__
    return reversed(chain)


def refused(response: Any, operation: str) -> SourceError:
    """
    What an answer of AWS means that is an error.

    Credentials that are refused may be so in one region only, that nobody has enabled: only
    those that have ended, or that we could not get, are so whatever else is asked.
    """
    said = response.get("Error", {})
    code, message = str(said.get("Code", "")), short(str(said.get("Message", "")))
    reason: Reason = next((reason for pattern, reason in BY_CODE if re.search(pattern, code)), "unexpected")
    if CLOCK.search(f"{code} {message}"):
        reason, message = "auth", "the clock of this machine is wrong by minutes"
    elif reason == "auth":  # its message may quote the signed request, and with it a session's token
        message = "the credentials are refused"
    words = ": ".join(part for part in (operation, code, message) if part)
    return SourceError(reason, words, unreachable=bool(ENDED.search(code)))


def one_line(error: BaseException) -> str:
    """What an error says, without the addresses of our own objects."""
    return short(re.sub(r"<[\w.]+ object at 0x[0-9a-f]+>: ", "", str(error)) or type(error).__name__)


def short(text: str) -> str:
    """The text on one line, and without what a terminal would obey. The poller cuts it, after hiding secrets."""
    text = re.sub(r"//\S*@", "//…@", text)  # of an address only who it belongs to
    return "".join(each if each.isprintable() else "�" for each in " ".join(text.split()))
