"""The README's code blocks, so that tests can run what it tells people to run."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str, text: str | None = None) -> list[str]:
    """The fenced blocks in this language, in their order."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text or README.read_text("utf-8"), re.M | re.S)
    return found


def block(language: str, having: str) -> str:
    """The one block in this language that holds these words."""
    (found,) = [text for text in blocks(language) if having in text]
    return found
