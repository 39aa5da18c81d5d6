"""
Requests to AWS: within a deadline, and counted one by one.

botocore takes a time limit for connecting and for each read, but none for a request: a name
server, the search for credentials or a peer that drips may take longer. So each request runs
in a thread that can be left behind, and an answer is read only until its time is over.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Lock, Thread, current_thread
from typing import Any, NamedTuple

import botocore.session
import urllib3
from botocore import xform_name
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, CredentialResolver, DeferredRefreshableCredentials
from botocore.exceptions import ConnectionClosedError, NoCredentialsError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from ...errors import Reason, SourceError
from ...timing import Deadline
from . import errors
from .names import Place
from .parts import LANES
from .settings import Sqs

MOST_LEFT_BEHIND = 64  # requests of one service in one place without an end, before no new one is begun there
LARGEST = 8 * 2**20  # bytes of an answer; ListQueues, the largest, brings a thousand URLs
CHUNK = 65536  # bytes
CLIENT = "credentials"  # what takes its time when a client is made

OPERATIONS = (
    "GetQueueAttributes", "GetQueueUrl", "ListQueues", "GetMetricData", "PutMetricData", "DescribeServices",
    "AssumeRole", "other",
)  # fmt: skip
OUTCOMES: Mapping[Reason, str] = {  # of a request that failed
    "throttled": "throttled",
    "permission": "denied",
    "auth": "denied",
    "not_found": "not_found",
    "timeout": "timeout",
}
OK, FAILED = "ok", "failed"
SESSION = "queue-exporter"  # how we are called in CloudTrail


class Requests:
    """How many HTTP requests were made, by operation and outcome. Counts what botocore does by itself, too."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts = Counter[tuple[str, str]]()

    def count(self, event_name: str, parsed_response: Any, exception: BaseException | None, **_: Any) -> None:
        """A handler of botocore's event `response-received`, which comes once for each request that was sent."""
        self.add(event_name.rpartition(".")[2], outcome(parsed_response, exception))

    def add(self, operation: str, outcome: str) -> None:
        """Count one request."""
        with self._lock:
            self._counts[operation if operation in OPERATIONS else "other", outcome] += 1

    def counts(self) -> dict[tuple[str, str], int]:
        """By operation and outcome, those that have not happened at 0."""
        outcomes = (OK, *dict.fromkeys(OUTCOMES.values()), FAILED)
        with self._lock:
            return {(operation, each): self._counts[operation, each] for operation in OPERATIONS for each in outcomes}


def outcome(parsed: Any, error: BaseException | None) -> str:
    """How one request ended: a word of a closed set."""
    if error is None and parsed is not None and "Error" not in parsed:
        return OK
    failure = errors.request_failed(error) if error else errors.refused(parsed, "")
    return OUTCOMES.get(failure.reason, FAILED)


class Request(Thread):
    """One request under way."""

    def __init__(self, send: Callable[[], Any], deadline: Deadline) -> None:
        super().__init__(name="aws", daemon=True)
        self.send, self.deadline = send, deadline
        self.answer: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Send it and wait for the answer, for as long as botocore's own limits let it."""
        try:
            self.answer = self.send()
        except errors.ANY as error:
            self.error = error


def send_bounded(http: Any, request: Any, **_: Any) -> Any:
    """
    A handler of botocore's event `before-send`: sends the request, and reads what comes for as long as somebody waits.

    botocore would read an answer to its end, however long that takes and whatever it weighs. Raises what botocore
    would, if the answer stops in the middle.
    """
    request.stream_output = True
    response = http.send(request)
    response.raw.enforce_content_length = True  # botocore takes half an answer for a whole one
    waiting, read = current_thread(), bytearray()
    try:
        for chunk in response.raw.stream(CHUNK):
            read += chunk
            if len(read) > LARGEST:
                raise ResponseParserError("the answer is too large")
            if isinstance(waiting, Request):
                waiting.deadline.left()
    except urllib3.exceptions.ReadTimeoutError as error:
        raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionClosedError(endpoint_url=request.url, request=request, error=error) from error
    finally:
        response.raw.close()
    response._content = bytes(read)  # noqa: SLF001  # where botocore itself keeps what it has read
    return response


class Role:
    """A provider of credentials for botocore: those that its own chain finds are used to assume the role."""

    METHOD = "assume-role"

    def __init__(self, session: botocore.session.Session, role_arn: str | None, client: Callable[..., Any]) -> None:
        self.chain = session.get_component("credential_provider")
        self.role_arn, self.client = role_arn, client
        self.failure: errors.NotAssumedError | None = None

    def load(self) -> Any:
        """Credentials that assume the role when they are used first. Raises what botocore raises."""
        own = self.chain.load_credentials()
        if own is None:
            raise NoCredentialsError
        called = {"RoleSessionName": SESSION}
        fetcher = AssumeRoleCredentialFetcher(self.client, own, self.role_arn, extra_args=called)
        return DeferredRefreshableCredentials(partial(self._assume, fetcher), self.METHOD)

    def _assume(self, fetcher: AssumeRoleCredentialFetcher) -> Any:
        """Without the role nobody gets an answer, so it is tried once, until all is begun anew."""
        if self.failure is None:
            try:
                return fetcher.fetch_credentials()
            except errors.ANY as error:
                self.failure = errors.NotAssumedError(error)
        raise self.failure


class Service(NamedTuple):
    """What a client is made for."""

    name: str
    place: Place


class Asked(NamedTuple):
    """What was asked."""

    service: Service
    operation: str
    parameters: str


class Aws:
    """The clients of one account, made when they are needed first."""

    def __init__(self, settings: Sqs) -> None:
        self.settings = settings
        self.requests = Requests()
        self._lock = Lock()  # never held while anything is waited for
        self._making = Lock()  # one client at a time: each would look for the same credentials
        self._session: botocore.session.Session | None = None
        self._clients: dict[Service, Any] = {}
        self._left_behind: dict[Asked, Request] = {}
        # They would log signed requests, answers of STS, and a traceback for each failure that we tell in a line.
        for library in ("botocore", "urllib3"):
            logging.getLogger(library).setLevel(logging.CRITICAL)

    def ready(self, services: Iterable[Service], deadline: Deadline) -> None:
        """
        Make the clients that are missing, so that no request pays for them with its own time. Raises `SourceError`.

        It takes long: the description of a service is read, and credentials are looked for.
        """
        for service in dict.fromkeys(services):
            if service not in self._clients:
                self._run(Asked(service, CLIENT, ""), partial(self._client, service), deadline)

    def ask(self, service: Service, operation: str, deadline: Deadline, **parameters: Any) -> dict[str, Any]:
        """The answer to one request. Raises `SourceError`."""

        def send() -> Any:
            return getattr(self._client(service), xform_name(operation))(**parameters)

        answer: dict[str, Any] = self._run(Asked(service, operation, repr(parameters)), send, deadline)
        return answer

    def _run(self, asked: Asked, send: Callable[[], Any], deadline: Deadline) -> Any:
        left = deadline.left()
        self._may_begin(asked)
        request = Request(send, deadline)
        request.start()
        request.join(left)
        if request.is_alive():
            with self._lock:
                self._left_behind[asked] = request
            raise SourceError("timeout", f"{asked.operation}: no answer in time")
        if isinstance(request.error, errors.ODD):  # botocore tells nobody of an answer that it cannot read
            self.requests.add(asked.operation, FAILED)
        if request.error is not None:
            failure = errors.request_failed(request.error)
            if failure.unreachable:
                self.close()  # so that credentials are looked for anew
            raise failure from None
        if request.answer is None:  # the log says what broke
            raise SourceError("unexpected", f"{asked.operation}: the request ended without an answer")
        return request.answer

    def _may_begin(self, asked: Asked) -> None:
        """Nothing is asked again while the same is still being asked. Raises `SourceError`."""
        with self._lock:
            self._left_behind = {each: r for each, r in self._left_behind.items() if r.is_alive()}
            if asked in self._left_behind:
                raise SourceError("timeout", f"{asked.operation}: still no answer since an earlier poll")
            if sum(each.service == asked.service for each in self._left_behind) >= MOST_LEFT_BEHIND:
                raise SourceError("timeout", f"{asked.operation}: too many requests are still without an answer")

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            clients, self._clients, self._session = list(self._clients.values()), {}, None
        for client in clients:
            client.close()

    def _client(self, service: Service) -> Any:
        with self._making:
            with self._lock:
                if service in self._clients:
                    return self._clients[service]
                session = self._session = self._session or self._new_session()
            with errors.making_a_client():
                session.get_credentials()
                client = self._made(session, service.name, service.place.region, service.place.endpoint)
            with self._lock:
                if session is self._session:
                    self._clients[service] = client
            return client

    def _made(
        self, session: botocore.session.Session, name: str, region: str | None, endpoint: str | None, **own: Any
    ) -> Any:
        """One request is one request: the repetitions are ours. No wait may outlast a poll."""
        limit = self.settings.timeout
        retries = {"total_max_attempts": 1, "mode": "standard"}
        config = Config(connect_timeout=limit, read_timeout=limit, retries=retries, max_pool_connections=LANES)
        client = session.create_client(name, region_name=region, endpoint_url=endpoint, config=config, **own)
        http = client._endpoint.http_session  # noqa: SLF001  # it has the proxies and certificates of the environment
        client.meta.events.register("before-send", partial(send_bounded, http))
        return client

    def _new_session(self) -> botocore.session.Session:
        session = botocore.session.Session()
        session.register("response-received", self.requests.count)
        if self.settings.role_arn:

            def sts(name: str, **own: Any) -> Any:
                """botocore gives the credentials that the role is assumed with."""
                return self._made(session, name, self.settings.home, self.settings.endpoint_url, **own)

            role = Role(session, self.settings.role_arn, sts)
            session.register_component("credential_provider", CredentialResolver([role]))
        return session
