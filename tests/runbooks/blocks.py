"""
What a runbook is made of, as a test sees it: headings, and blocks to run with what they print.

The first word after the fence is the language: `sh`, `sql` (psql runs it), `redis` (redis-cli does), and `text` for
what the block above it prints; several of these are what it prints in one case or the other. A second word says more:
`sh set` names the variables that a reader sets once; `cure` marks what ends the incident; `not-run:` and a reason marks
what cannot be run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
LANGUAGES = {"sh", "sql", "redis"}
NUMBER = re.compile(r"[-+]?\d[\d,.:]*(?:\s?(?:ms|s|m|h|d|%|kB|MB|GB|bytes)\b)?")


@dataclass(frozen=True, slots=True)
class Block:
    """One block to run."""

    language: str
    note: str  # `set`, `cure`, `not-run: …` or nothing
    source: str
    prints: tuple[str, ...]  # what the page promises: one of these, as the incident may have several causes
    line: int
    under: str  # the heading above it

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

    def without(self, *headings: str) -> Page:
        """The page for a reader whom it does not send to what stands under these headings."""
        assert set(headings) <= {text for _, text in self.headings}, f"{self.name} has no such heading: {headings}"
        return replace(self, blocks=tuple(block for block in self.blocks if block.under not in headings))

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
    return Page(name, source, headings, tuple(_blocks(tokens)))


def _blocks(tokens: list[Token]) -> Iterator[Block]:
    fences = [token for token in tokens if token.type == "fence"]
    for at, fence in enumerate(fences):
        language, _, note = fence.info.strip().partition(" ")
        if language != "text":
            after = takewhile(lambda token: token.info.strip() == "text", fences[at + 1 :])
            (line, _), above = fence.map or (0, 0), tokens[: tokens.index(fence)]
            under = [text.content for token, text in pairwise(above) if token.type == "heading_open"]
            prints = tuple(token.content for token in after)
            yield Block(language, note.strip(), fence.content, prints, line + 1, under[-1])


def shape(line: str) -> str:
    """A line without what differs from one incident to the next: numbers, times, the width of columns."""
    return re.sub(r"[\s|+-]+", " ", re.sub(r"(#\s*)+", "# ", NUMBER.sub("# ", line))).strip()


def missing(promises: tuple[str, ...], printed: str) -> list[str]:
    """
    The promised lines whose shape is nowhere in what was printed. `…` stands for lines that may or may not come.

    Of several promises one has to be kept: it is the one of which the fewest lines are missing.
    """
    shapes = {shape(line) for line in printed.splitlines()} | {"", "…"}
    broken = [[line for line in promised.splitlines() if shape(line) not in shapes] for promised in promises]
    return min(broken, key=len, default=[])
