"""The runbooks, served by the exporter that raised the alert."""

from __future__ import annotations

import re

import pytest

from exporter import runbooks
from exporter.server import Server

from ..runbooks.blocks import RUNBOOKS
from .serving import get

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("name", sorted(runbooks.names()))
def test_runbook_in_a_browser(server: Server, name: str) -> None:
    """Each page is HTML that asks nobody for anything, with its links and headings."""
    answer = get(server, f"/runbooks/{name}", BROWSER)
    page = answer.body.decode()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert f'<h1 id="{name.lower()}">{name}</h1>' in page
    assert not re.search(r'(src|href)="(https?:)?//|\.md["#]', page)
    for target in re.findall(r'href="(\w+)"', page):
        assert get(server, f"/runbooks/{target}").status == 200, target


def test_runbook_in_a_terminal(server: Server) -> None:
    """Who does not ask for HTML gets the Markdown as it is in the repository."""
    name = min(runbooks.names())
    answer = get(server, f"/runbooks/{name}", {"Accept": "*/*"})
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.body == (RUNBOOKS / f"{name}.md").read_bytes()


def test_index(server: Server) -> None:
    """Without a name one gets the list of all."""
    page = get(server, "/runbooks/", BROWSER).body.decode()
    assert set(re.findall(r'href="(\w+)"', page)) >= runbooks.names()


@pytest.mark.parametrize(
    "name", ["Nothing", "..", "../README", "%2e%2e/README", "README.md", "a" * 9000, "LaravelQueue\0"]
)
def test_no_such_runbook(server: Server, name: str) -> None:
    """Only pages that there are; nothing of the path is repeated, and no other file can be read."""
    answer = get(server, f"/runbooks/{name}") if "\0" not in name else get(server, "/runbooks/%00")
    assert answer.status in (404, 414)
    assert answer.body in (b"no such runbook; all are listed on /runbooks/\n", b"Request-URI Too Long\n")


def test_runbooks_need_no_login(closed: Server) -> None:
    """They say nothing about the user's queues, and whoever was woken may not have the password at hand."""
    assert get(closed, "/").status == 401
    assert get(closed, f"/runbooks/{min(runbooks.names())}").status == 200
