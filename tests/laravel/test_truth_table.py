"""The table of truths in the documents, and the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "truths.md"
TEST = re.compile(r"^def (test_\w+)", re.MULTILINE)


def names_in(pattern: str) -> set[str]:
    """The names of the tests in these files."""
    return {name for path in HERE.glob(pattern) for name in TEST.findall(path.read_text("utf-8"))}


def held_by() -> list[str]:
    """What the last column of each row says."""
    rows = [line.split("|") for line in TABLE.read_text("utf-8").splitlines() if line.startswith("|")]
    return [row[-2].strip() for row in rows[2:]]


def test_each_row_of_the_table_names_a_test_that_exists() -> None:
    """No row stands in the table of truths without a test of its own."""
    assert held_by()
    assert {name.strip("`") for name in held_by()} <= names_in("test_*.py")


def test_each_comparison_with_the_truth_stands_in_the_table() -> None:
    """Who reads the table of truths misses none of them."""
    assert names_in("test_truth_*.py") - names_in(Path(__file__).name) <= {name.strip("`") for name in held_by()}
