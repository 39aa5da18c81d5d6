"""One drill: an incident is brought about, told, and ended as its runbook says."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from exporter.demo.postgres import Postgres

from ..bundle.incidents import TOLD
from ..patience import until
from ..runbooks.blocks import Page, read
from ..runbooks.followed import follow
from ..runbooks.stage import Stage
from .receiver import PAGER, PREFIX
from .shortened import SLACK, fires_within, longest_wait, resolves_within
from .watching import LOOK, Watch, watched

FIRST = "First 60 seconds"
PATIENCE = 240.0  # seconds that one block may take: there is more to clear away than while the page is tested


@dataclass(frozen=True, slots=True)
class Drill:
    """How an incident is brought about here, and what then is to be seen."""

    alert: str  # the one that has to fire, without the prefix
    where: str  # it is brought about
    stage: Callable[[Postgres], AbstractContextManager[Stage]]
    shown: str = ""  # a pattern of what the status page says where none of its limits is this alert's
    unseen: str = ""  # why the status page says nothing at all
    grows: float = 0.0  # seconds until there is anything to be seen, as Laravel or the world has it
    cure: Callable[[Page], Page] | None = None  # the part of the runbook that ends it; None: see `incurable`
    incurable: str = ""  # why nothing is done about it here


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of the table; seconds are FACTOR times as short as in life."""

    incident: str
    alert: str
    where: str
    fired: float
    limit: float
    others: tuple[str, ...]  # further alerts that fired
    hidden: tuple[str, ...]  # that fired, and of which nobody was told
    agreed: str  # what the status page says
    resolved: float | None  # seconds from the cure on
    incurable: str


def cures(page: Page) -> Page:
    """Only what ends the incident, and the looks that it takes a number from; their promises are tested elsewhere."""
    asks = any(re.search(r"\$\{P?ID\b", block.source) for block in page.blocks if block.note == "cure")
    kept = {"set", "cure", ""} if asks else {"set", "cure"}
    return replace(
        page,
        blocks=tuple(block if block.note else replace(block, prints=()) for block in page.blocks if block.note in kept),
    )


def under(*headings: str) -> Callable[[Page], Page]:
    """The cures below these headings."""
    return lambda page: cures(
        replace(page, blocks=tuple(b for b in page.blocks if b.note == "set" or b.under in (FIRST, *headings)))
    )


def conduct(incident: str, drill: Drill, postgres: Postgres) -> Outcome:
    """Bring it about, and hold the alerts and the status page to what they promise."""
    with drill.stage(postgres) as stage, watched(stage) as watch:
        limit = drill.grows + fires_within(drill.alert, watch.poll) + SLACK
        until(lambda: watch.firing(drill.alert), limit, LOOK, lambda: f"{incident}: {watch.state}")
        fired = time.monotonic() - watch.began
        agreed = "" if drill.unseen else until(lambda: said(drill, stage.page), SLACK, LOOK)
        until(lambda: told(watch, incident, drill.alert), longest_wait() + SLACK, LOOK)
        resolved = ended(drill, stage, watch) if drill.cure else None
        pages = set(watch.receiver.told[PAGER])
        assert pages <= {*TOLD[incident].by, *TOLD[incident].with_}, f"{incident} pages for {pages}"
        all_fired, held = watch.fired(), watch.hidden - watch.receiver.alerts
        return Outcome(
            incident,
            drill.alert,
            drill.where,
            fired,
            limit,
            tuple(sorted(all_fired - held - {drill.alert})),
            tuple(sorted(all_fired & held)),
            agreed or drill.unseen,
            resolved,
            drill.incurable,
        )


def said(drill: Drill, page: str) -> str:
    """What the status page says of it: that it names the alert, or in other words what is so."""
    if f"{PREFIX}{drill.alert}" in page:
        return "names it"
    found = re.search(drill.shown, page) if drill.shown else None
    return f"says “{' '.join(found[0].split())}”" if found else ""


def told(watch: Watch, incident: str, alert: str) -> bool:
    """Whether somebody was told: by an alert that is meant for it, or by one behind which that is held back."""
    watch.firing(alert)
    meant, informed = TOLD[incident], watch.receiver.alerts
    return not informed.isdisjoint(meant.by) or (alert in watch.hidden and not informed.isdisjoint(meant.with_))


def ended(drill: Drill, stage: Stage, watch: Watch) -> float:
    """Do what the runbook says; seconds until the alert does not fire any more."""
    assert drill.cure
    page = drill.cure(read(f"{PREFIX}{drill.alert}"))
    assert any(block.note == "cure" for block in page.blocks), page.name
    follow(page, replace(stage, patience=PATIENCE))
    cured = time.monotonic()
    until(lambda: not watch.firing(drill.alert), resolves_within(drill.alert, watch.poll) + SLACK, LOOK)
    return time.monotonic() - cured
