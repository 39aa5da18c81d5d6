"""
What a runbook is made of, as a test sees it: headings, and blocks to run with what they print.

The first word after the fence is the language: `sh`, `sql` (psql runs it), `redis` (redis-cli does), and `text` for
what the block above it prints. A second word says more: `sh set` names the variables that a reader sets once;
`cure` marks what ends the incident; `not-run:` and a reason marks what cannot be run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
LANGUAGES = {"sh", "sql", "redis"}
NUMBER = re.compile(r"[-+]?\d[\d,.:]*(?:\s?(?:ms|s|m|h|d|%|kB|MB|GB|bytes)\b)?")


@dataclass(frozen=True, slots=True)
class Block:
    """One block to run."""

    language: str
    note: str  # `set`, `cure`, `not-run: …` or nothing
    source: str
    prints: str  # "" if the page promises nothing
    line: int

    @property
    def excused(self) -> str:
        """Why it is not run; "" if it is."""
        return self.note.removeprefix("not-run:").strip() if self.note.startswith("not-run:") else ""


@dataclass(frozen=True, slots=True)
class Page:
    """One runbook."""

    name: str
    source: str
    headings: tuple[tuple[str, str], ...]  # (`h1` to `h6`, text)
    blocks: tuple[Block, ...]

    def variables(self) -> set[str]:
        """What the reader is asked to set once."""
        return {
            name
            for block in self.blocks
            if block.note == "set"
            for name in re.findall(r"(?:^export|\s)\s*([A-Z_]+)=", block.source)
        }


def read(name: str) -> Page:
    """The runbook of this alert."""
    source = (RUNBOOKS / f"{name}.md").read_text("utf-8")
    tokens = MarkdownIt("commonmark").enable("table").parse(source)
    headings = tuple((token.tag, text.content) for token, text in pairwise(tokens) if token.type == "heading_open")
    fences = [(t.info.strip(), t.content, t.map[0] + 1 if t.map else 0) for t in tokens if t.type == "fence"]
    return Page(name, source, headings, tuple(_blocks(fences)))


def _blocks(fences: list[tuple[str, str, int]]) -> Iterator[Block]:
    for (info, content, line), after in zip(fences, [*fences[1:], ("", "", 0)], strict=True):
        language, _, note = info.partition(" ")
        if language != "text":
            yield Block(language, note.strip(), content, after[1] if after[0] == "text" else "", line)


def shape(line: str) -> str:
    """A line without what differs from one incident to the next: numbers, times, the width of columns."""
    return re.sub(r"[\s|+-]+", " ", re.sub(r"(#\s*)+", "# ", NUMBER.sub("# ", line))).strip()


def missing(promised: str, printed: str) -> list[str]:
    """The promised lines whose shape is nowhere in what was printed. `…` stands for lines that may or may not come."""
    shapes = {shape(line) for line in printed.splitlines()}
    return [line for line in promised.splitlines() if shape(line) not in shapes | {"", "…"}]
