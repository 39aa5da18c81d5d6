"""
The runbooks: a page for each alert, written in Markdown and named as the alert.

They lie beside the package in a checkout, and in it when installed. Read and rendered when
somebody asks, which is seldom; what they say is ours, so nobody needs a login for it.
"""

from __future__ import annotations

import html
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

INDEX = "README"
PLACES = (Path(__file__).with_name("pages-of-runbooks"), Path(__file__).parents[1] / "runbooks")
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>{title}</title>
<style>
body {{ max-width: 50rem; margin: 1rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }}
pre {{ padding: .75rem; overflow-x: auto; border: 1px solid color-mix(in srgb, currentColor 30%, transparent) }}
code {{ font: .9rem/1.4 ui-monospace, monospace }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
th, td {{ padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid }}
</style></head><body>
<p><a href="../">status</a> · <a href="{index}">all runbooks</a></p>
{body}</body></html>
"""


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


def page(name: str) -> str | None:
    """The same as HTML that needs nothing from elsewhere."""
    source = markdown(name)
    return None if source is None else PAGE.format(title=html.escape(name), index="./", body=rendered(source))


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
