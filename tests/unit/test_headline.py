"""The headline of the report: one for terminal and browser, and it says both what is blind and what is over."""

from __future__ import annotations

import re

from exporter.board import Board, Key, State
from exporter.browser import status_page
from exporter.findings import path
from exporter.model import Limit, Metric
from exporter.status import Report, Verdict, report
from exporter.terminal import text

from ..world import HandClock
from .reports import board, reported
from .test_status import JOBS, QUEUE, USE

PAGED = Metric("laravel_queue_paging_jobs", "Jobs.", QUEUE, limit=Limit(100, "{value} of {bound}", "Page", page=True))
SILENT = State(15, 15, polls=2, streak=2, reason="timeout", error="no answer")


def heading(found: Report) -> tuple[str, str]:
    """The browser's heading, and how it looks."""
    said = re.search(r"<h1(?: class=\"(\w+)\")?>(.*)</h1>", status_page(found))
    assert said
    assert f"<title>{said[2]} · Laravel queues</title>" in status_page(found)
    return said[2], said[1] or ""


def first_lines(found: Report) -> list[str]:
    """What stands in capitals at the top of the terminal's page."""
    return [line for line in text(found).partition("QUEUES")[0].splitlines() if not line.startswith(" ")]


def beside(made: Board, hand: HandClock, **states: State) -> Report:
    """The report on a board with more sources, named as their collectors are with a `_` between."""
    made.publish({Key(*name.split("_")): state for name, state in states.items()})
    return report(made, clock=hand.clock)


def test_how_many_are_over_their_limits() -> None:
    """The number is in the browser's tab; the terminal shows them all below."""
    found = reported(USE(0.9, "database"), JOBS(1, "database", "default", "expired"), USE(0.75, "another"))
    assert heading(found) == ("Over its limit: 2", "over")
    assert first_lines(found) == ["OVER ITS LIMIT"]
    near = reported(USE(0.75, "another"))
    assert heading(near) == ("Close to its limit: 1", "")
    assert first_lines(near) == ["CLOSE TO ITS LIMIT"]


def test_who_is_blind_hides_nothing_that_is_over_its_limit() -> None:
    """One source of two is silent: what is known of the other one is in the headline as well."""
    hand = HandClock()
    found = beside(board(USE(0.9, "database"), hand=hand), hand, Orders_jobs=SILENT, mail_queues=SILENT)
    assert heading(found) == ("Blind: 2 · over its limit: 1", "over")
    assert first_lines(found) == ["BLIND: nothing may be shown of Orders/jobs, mail/queues", "OVER ITS LIMIT"]
    assert found.verdict is Verdict.BLIND


def test_a_silent_clock_makes_nobody_blind() -> None:
    """The jobs are seen, so the headline is about them; that the clock is silent is told, and not called fine."""
    hand = HandClock()
    late = beside(board(USE(0.9, "database"), hand=hand), hand, clock_ntp=SILENT)
    assert heading(late) == ("Over its limit: 1", "over")
    assert first_lines(late) == ["OVER ITS LIMIT"]
    well = beside(board(hand=hand), hand, clock_ntp=SILENT)
    assert heading(well) == ("Nothing is over its limit (but clock/ntp has no answer)", "")
    assert first_lines(well) == ["NOTHING IS OVER ITS LIMIT (but clock/ntp has no answer)"]
    for found in (late, well):
        assert "timeout: no answer; nothing of it is shown" in text(found).partition("SOURCES")[2]
        assert found.blind == ()
        assert found.verdict is Verdict.BLIND  # a source is silent: the contract of the exit status


def test_a_name_is_written_as_it_is() -> None:
    """Capitals are for our words alone, and small letters, too."""
    hand = HandClock()
    found = beside(
        board(hand=hand),
        hand,
        MyRedis_queues=State(15, 15, doubted=True, polls=1, taken_at=hand.wall, good_until=hand.mono + 50),
    )
    assert heading(found) == ("Nothing is over its limit (but what does MyRedis/queues look at?)", "")
    assert first_lines(found) == ["NOTHING IS OVER ITS LIMIT (but what does MyRedis/queues look at?)"]


def test_one_sees_what_wakes_somebody_up() -> None:
    """A page is called so, by terminal and browser; what is merely over or near its limit is not."""
    found = reported(PAGED(101, "x", "page"), JOBS(1, "x", "ticket", "expired"), USE(0.75, "x"), runbooks=("Page",))
    column = re.findall(r'</td>\n<td class="(\w+)">(\w+)</td>', status_page(found))
    assert column == [("over", "page"), ("over", "over"), ("soon", "near")]
    rows = [line.split() for line in text(found).splitlines()[1:4]]
    assert rows[0] == ["x/page", "101", "of", "100", "Page", "page"]
    assert [row[-1] for row in rows[1:]] == ["expired", "(soon)"]


def test_another_drivers_workers_are_shown_without_an_edit() -> None:
    """A metric says which column of the table it is; what nobody knows of a pool is a dash, not a zero."""
    robots = Metric("laravel_queue_robots", "Robots.", ("connection", "hall"), column="now")
    tired = Metric("laravel_queue_tired_robots", "Tired ones.", ("connection", "hall"), column="outdated")
    found = reported(robots(3, "x", "east"), robots(4, "x", "west"), tired(1, "x", "west"))
    assert found.workers.columns == ("now", "outdated")
    assert found.workers.rows == ((path(("x", "east")), (3, None)), (path(("x", "west")), (4, 1)))
    assert [line.split() for line in text(found).splitlines() if "x/" in line] == [
        ["x/east", "3", "-"],
        ["x/west", "4", "1"],
    ]
    assert re.findall(r'<td class="number">([\d-])</td>', status_page(found)) == ["3", "-", "4", "1"]
