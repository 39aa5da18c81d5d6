"""Logs: one event is one line, whatever is in it, in two forms, and no secret is in any of them."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.logs import Form, Line, Secrets

from .running import environment

NASTY = [
    "two\nlines",
    'a "quote"',
    "back\\slash",
    "tab\t",
    "\x1b[31mred",
    "\x00",
    "\x85\u2028\u2029",
    "\ud800half",
    "a=b",
    "",
    " ",
    "é🚀",
]
PAIR = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "=]+)(?: |$)')
TEXTS = st.text(st.characters(exclude_categories=())).filter(lambda text: "hunter2" not in text)


def line(form: Form, secrets: tuple[str, ...] = (), **fields: Any) -> str:
    """A record with these fields as it is written."""
    record = logging.makeLogRecord(
        {"name": "exporter", "levelno": 30, "levelname": "WARNING", "msg": "poll", "msecs": 5, "created": 0.0} | fields
    )
    return Line(form, Secrets(secrets)).format(record)


def read_back(form: Form, written: str) -> dict[str, Any]:
    """The fields in a line."""
    if form == "json":
        fields: dict[str, Any] = json.loads(written)
        return fields
    assert PAIR.sub("", written) == ""
    return {key: json.loads(value) if value.startswith('"') else value for key, value in PAIR.findall(written)}


def test_the_two_forms() -> None:
    """Time in UTC with milliseconds, level, event, fields; numbers stay numbers in JSON."""
    fields: dict[str, Any] = {"source": "database", "seconds": 0.25, "error": "no route"}
    assert line("logfmt", **fields) == (
        'ts=1970-01-01T00:00:00.005Z level=warning msg=poll source=database seconds=0.25 error="no route"'
    )
    assert line("json", **fields) == (
        '{"ts": "1970-01-01T00:00:00.005Z", "level": "warning", "msg": "poll", "source": "database", '
        '"seconds": 0.25, "error": "no route"}'
    )


@pytest.mark.parametrize("form", ["logfmt", "json"])
@settings(deadline=None)
@given(value=st.one_of(st.sampled_from(NASTY), TEXTS), message=TEXTS)
def test_one_event_is_one_line(form: Form, value: str, message: str) -> None:
    """Whatever a value holds, the line has no end inside, no control character, and can be read back exactly."""
    written = line(form, msg=message, args=(), error=value)
    assert written.isprintable()
    assert written.encode()
    assert read_back(form, written) == read_back(form, line(form)) | {"msg": message, "error": value}


@pytest.mark.parametrize("form", ["logfmt", "json"])
@pytest.mark.parametrize("value", [None, True, 5, 0.5, ["a b"], {"a": 1}, ValueError("hunter2"), b"\xff", float("nan")])
def test_values_of_every_kind(form: Form, value: object) -> None:
    """A value that is no text is written in some way, on one line and without secrets."""
    written = line(form, ("hunter2",), error=value)
    assert written.isprintable()
    assert "hunter2" not in written
    assert "error" in read_back(form, written)
    assert "NaN" not in written


def fail(why: str) -> None:
    """Raise."""
    raise RuntimeError(why)


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_case_19_no_secret_anywhere(form: Form) -> None:
    """Case 19. A secret in the message, its arguments, a field or a traceback is three stars, also one with escapes."""
    secrets = ("hunter2", 'q"w\nx\\')
    with pytest.raises(RuntimeError) as broken:
        fail("login as hunter2 failed: " + secrets[1])
    caught = (broken.type, broken.value, broken.tb)
    written = line(form, secrets, msg="no %s", args=("hunter2",), error=f"<{secrets[1]}>", exc_info=caught)
    assert not re.search(r'hunter2|q\\*"', written)
    fields = read_back(form, written)
    assert (fields["msg"], fields["error"]) == ("no ***", "<***>")
    assert fields["traceback"].endswith("RuntimeError: login as *** failed: ***")
    assert "in fail\n" in fields["traceback"]


def test_secrets_that_hold_one_another() -> None:
    """The longest is hidden first, so no rest of it stays; one of three letters would blot out half of every line."""
    hide = Secrets(["hunter", "hunter2", "hunter2hunter", "abc", ""]).hide
    assert hide("hunter2hunter hunter2 hunter abc") == "*** *** *** abc"


PROGRAM = """
import logging, sys, threading, warnings
from exporter import logs
logs.set_up({level!r}, {form!r}, logs.Secrets(["hunter2"]))
{body}
"""


def said(body: str, form: Form = "logfmt", level: str = "info") -> tuple[int, list[dict[str, Any]]]:
    """The exit status of a program with our logs, and what it said on standard error, line by line."""
    program = [sys.executable, "-c", PROGRAM.format(body=body, form=form, level=level)]
    done = subprocess.run(program, env=environment({"PYTHONWARNINGS": "default"}), capture_output=True, check=False)
    assert b"hunter2" not in done.stderr
    assert done.stdout == b""
    return done.returncode, [read_back(form, written) for written in done.stderr.decode().splitlines()]


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_what_nobody_caught(form: Form) -> None:
    """An exception in a thread or in the main one is a line like any other, without the secret in its message."""
    body = """
def fail(): raise RuntimeError("hunter2")
thread = threading.Thread(target=fail, name="database"); thread.start(); thread.join()
fail()
"""
    status, (in_thread, in_main) = said(body, form)
    assert status == 1
    assert [(event["level"], event["in_thread"]) for event in (in_thread, in_main)] == [
        ("critical", "database"),
        ("critical", "main"),
    ]
    assert all(event["traceback"].endswith("RuntimeError: ***") for event in (in_thread, in_main))


def test_levels() -> None:
    """What is below the level is not written; other libraries' logs and warnings are, in our form."""
    body = """
for level in ("debug", "info", "warning", "error"): getattr(logging.getLogger("psycopg"), level)("hunter2 %s", level)
warnings.warn("hunter2 is old")
"""
    assert [event["msg"] for event in said(body, level="warning")[1]][:2] == ["*** warning", "*** error"]
    assert len(said(body, level="warning")[1]) == 3
    assert len(said(body, level="debug")[1]) == 5


def test_a_log_that_cannot_be_written_is_not_written_about() -> None:
    """A wrong argument in somebody's log call prints no traceback in another form."""
    assert said('logging.getLogger("x").warning("%d", "hunter2")') == (0, [])


def test_a_secret_is_known_again_on_one_line() -> None:
    """Servers and sources put texts on one line: a secret with spaces or a line end in it is hidden all the same."""
    secrets = Secrets(["two  spaces", "line\nend", "    ", "a.b*c"])
    assert secrets.hide("it said two spaces, line end, line\r\nend") == "it said ***, ***, ***"
    assert secrets.hide("a b  c, aXbbc, a.b*c") == "a b  c, aXbbc, ***"
