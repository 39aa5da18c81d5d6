"""The bars of the status page: their width, their colour, and that their words say what the colour says."""

from __future__ import annotations

import re

import pytest

from exporter.browser import _bar, status_page
from exporter.findings import Finding
from exporter.queues import OLDEST_JOB_AGE, PAUSED, TARGET_WAIT

from .reports import reported

NEAR, OVER = (Finding(("", ()), "database/emails", "", "", over=o, page=False, ratio=1.0) for o in (False, True))


@pytest.mark.parametrize(
    ("share", "finding", "shown"),
    [
        (0.0, None, ("", 0, "0 %")),
        (0.72, None, ("", 72, "72 %")),
        (0.73, NEAR, ("soon", 73, "73 %, near")),
        (0.81, OVER, ("over", 81, "81 %, over")),
        (1.2, OVER, ("over", 100, "120 %, over")),
        (1.2, None, ("", 100, "120 %")),
        (25.0, OVER, ("over", 100, "25 times, over")),
    ],
)
def test_a_bar(share: float, finding: Finding | None, shown: tuple[str, int, str]) -> None:
    """What the limits say of it is its colour and its word; it is never wider than whole."""
    tone, width, words = shown
    assert _bar(share, finding) == f'<span class="bar {tone}" style="--used: {width}%">{words}</span>'


def test_no_share_no_bar() -> None:
    """Without a target there is nothing to compare with."""
    assert _bar(None, None) == ""


def test_a_bar_is_coloured_where_a_limit_speaks() -> None:
    """A paused queue may wait: the list of limits is silent on it, and so its bar is plain."""
    waiting = [OLDEST_JOB_AGE(90, "database", name) for name in ("late", "paused")]
    targets = tuple(TARGET_WAIT(60, "database", name) for name in ("late", "paused"))
    page = status_page(reported(*waiting, PAUSED(1, "database", "paused"), constants=targets))
    assert re.findall(r'class="bar (\w*)"[^>]*>([^<]*)<', page) == [("over", "150 %, over"), ("", "150 %")]
