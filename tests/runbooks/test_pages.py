"""What every runbook has, so that somebody at 3 a.m. knows where to look."""

from __future__ import annotations

import re

import pytest

from .blocks import LANGUAGES, RUNBOOKS, Page, read

NAMES = sorted(path.stem for path in RUNBOOKS.glob("*.md") if path.stem != "README")
SECTIONS = ["Meaning", "Impact", "First 60 seconds", "Diagnosis", "Mitigation", "Root cause", "Prevention"]
SECTIONS += ["Escalation", "False alarms"]
LONGEST_LINE = 160  # characters


def section(page: Page, title: str) -> str:
    """The text of one section."""
    _, _, rest = page.source.partition(f"\n## {title}\n")
    return re.split(r"\n## ", rest)[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_has_the_same_sections(name: str) -> None:
    """Its title is the alert's name, and the sections are the same, in the same order."""
    page = read(name)
    assert page.headings[0] == ("h1", name)
    assert [text for tag, text in page.headings if tag == "h2"] == SECTIONS
    first = page.source.split("\n## ")[0]
    assert re.search(r"\*\*(Page|Ticket)\.\*\*", first), "it says first whether it is worth waking up for"


@pytest.mark.parametrize("name", NAMES)
def test_first_minute_is_three_to_five_commands(name: str) -> None:
    """What is to be set, and then three to five looks, each with what it prints; nothing in there changes anything."""
    page = read(name)
    start = page.source[: page.source.index("## First 60 seconds")].count("\n")
    end = page.source[: page.source.index("## Diagnosis")].count("\n")
    blocks = [block for block in page.blocks if start < block.line <= end]
    looks = [block for block in blocks if block.note != "set"]
    assert [block.note for block in blocks].count("set") == 1
    assert 3 <= len(looks) <= 5
    assert all(block.prints for block in looks)
    assert not [block for block in looks if block.note == "cure"]


@pytest.mark.parametrize("name", NAMES)
def test_blocks_say_what_they_are(name: str) -> None:
    """Each block is run as something; one that is not run says why."""
    for block in read(name).blocks:
        assert block.language in LANGUAGES, f"{name}:{block.line}"
        assert block.note in ("", "set", "cure") or block.excused, f"{name}:{block.line}"


@pytest.mark.parametrize("name", NAMES)
def test_diagnosis_is_a_table_and_links_lead_somewhere(name: str) -> None:
    """What one sees decides where to go on, and no link ends in nothing."""
    page = read(name)
    assert section(page, "Diagnosis").count("\n|") >= 4
    for target, inside in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.source):
        assert not target or (RUNBOOKS / target).exists(), target
        if inside:
            other = read(target.removesuffix(".md")) if target else page
            assert inside in {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for _, text in other.headings}


@pytest.mark.parametrize("name", NAMES)
def test_lines_can_be_read_in_a_terminal(name: str) -> None:
    """Many read it through `curl`."""
    assert [line for line in read(name).source.splitlines() if len(line) > LONGEST_LINE and line[0] != "|"] == []
