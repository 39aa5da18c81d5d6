"""How a runbook is read, and when what is printed is what the page promises."""

from __future__ import annotations

import pytest

from .blocks import missing, read

PROMISED = "  pid   | state\n--------+-------\n 1714021 | idle\n…\n"


def test_numbers_and_widths_may_differ() -> None:
    """Another process id in a wider column is the same answer, whatever else is printed."""
    assert missing((PROMISED,), "    pid    |  state\n-----------+--------\n 7 | idle\n 8 | active\n(2 rows)\n") == []


def test_words_may_not() -> None:
    """A line that says something else breaks the promise, and is named."""
    assert missing((PROMISED,), "  pid   | state\n--------+-------\n 7 | active\n") == [" 1714021 | idle"]


def test_one_of_several_promises_is_enough() -> None:
    """A look prints one thing or the other; if neither, the nearest is told."""
    assert missing(("it can\n", "ERROR: permission denied\n"), "it can\n") == []
    assert missing(("it can\nread\n", "ERROR\n"), "it can\n") in (["read"], ["ERROR"])
    assert missing((), "whatever\n") == []


def test_reader_may_pass_by_what_is_about_another_cause() -> None:
    """Blocks under a heading can be left out, and a heading that is not there is an error."""
    page = read("LaravelQueuePopSlow")
    blocks = page.without("Dead rows", "The database").blocks
    assert {block.under for block in page.blocks} - {block.under for block in blocks} == {"Dead rows", "The database"}
    with pytest.raises(AssertionError, match="no such heading"):
        page.without("Live rows")
