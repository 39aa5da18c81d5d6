"""The blocks of the runbooks about PostgreSQL, run in the incident that each page is for."""

from __future__ import annotations

import pytest

from .blocks import read
from .conftest import Staged
from .followed import follow

PAGES = {  # the incident in which each page's commands are run; those of one incident stand together
    "LaravelQueueXminHeld": "bloat",
}


@pytest.mark.parametrize("name", PAGES)
def test_page_can_be_followed(staged: Staged, name: str) -> None:
    """Every command runs, prints what the page promises, and the cure ends the incident."""
    follow(read(name), staged(PAGES[name]))
