"""The table of the drills, as the README has it."""

from __future__ import annotations

import json
from pathlib import Path

from ..readme.tables import table
from .conducted import Outcome
from .drills import DRILLS, NOT_DRILLED

HEAD = ("incident", "brought about in", "alert", "fired after", "other alerts", "the status page", "after its runbook")


def rows(folder: Path) -> dict[str, Outcome]:
    """What the drills left there, in their order."""
    left = {name: folder / f"{name}.json" for name in DRILLS}
    return {name: Outcome(**json.loads(file.read_text("utf-8"))) for name, file in left.items() if file.exists()}


def drawn(outcomes: dict[str, Outcome]) -> str:
    """A row for each incident, also for one that is not drilled."""
    done = [row(outcome) for outcome in outcomes.values()]
    return table(HEAD, *done, *((f"`{name}`", f"not drilled: {why}", *[""] * 5) for name, why in NOT_DRILLED.items()))


def row(outcome: Outcome) -> tuple[str, ...]:
    """One drill."""
    ended = outcome.incurable if outcome.resolved is None else f"resolved in {outcome.resolved:.0f} s"
    return (
        f"`{outcome.incident}`",
        outcome.where,
        f"`{outcome.alert}`",
        f"{outcome.fired:.0f} s of {outcome.limit:.0f}",
        "; ".join(filter(None, (listed(outcome.others), listed(outcome.hidden, "held back: ")))),
        outcome.agreed,
        ended,
    )


def listed(names: tuple[str, ...], what: str = "") -> str:
    """Alerts by name; nothing if there are none."""
    return what + ", ".join(f"`{name}`" for name in names) if names else ""
