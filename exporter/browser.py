"""The report and the runbooks as HTML, which needs no script and nothing from elsewhere. Jinja escapes every value."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from . import queues, runbooks
from .amounts import cell, duration, printable
from .status import Report

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

    from .findings import Finding

FOLDER = Path(__file__).with_name("html")


def status_page(report: Report) -> str:
    """What is over its limit, worst first, and then everything else; it renews itself."""
    return _template("status.html").render(
        report=report,
        headline=_headline(report),
        tone="over" if report.blind or report.over else "",
        moment=datetime.fromtimestamp(report.wall, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        states=queues.STATES,
        connections=tuple(report.connections),
        cell=cell,
        duration=duration,
        bar=_bar,
    )


def runbook_page(name: str) -> str | None:
    """A runbook, or the index; None if there is none of this name."""
    from markupsafe import Markup

    source = runbooks.markdown(name)
    body = None if source is None else Markup(runbooks.rendered(source))  # noqa: S704  # ours, and without HTML
    return body and _template("runbook.html").render(name=name, body=body)


def _headline(report: Report) -> str:
    """How bad it is, in a line that also fits a tab: what many things share is counted, and named below."""
    parts = (said.what + (said.more if said.count is None else f": {said.count}") for said in report.headline)
    line = " · ".join(parts)
    return line[:1].upper() + line[1:]


def _bar(share: float | None, finding: Finding | None) -> Markup | str:
    """A share as a bar that also says in words what its colour says, which is what the limits say of it."""
    from markupsafe import Markup

    if share is None:
        return ""
    words = f"{share:.0f} times" if share >= 2 else f"{100 * share:.0f} %"
    tone, said = ("", "") if finding is None else ("over", ", over") if finding.over else ("soon", ", near")
    bar = Markup('<span class="bar {}" style="--used: {}%">{}{}</span>')
    return bar.format(tone, round(100 * min(share, 1)), words, said)


@cache
def _template(name: str) -> Template:
    """Only where somebody looks with a browser: it takes memory."""
    from jinja2 import Environment, FileSystemLoader

    def finalize(value: object) -> object:
        """What could not be seen is spelled out, as in the terminal."""
        return printable(value) if type(value) is str else value

    environment = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, finalize=finalize)
    return environment.get_template(name)
