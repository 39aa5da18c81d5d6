"""The bars of the status page: their width, their colour, and that their words say what the colour says."""

from __future__ import annotations

import pytest

from exporter.browser import _bar


@pytest.mark.parametrize(
    ("share", "bound", "soon", "shown"),
    [
        (0.0, 1.0, 1.0, ("", 0, "0 %")),
        (0.5, 1.0, 1.0, ("", 50, "50 %")),
        (0.72, 0.8, 0.9, ("", 72, "72 %")),
        (0.73, 0.8, 0.9, ("soon", 73, "73 %, near")),
        (0.8, 0.8, 0.9, ("soon", 80, "80 %, near")),
        (0.81, 0.8, 0.9, ("over", 81, "81 %, over")),
        (1.0, 1.0, 1.0, ("", 100, "100 %")),
        (1.2, 1.0, 1.0, ("over", 100, "120 %, over")),
        (25.0, 1.0, 1.0, ("over", 100, "25 times, over")),
    ],
)
def test_a_bar(share: float, bound: float, soon: float, shown: tuple[str, int, str]) -> None:
    """Above its bound it is over, from soon × bound on near; it is never wider than whole."""
    tone, width, words = shown
    assert _bar(share, bound, soon) == f'<span class="bar {tone}" style="--used: {width}%">{words}</span>'


def test_no_share_no_bar() -> None:
    """Without a target there is nothing to compare with."""
    assert _bar(None) == ""
