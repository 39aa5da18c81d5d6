"""The boards hold to Grafana's own types: `@grafana/schema`, asked by TypeScript (`make lint` installs both)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .files import FILES, FOLDER, ROOT

TYPES = ROOT / "tools" / "types"
NODE = Path(sys.executable).with_name("node")


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    """What TypeScript says of the boards in a folder."""
    if not (TYPES / "node_modules").is_dir():
        pytest.fail("Grafana's types are missing: `make lint` installs them")
    command = [str(NODE), str(TYPES / "check.mjs"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_boards_hold_to_the_types() -> None:
    """Every name and every value in the files is one that Grafana knows."""
    found = checked(FOLDER)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ('"drawStyle": "line"', '"drawStyle": "lines"', '"lines"'),
        ('"graphTooltip": 1', '"graphTooltip": "shared"', "DashboardCursorSync"),
        ('"colorMode": "value"', '"colourMode": "value"', "colourMode"),
    ],
)
def test_a_value_that_is_none_of_grafanas_is_noticed(right: str, wrong: str, complaint: str, tmp_path: Path) -> None:
    """A word, a kind of value or a name that Grafana has not."""
    (overview,) = [path for path in FILES if path.stem == "laravel-queue-overview"]
    text = overview.read_text("utf-8")
    assert right in text
    (tmp_path / overview.name).write_text(text.replace(right, wrong), "utf-8")
    found = checked(tmp_path)
    assert found.returncode == 1
    assert complaint in found.stdout
