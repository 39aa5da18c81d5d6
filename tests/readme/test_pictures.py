"""The pictures of incidents: one of each, under its name, with words for those who cannot see it."""

from __future__ import annotations

import re

from ..bundle.incidents import TOLD
from .blocks import DOCS

PAGE = DOCS / "incidents.md"


def test_every_incident_has_its_picture() -> None:
    """Each incident that can be rehearsed stands under its name, says what one sees and shows it; so does no other."""
    sections = re.split(r"^### ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    assert {section.splitlines()[0] for section in sections} == {*TOLD, "source-down"}
    for section in sections:
        name, said = section.splitlines()[0], section.splitlines()[2]
        assert len(said) > 20
        ((words, picture),) = re.findall(r"^!\[(.+)\]\((.+)\)$", section, re.MULTILINE)
        assert picture == f"pictures/overview-{name}.png"
        assert (PAGE.parent / picture).stat().st_size > 0
        assert name in words


def test_no_picture_is_left_over() -> None:
    """Each picture is shown somewhere."""
    pages = "".join(path.read_text("utf-8") for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md"))
    there = {path.name for path in (DOCS / "pictures").glob("*.png")}
    assert there == set(re.findall(r"pictures/([\w-]+\.png)", pages))
