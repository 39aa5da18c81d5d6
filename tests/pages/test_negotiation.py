"""Which format and which encoding a client gets."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from exporter.pages import weight
from exporter.server import Server

from .serving import connect, get, rest

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_2_53 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_2_53_NATIVE = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    f"{PROMETHEUS_2_53}"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3_TEXT_FIRST = (
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,"
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.1"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (PROMETHEUS_2_42, OPENMETRICS), (PROMETHEUS_2_53, OPENMETRICS), (PROMETHEUS_2_53_NATIVE, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS), (PROMETHEUS_3_TEXT_FIRST, TEXT), (BROWSER, TEXT), (None, TEXT), ("", TEXT),
        ("*/*", TEXT), ("text/*", TEXT), ("text/plain;version=0.0.4", TEXT), ("application/json", TEXT),
        ("APPLICATION/OpenMetrics-Text ; Q=0.5", OPENMETRICS), ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=0.3, text/plain;q=0.7", TEXT), ("application/openmetrics-text;q=much", TEXT),
        ("application/openmetrics-text, text/plain", OPENMETRICS), (",,;q=1,", TEXT),
    ],
)  # fmt: skip
def test_formats(server: Server, accept: str | None, kind: str) -> None:
    """OpenMetrics for a client that names it and wants it no less than text; text for all others."""
    answer = get(server, headers={} if accept is None else {"Accept": accept})
    assert answer.headers["Content-Type"] == kind
    parse = openmetrics_families if kind == OPENMETRICS else text_families
    found = {family.name for family in parse(answer.body.decode())}
    assert {"laravel_queue_jobs", "laravel_queue_source_polls", "process_resident_memory_bytes"} <= found


@pytest.mark.parametrize(
    ("accept", "packed"),
    [
        ("gzip", True), ("gzip, deflate, br", True), ("*", True), ("GZIP;q=0.1", True), ("br, gzip ;q=1.000", True),
        (None, False), ("", False), ("identity", False), ("gzip;q=0", False), ("gzip;q=0.000", False), ("*;q=0", False),
        ("deflate", False), ("xgzip", False), ("gzip;q=0, *", False), ("gzip;q=-1", False), ("gzip;q=1.5", False),
    ],
)  # fmt: skip
def test_encodings(server: Server, accept: str | None, packed: bool) -> None:
    """Gzip for those who take it, and the same page inside."""
    answer = get(server, headers={} if accept is None else {"Accept-Encoding": accept})
    assert (answer.headers["Content-Encoding"] == "gzip") is packed
    assert b"laravel_queue_jobs" in (gzip.decompress(answer.body) if packed else answer.body)
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"


def test_small_pages_are_not_packed(server: Server) -> None:
    """It would make them larger."""
    assert get(server, "/-/healthy", {"Accept-Encoding": "gzip"}).body == b"ok\n"


def test_a_header_may_be_repeated(server: Server) -> None:
    """Two headers of one name are one list."""
    client = "GET /metrics HTTP/1.1\r\nAccept: text/plain;q=0.5\r\nAccept: application/openmetrics-text\r\n\r\n"
    with connect(server, client.encode()) as connection:
        assert OPENMETRICS.encode() in rest(connection)


@pytest.mark.parametrize(("accept", "html"), [(BROWSER, True), ("*/*", False), (None, False), ("text/html;q=0", False)])
def test_the_status_page_is_html_for_browsers_only(server: Server, accept: str | None, html: bool) -> None:
    """The same report, in a page that loads itself again, for those who prefer HTML."""
    answer = get(server, "/", {} if accept is None else {"Accept": accept})
    assert answer.headers["Content-Type"] == f"text/{'html' if html else 'plain'}; charset=utf-8"
    assert (b"<h2" in answer.body, b"QUEUES" in answer.body) == (html, not html)


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=255), max_size=60))
def test_no_header_breaks_the_choice(header: str) -> None:
    """Whatever a client sends, a weight is between 0 and 1."""
    assert 0 <= weight(header, "text/plain", "*/*") <= 1
