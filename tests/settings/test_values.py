"""Durations, names, addresses: what is understood, and what is refused."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exporter import app
from exporter.settings import seconds

from ..world import database_of, series
from .complaints import ONE, complaint, complaints, load

LONG = "x" * 300


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90", 90),
        ("90s", 90),
        ("2m", 120),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("0.5", 0.5),
        (" 2 m ", 120),
        ("8784h", 31622400),
    ],
)
def test_durations(written: str, meant: float) -> None:
    """Seconds, or a number with its unit."""
    assert database_of(load(f"{ONE}    target_wait: '{written}'\n")).target_wait == meant


@pytest.mark.parametrize(
    "written",
    ["0", "0s", "0.0001ms", "-1", "-5s", "+5s", "1e3", "inf", "nan", "ninety", "90 seconds", "1m30s", "1d", "9000h",
     "9" * 400, "true", "12:30", ".5", "5.", "１５", "''", "5s\\0"],
)  # fmt: skip
def test_durations_that_are_none(written: str) -> None:
    """Negative, zero, endless, absurd or in words: one line says what a duration looks like."""
    problem = complaint(f'{ONE}    interval: "{written}"\n')
    assert problem.startswith("connections.database.interval: expected a duration above zero, and of a year at most")


@settings(deadline=None)
@given(st.one_of(st.text(max_size=20), st.text(string.digits + ".smh -", max_size=8)))
@example("1" * 5000)
def test_no_text_breaks_a_duration(text: str) -> None:
    """Whatever is written, it is between a millisecond and a year, or it is refused."""
    try:
        found = seconds(text)
    except ValueError:
        return
    assert 0.001 <= found <= 366 * 86400


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("interval: 50ms", "connections.database.interval: expected 0.1s or more"),
        ("retry_after: 0.5", "connections.database.retry_after: expected 1s or more"),
        ("queues: {a: {retry_after: 900ms}}", "connections.database.queues.a.retry_after: expected 1s or more"),
        ("retry_after: 90.9s", "connections.database.retry_after: expected 1s or more, in whole seconds"),
        (
            "queues: {a: {retry_after: 1.01m}}",
            "connections.database.queues.a.retry_after: expected 1s or more, in whole",
        ),
        ("pools: {w: {role: a, timeout: 1ms}}", "connections.database.pools.w.timeout: expected 1s or more"),
    ],
)
def test_durations_that_are_too_short(line: str, expected: str) -> None:
    """Laravel counts whole seconds: a part of one would be cut off where rows are counted, and shown elsewhere."""
    assert complaint(f"{ONE}    {line}\n").startswith(expected)


@pytest.mark.parametrize(("interval", "fine"), [("64s", True), ("63.9s", False), ("1", False), ("2m", True)])
def test_ntp_servers_are_not_asked_too_often(interval: str, fine: bool) -> None:
    """64 s is the shortest interval that their operators accept."""
    problems = complaints(f"{ONE}clock: {{ntp: [a.internal, b.internal], interval: {interval}}}\n")
    assert problems == (
        [] if fine else ["clock.interval: expected 64s or more, so that no NTP server is asked too often"]
    )


def test_a_timeout_longer_than_the_interval_is_a_choice() -> None:
    """A question may take longer than the pause between two: it is then asked less often, and says so."""
    assert complaints(f"{ONE}    interval: 1s\n    timeout: 30s\n") == []


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("0.0.0.0:10087", ("0.0.0.0", 10087)),
        ("localhost:0", ("localhost", 0)),
        ("exporter.internal:65535", ("exporter.internal", 65535)),
        (":10087", ("", 10087)),
        ("[::]:10087", ("::", 10087)),
        ("[::1]:10087", ("::1", 10087)),
        ("[fe80::1%eth0]:10087", ("fe80::1%eth0", 10087)),
    ],
)
def test_addresses(listen: str, address: tuple[str, int]) -> None:
    """A name, IPv4, IPv6 in brackets, or all addresses."""
    assert load(f"{ONE}web: {{listen: '{listen}'}}\n").web.address == address


@pytest.mark.parametrize(
    "listen",
    ["10087", "localhost", "localhost:", "::1:10087", "[::1:10087", "::1]:10087", "[]:1", "[localhost]:1", "a:b:1",
     "h:65536", "h:-1", "h:1x", "http://h:1", "h h:1", "", "0.0.0.0:10087:1", "h:１"],
)  # fmt: skip
def test_addresses_that_are_none(listen: str) -> None:
    """One line says what an address looks like, before anything is listened on."""
    problem = complaint(f"{ONE}web: {{listen: '{listen}'}}\n")
    assert problem == "web.listen: expected host:port such as 0.0.0.0:10087 or [::1]:10087"


@pytest.mark.parametrize(
    "name", ['"instance', "__x", "9a", "a b", "ключ", "🚀", "a,b=c", "x" * 255, "a.b/c", "{}", "-"]
)
def test_case_30_hostile_names_that_can_be_shown(name: str) -> None:
    """Case 30. A connection, a pool and a queue may have any name that fits on one line, and it is shown exactly."""
    quoted = name.replace("'", "''")
    pool = f"{{role: a, timeout: 60s, queues: ['{quoted}']}}"
    connection = f"{{driver: database, queues: {{'{quoted}': }}, pools: {{'{quoted}': {pool}}}}}"
    settings = load(f"connections: {{'{quoted}': {connection}}}")
    page = series(app.build(settings).exposition.page("text"))
    labels = (("connection", name), ("pool", name), ("queue", name))
    assert page["laravel_queue_worker_timeout_seconds", labels] == 60


@pytest.mark.parametrize("name", ["a\\nb", "\\0", "\\u202E", "\\uD800", "\\x1B[2J", "", LONG, "\\u2028"])
def test_case_30_hostile_names_that_are_refused(name: str) -> None:
    """Case 30. What ends a line, moves a cursor or is too long is refused by its own name, on one line."""
    shown = complaint(f'connections: {{"{name}": {{driver: database}}}}')
    assert shown.startswith("connections.")
    assert "expected a name of 1 to 255 printable characters" in shown or "expected UTF-8 text" in shown
    assert len(shown) < 150
    (pool,) = complaints(f'{ONE}    pools: {{"{name}": {{role: a}}}}')
    assert pool.startswith("connections.database.pools.")


@pytest.mark.parametrize(("name", "fine"), [("a\\nb", True), ("\\x1B", True), ("x" * 255, True), ("x" * 256, False),
                                            ("", False), ("\\0", False), ("\\uD800", False)])  # fmt: skip
def test_queues_have_the_names_that_laravel_lets_them_have(name: str, fine: bool) -> None:
    """The column holds 255 characters of any kind, even a line end, but no NUL; an empty name is a mistake."""
    problems = complaints(f'{ONE}    queues: {{"{name}": }}')
    assert [problem.partition(": ")[2] for problem in problems] == (
        [] if fine else ["expected a queue's name of 1 to 255 characters"]
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "pools: {web: {timeout: 60s}}",
            "pools.web: expected application_name or role, to recognise its connections by",
        ),
        ("pools: {web: {role: ''}}", "pools.web.role: expected a name of 1 to 255 printable characters"),
        ("pools: {other: {role: a}}", "pools.other: expected another name than 'other', which means: all the rest"),
        ("queues: {other: {}}", "queues.other: expected another name than 'other', which means: all the rest"),
        ("pools: {w: {role: a, queues: ['']}}", "pools.w.queues.0: expected a queue's name of 1 to 255 characters"),
        ("pools: {w: {role: a, queues: [x, y, x]}}", "pools.w.queues: expected each name once, but one is given twice"),
        ("table: ''", "table: expected a name of 1 to 255 printable characters"),
    ],
)
def test_pools_and_tables(line: str, problem: str) -> None:
    """A pool can be recognised, has a name of its own, and lists each queue once."""
    assert complaint(f"{ONE}    {line}\n") == f"connections.database.{problem}"
