"""No link between our documents ends in nothing, and no page of `docs/` stands alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from exporter.runbooks import anchor

from .blocks import README

ROOT = README.parent
ELSEWHERE = {"node_modules", "build", "dist"}  # what others wrote
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part in ELSEWHERE for part in path.relative_to(ROOT).parts)
)
DOCS = sorted((ROOT / "docs").glob("*.md"))


def inside(path: Path) -> str:
    """A page's path within the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> list[Token]:
    """The page as GitHub reads it: what stands in a block of code is neither a heading nor a link."""
    return MarkdownIt("commonmark").enable("table").parse(path.read_text("utf-8"))


def links(path: Path) -> Iterator[str]:
    """Where its links lead and its pictures lie, as far as that is with us."""
    for token in parsed(path):
        for child in token.children or ():
            target = str(child.attrs.get("href") or child.attrs.get("src") or "")
            if target and not target.startswith(("http://", "https://", "mailto:")):
                yield target


def anchors(path: Path) -> set[str]:
    """What a link to this page may name behind its `#`."""
    return {anchor(text.content) for token, text in pairwise(parsed(path)) if token.type == "heading_open"}


def place(path: Path, target: str) -> Path:
    """The file to which this link of the page leads."""
    file = target.partition("#")[0]
    return (path.parent / file).resolve() if file else path


@pytest.mark.parametrize("path", PAGES, ids=inside)
def test_links_lead_somewhere(path: Path) -> None:
    """The file is there, and if the link names a heading, that is there as well."""
    for target in links(path):
        there, _, heading = target.partition("#")
        found = place(path, target)
        assert found.exists(), target
        assert not heading or heading in anchors(found), f"{there or 'this page'} has no heading {heading}"


@pytest.mark.parametrize("path", DOCS, ids=inside)
def test_a_page_of_docs_says_first_what_it_is_about(path: Path) -> None:
    """Whoever comes from elsewhere reads a title and a paragraph that leads back; and the README leads to the page."""
    kinds = [token.type for token in parsed(path)]
    assert kinds[:4] == ["heading_open", "inline", "heading_close", "paragraph_open"]
    first = parsed(path)[4].children or ()
    assert README.resolve() in {place(path, str(child.attrs["href"])) for child in first if child.type == "link_open"}
    assert path.resolve() in {place(README, target).resolve() for target in links(README)}
