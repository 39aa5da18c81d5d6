"""The code blocks of the README and of the pages in `docs/`, so that tests can run what they tell people to run."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"


def blocks(language: str, page: Path = README) -> list[str]:
    """The fenced blocks of the page in this language, in their order."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    return found


def block(language: str, having: str, page: Path = README) -> str:
    """The one block of the page in this language that holds these words."""
    (found,) = [text for text in blocks(language, page) if having in text]
    return found
