"""What the pages say: /metrics, /, /runbooks/…, /-/healthy, /-/ready. They wait for nobody."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as TEXT
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS

from . import browser, runbooks
from .board import Board
from .exposition import Exposition
from .status import report
from .terminal import text
from .web import Gate

WORTH_PACKING = 1024  # bytes
HTML = "text/html; charset=utf-8"
RUNBOOKS = "/runbooks/"
NO_SUCH_PAGE = b"no such page; there are /, /metrics and /runbooks/\n"
# The pages need nothing but their own style and an empty icon; should a name ever get in as HTML, it can do nothing.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
VERDICT = "Queue-Exporter-Verdict"  # a header: the exit status of `status`
Q = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")

Headers = Mapping[str, str]  # names in lower case


class Response(NamedTuple):
    """What a request is answered with."""

    body: bytes
    kind: str = "text/plain; charset=utf-8"
    status: HTTPStatus = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = ()


class Pages:
    """All pages. A page that names anything of the user's asks for a login, where there are any."""

    def __init__(self, board: Board, exposition: Exposition, gate: Gate) -> None:
        self.board, self.exposition, self.gate = board, exposition, gate
        self.closed: dict[str, Callable[[Headers], Response]] = {"/": self.status, "/metrics": self.metrics}
        self.open: dict[str, Callable[[Headers], Response]] = {"/-/healthy": self.healthy, "/-/ready": self.ready}

    def answer(self, path: str, headers: Headers) -> Response:
        """The page of this path, in the format and encoding that the client prefers, or why there is none."""
        if page := self.open.get(path):
            return page(headers)
        if path.startswith(RUNBOOKS):
            return packed(self.runbook(path.removeprefix(RUNBOOKS), headers), headers)
        if not self.gate.opens(headers.get("authorization", "")):
            asks = (("WWW-Authenticate", 'Basic realm="queue-exporter"'),)
            return Response(b"a login is needed\n", status=HTTPStatus.UNAUTHORIZED, headers=asks)
        if page := self.closed.get(path):
            return packed(page(headers), headers)
        return Response(NO_SUCH_PAGE, status=HTTPStatus.NOT_FOUND)

    def metrics(self, headers: Headers) -> Response:
        """The metrics. OpenMetrics is for those who name it."""
        accept = headers.get("accept", "")
        openmetrics = weight(accept, "application/openmetrics-text")
        if openmetrics and openmetrics >= weight(accept, "text/plain", "text/*", "*/*"):
            return Response(self.exposition.page("openmetrics"), OPENMETRICS)
        return Response(self.exposition.page("text"), TEXT)

    def status(self, headers: Headers) -> Response:
        """What is over its limit. HTML is for browsers, which prefer it."""
        now = report(self.board, runbooks.names(), self.exposition.clock)
        verdict = ((VERDICT, str(int(now.verdict))),)
        if wants_html(headers):
            return html(browser.status_page(now), verdict)
        return Response(text(now).encode(), headers=verdict)

    def runbook(self, name: str, headers: Headers) -> Response:
        """What to do about an alert; the index without a name. Markdown for a terminal."""
        name = name or runbooks.INDEX
        if wants_html(headers) and (page := browser.runbook_page(name)):
            return html(page)
        if source := runbooks.markdown(name):
            return Response(source.encode())
        return Response(b"no such runbook; all are listed on /runbooks/\n", status=HTTPStatus.NOT_FOUND)

    def healthy(self, headers: Headers) -> Response:
        """The process serves."""
        return Response(b"ok\n")

    def ready(self, headers: Headers) -> Response:
        """Every collector has polled once, whatever came of it."""
        if waiting := sum(state.polls == 0 for state in self.board.read().values()):
            body = f"collectors that have not polled yet: {waiting}\n".encode()
            return Response(body, status=HTTPStatus.SERVICE_UNAVAILABLE)
        return Response(b"ready\n")


def html(page: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A page for a browser."""
    return Response(page.encode(), HTML, headers=(*headers, ("Content-Security-Policy", POLICY)))


def packed(response: Response, headers: Headers) -> Response:
    """The response with gzip, where the client takes it and the size is worth it."""
    varies = response._replace(headers=(*response.headers, ("Vary", "Accept, Accept-Encoding")))
    if len(response.body) < WORTH_PACKING or not weight(headers.get("accept-encoding", ""), "gzip", "*"):
        return varies
    body = gzip.compress(response.body, compresslevel=1)
    return varies._replace(body=body, headers=(*varies.headers, ("Content-Encoding", "gzip")))


def wants_html(headers: Headers) -> bool:
    """Whether the client would rather have HTML than text."""
    accept = headers.get("accept", "")
    return weight(accept, "text/html") > weight(accept, "text/plain", "text/*", "*/*")


def weight(preferences: str, *names: str) -> float:
    """
    How much a client wants the first of `names` that it mentions; 0 if it mentions none.

    Source: RFC 9110, 12.4.2. `names` go from the most specific to the least. A weight that is
    malformed is 0, and of several for one name the largest counts.
    """
    weights: dict[str, float] = {}
    for preference in preferences.lower().split(","):
        name, *parameters = (part.strip() for part in preference.split(";"))
        q = next((parameter for parameter in parameters if parameter.startswith("q=")), "q=1")
        match = Q.fullmatch(q)
        weights[name] = max(weights.get(name, 0.0), float(match[1]) if match else 0.0)
    return next((weights[name] for name in names if name in weights), 0.0)
