"""
The runbooks: a page for each alert, written in Markdown and named as the alert.

They lie beside the package in a checkout, and in it when installed. Read when
somebody asks, which is seldom; what they say is ours, so nobody needs a login for it.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

INDEX = "README"
PLACES = (Path(__file__).with_name("pages-of-runbooks"), Path(__file__).parents[1] / "runbooks")


@cache
def folder() -> Path | None:
    """Where the runbooks lie; None in an installation that lost them."""
    return next((place for place in PLACES if place.is_dir()), None)


@cache
def names() -> frozenset[str]:
    """The alerts that have a runbook."""
    found = folder()
    return frozenset(path.stem for path in found.glob("*.md") if path.stem != INDEX) if found else frozenset()


def markdown(name: str) -> str | None:
    """The runbook of an alert, or the index; None if there is none of this name."""
    found = folder()
    if found is None or (name != INDEX and name not in names()):
        return None
    return (found / f"{name}.md").read_text("utf-8")


def rendered(source: str) -> str:
    """
    Markdown as HTML. Links from page to page lose their `.md`, and headings can be linked to as on GitHub.

    `#`-links within a page work because each heading gets its text as its id.
    """
    from markdown_it import MarkdownIt  # only where somebody reads one

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(source)
    for heading, text in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", anchor(text.content))
        for child in text.children or ():
            if child.type == "link_open" and (found := re.fullmatch(r"(\w+)\.md(#.*)?", str(child.attrs["href"]))):
                child.attrSet("href", ("./" if found[1] == INDEX else found[1]) + (found[2] or ""))
    return str(parser.renderer.render(tokens, parser.options, {}))


def anchor(heading: str) -> str:
    """The id of a heading, made as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
