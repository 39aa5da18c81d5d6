"""A runbook followed from top to bottom, as somebody would who has no idea."""

from __future__ import annotations

import re
from dataclasses import replace

from ..patience import until
from .blocks import Block, Page, missing
from .stage import Stage

NOTED = re.compile(r"^ *(pid|id) +\|.*\n[-+]+\n *(\d+) ", re.MULTILINE)  # a table's first row
ENDING = 60.0  # seconds until the status page shows that a cure helped


def follow(page: Page, stage: Stage) -> set[str]:
    """
    Run every block that is not excused; whoever looks once more after a moment sees what was promised.

    The reader notes the `pid` or `id` at the top of what was printed last, for the step that asks for it.
    If the status page named the alert before, a page with a cure must end that. Returns the promises that were kept.
    """
    variables = page.variables()
    assert variables <= set(stage.variables), f"{page.name}: nobody knows {variables - set(stage.variables)}"
    told = page.name in stage.page
    kept, noted = set[str](), dict[str, str]()
    for block in page.blocks:
        if block.note != "set" and not block.excused:
            last = _run(page, block, replace(stage, variables={**stage.variables, **noted}))
            noted |= {name.upper(): number for name, number in NOTED.findall(last)}
            kept |= {promised for promised in block.prints if not missing((promised,), last)}
    if told and any(block.note == "cure" for block in page.blocks):
        until(lambda: page.name not in stage.page, ENDING)
    return kept


def _run(page: Page, block: Block, stage: Stage) -> str:
    where = f"runbooks/{page.name}.md:{block.line}"
    last = ""

    def printed() -> bool:
        nonlocal last
        status, last = stage.run(block, page.variables())
        assert status == 0, f"{where}: exit status {status}\n{last}"
        return not missing(block.prints, last)

    try:
        until(printed, ENDING)
    except AssertionError as error:
        raise AssertionError(f"{where}: not printed: {missing(block.prints, last)}\nbut\n{last}\n{error}") from None
    return last
