"""The status page in a real browser: Debian's Chromium, and w3m in a terminal."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from exporter.board import Key, State
from exporter.exposition import Exposition
from exporter.model import Sample
from exporter.pages import Pages
from exporter.queues import JOBS, OLDEST_JOB_AGE, STATES, TARGET_WAIT
from exporter.server import Server
from exporter.sources.database.metrics import CONNECTIONS, CONNECTIONS_MAX, CONNECTIONS_RESERVED, USAGE
from exporter.web import Gate

from .conftest import HOSTILE
from .serving import JOBS as KEY
from .serving import board, serving

FLAGS = (
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
READABLE = 5.0  # contrast of text; WCAG 2.2, 1.4.3 asks for 4.5
SOON = 0.02  # seconds


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser."""
    program = shutil.which("chromium")
    assert program, "Debian's chromium is missing: `make services` installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


def queue(name: str, age: float, target: float | None = 60, ready: float = 3) -> list[Sample]:
    """All that is known of a queue."""
    known = [JOBS(ready if state == "ready" else 0, "database", name, state) for state in STATES]
    known.append(OLDEST_JOB_AGE(age, "database", name))
    return known if target is None else [*known, TARGET_WAIT(target, "database", name)]


INCIDENT = [
    *queue("default", 1500, ready=19_836),
    *queue("emails", 30),
    *queue("reports", 0, None),
    CONNECTIONS(33, "database", "default", "active"),
    CONNECTIONS_MAX(40, "database"),
    CONNECTIONS_RESERVED(3, "database"),
    USAGE(0.89, "database"),
    USAGE(0.75, "reports"),
]


@pytest.fixture(scope="module")
def incident() -> Iterator[Server]:
    """A queue that is late, connections over their limit and others close to it, and all is said."""
    with serving(board(INCIDENT)) as running:
        yield running


class Seen(NamedTuple):
    """What a browser did while it showed a page."""

    asked: list[str]  # every address
    wrong: list[str]  # dialogs, and what its console says: of scripts, and of what the page's policy forbids


def visit(browser: Browser, server: Server, path: str = "", **how: object) -> tuple[Page, Seen]:
    """The page as this browser shows it, watched from before it is loaded."""
    page, seen = browser.new_page(**how), Seen([], [])  # type: ignore[arg-type]

    def dismiss(dialog: Dialog) -> None:
        seen.wrong.append(dialog.message)
        dialog.dismiss()

    page.on("request", lambda request: seen.asked.append(request.url))
    page.on("console", lambda message: seen.wrong.append(message.text))
    page.on("pageerror", lambda error: seen.wrong.append(str(error)))
    page.on("dialog", dismiss)
    page.goto(f"http://127.0.0.1:{server.port}/{path}")
    return page, seen


def test_the_worst_is_read_first(chromium: Browser, incident: Server) -> None:
    """The heading says how bad it is, then comes what is over its limit, then the late queue with its bar."""
    page, _ = visit(chromium, incident)
    assert page.inner_text("h1") == "Over its limit: 2"
    assert page.title() == "Over its limit: 2 · Laravel queues"
    assert [heading.inner_text() for heading in page.query_selector_all("h2")][:2] == [
        "Limits, the worst first",
        "Queues, the longest wait first",
    ]
    first = page.query_selector_all("#limits ~ div tbody tr")[0].inner_text()
    assert re.match(r"database/default\s+oldest job 25m, target 1m\s+page", first)
    bars = [bar.inner_text() for bar in page.query_selector_all(".bar")]
    assert bars == ["25 times, over", "50 %", "89 %, over", "75 %, near"]
    page.close()


def test_it_needs_nothing_from_elsewhere(chromium: Browser, incident: Server) -> None:
    """No script, no style, no font, no picture: one request, which also works where there is no internet."""
    page, seen = visit(chromium, incident, java_script_enabled=False)
    assert seen == Seen([f"http://127.0.0.1:{incident.port}/"], [])
    assert page.query_selector_all("script, link[rel=stylesheet], img, iframe") == []
    page.close()


def test_hostile_names_are_shown_and_do_nothing(chromium: Browser) -> None:
    """A queue may be called like a script, and a pool like a link: they are text."""
    hostile = [*queue(HOSTILE, 90), *queue('"><a href="javascript:alert(1)">x</a>', 90)]
    with serving(board(hostile)) as server:
        page, seen = visit(chromium, server)
        assert "<script>alert" in page.inner_text("body")
        assert page.query_selector_all("script, a[href^=javascript]") == []
        assert seen.wrong == []
        page.close()


def test_a_source_that_dies_while_somebody_looks(chromium: Browser) -> None:
    """The page renews itself: the numbers are gone, what has died is named, and the heading says that we are blind."""
    shown = board(INCIDENT)
    with serving(shown) as server:
        page, seen = visit(chromium, server)
        assert "19,836" in page.inner_text("body")
        dead = State(15, 15, polls=3, streak=2, reason="refused", error="connection refused")
        shown.publish({KEY: dead})
        page.wait_for_selector("h1:text('Blind: 1')", timeout=60_000)  # the page's own pace is 15 s
        text = page.inner_text("body")
        assert "19,836" not in text
        assert "nothing may be shown of database/jobs" in text
        assert "refused: connection refused" in text
        assert seen.wrong == []
        page.close()


COLOURS = """() => [...document.querySelectorAll('h1, h2, h3, th, td, a, p, li, code, .bar')].flatMap(element => {
    const style = getComputedStyle(element), filled = style.backgroundImage.match(/rgb\\([^)]*\\)/)
    let ground = element
    while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') ground = ground.parentElement
    const behind = [getComputedStyle(ground).backgroundColor, ...(filled ? [filled[0]] : [])]
    return behind.map(colour => [style.color, colour])
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("path", "colours"), [("", 8), ("runbooks/LaravelQueueWaitTooLong", 4)])
def test_every_text_can_be_read(chromium: Browser, incident: Server, scheme: str, path: str, colours: int) -> None:
    """Light or dark, the contrast of each text with what lies behind it is enough, on a bar and in code."""
    page, seen = visit(chromium, incident, path, color_scheme=scheme)
    pairs = {tuple(pair) for pair in page.evaluate(COLOURS)}
    assert {pair: round(contrast(*pair), 1) for pair in pairs if contrast(*pair) < READABLE} == {}
    assert len(pairs) >= colours
    assert seen.wrong == []
    page.close()


def contrast(*colours: str) -> float:
    """The contrast of two colours, as WCAG defines it: 1 to 21."""
    lights = []
    for colour in colours:
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_on_a_phone(chromium: Browser, incident: Server) -> None:
    """The page itself is as wide as the phone; a table that is wider moves in its own frame."""
    page, _ = visit(chromium, incident, viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bar = page.query_selector(".bar")
    assert bar
    box = bar.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 390
    page.close()


def test_in_a_terminal_browser(incident: Server) -> None:
    """w3m shows the same story in the same order, and each bar in words."""
    shown = subprocess.run(
        ["w3m", "-dump", "-cols", "120", "-o", "accept_encoding=identity", f"http://127.0.0.1:{incident.port}/"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.search(r"Over its limit: 2.*oldest job 25m.*25 times, over.*database\s+33 of 37", shown, re.DOTALL)


def test_two_hundred_queues(chromium: Browser) -> None:
    """All are there, the latest first."""
    many = [sample for number in range(200) for sample in queue(f"queue-{number}", number)]
    with serving(board(many)) as server:
        page, _ = visit(chromium, server)
        rows = page.query_selector_all("#queues ~ div tbody tr")
        assert rows[0].inner_text().startswith("database/queue-199")
        assert page.inner_text("body").count("database/queue-") >= 200
        page.close()


def test_the_page_costs_twenty_milliseconds_with_two_hundred_queues() -> None:
    """The answer as a browser gets it, packed: the processor's time, as a busy machine's clock says nothing of it."""
    shown = board([sample for number in range(200) for sample in queue(f"queue-{number}", number)])
    hanging = {
        Key(f"source-{n}", "jobs"): State(15, 15, polls=9, streak=9, reason="timeout", error="…") for n in range(20)
    }
    for made in (shown, board()):
        made.publish(hanging)
        pages = Pages(made, Exposition(made), Gate({}))
        asking = {"accept": "text/html", "accept-encoding": "gzip"}
        pages.answer("/", asking)  # the template is compiled once

        def spent() -> float:
            began = time.process_time()
            pages.answer("/", asking)  # noqa: B023  # called at once
            return time.process_time() - began

        assert min(spent() for _ in range(7)) < SOON
