"""The report in plain text, for a terminal: worst first, sixty to eighty columns wide, no colour needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

from . import queues
from .amounts import cell, duration, printable
from .status import Report

WIDEST = 40  # characters of a name that still has its line to share with numbers

Row = tuple[str, ...]


def text(report: Report) -> str:
    """The report as lines, as wide as its names are."""
    sections = [([tuple(map(printable, row)) for row in rows(report)], align) for rows, align in SECTIONS]
    heads = [row[0] for rows, _ in sections for row in rows if len(row) > 1]
    width = max((len(head) for head in heads if len(head) <= WIDEST), default=0)
    return "".join(f"{line}\n" for rows, align in sections for line in lined_up(rows, width, align))


def lined_up(rows: list[Row], width: int, align: Callable[[str, int], str]) -> Iterator[str]:
    """The rows as lines, each column under its head; a name that is too long for it stands on a line of its own."""
    widths = [max(map(len, column)) for column in zip_longest(*(row[1:] for row in rows), fillvalue="")]
    for head, *cells in rows:
        fits = not cells or len(head) <= width
        if not fits:
            yield head
        padded = (f"  {align(cell, most)}" for cell, most in zip(cells, widths, strict=False))
        yield f"{head if fits else '':<{width}}{''.join(padded)}".rstrip()


def over_limit(report: Report) -> Iterator[Row]:
    """What nobody can know, what is over its limit, what is close to it; who is woken up by it is told last."""
    for said in report.headline:
        yield (f"{said.what.upper()}{said.more}",)
    for finding in report.findings:
        yield f"  {finding.where}", finding.says, finding.alert, finding.weight if finding.weight == "page" else ""


def queue_table(report: Report) -> Iterator[Row]:
    """A line for each queue."""
    yield "QUEUES", *queues.STATES, "oldest", "target"
    for queue in report.queues:
        yield f"  {queue.where}", *map(cell, queue.jobs), cell(queue.age, duration), cell(queue.target, duration)


def worker_table(report: Report) -> Iterator[Row]:
    """A line for each pool of workers; of what only some of them can tell, a column if any does."""
    if report.workers.rows:
        yield "WORKERS", *report.workers.columns
    for where, values in report.workers.rows:
        yield f"  {where}", *map(cell, values)


def connections(report: Report) -> Iterator[Row]:
    """A line for each database."""
    head, databases = "CONNECTIONS", list(report.connections)
    for each in databases:
        split = ", ".join(f"{pool} {count:.0f}" for pool, count in each.pools)
        where = f"{each.where}: " if len(databases) > 1 else ""
        yield head, f"{where}{each.used:.0f} of {each.available:.0f} ({100 * each.ratio:.0f} %), {split}"
        head = ""


def sources(report: Report) -> Iterator[Row]:
    """When each source answered last, and a line for everything that is wrong with one or hidden from us."""
    answers = list(report.answers)
    ages = ("no answer" if each.age is None else f"{duration(each.age)} ago" for each in answers)
    yield "SOURCES", " · ".join(f"{each.where} {age}" for each, age in zip(answers, ages, strict=True))
    for each in answers:
        yield from ((f"  {where}", trouble) for where, trouble in each.troubles)


SECTIONS: tuple[tuple[Callable[[Report], Iterator[Row]], Callable[[str, int], str]], ...] = (
    (over_limit, str.ljust),
    (queue_table, str.rjust),
    (worker_table, str.rjust),
    (connections, str.ljust),
    (sources, str.ljust),
)
