"""Every query of every board, asked of a real Prometheus that scrapes a real exporter of each driver."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboards import BOARDS as CODE
from dashboards.grafana import LETTERS
from tools.record import prometheus

from ..patience import until
from .files import BOARDS, filled, targets, variables
from .pages import standing
from .scene import Scene, ask, scene

PATIENCE = 90.0  # seconds until everything was polled, scraped and recorded
WINDOW = {"__rate_interval": "10s"}  # ten scrapes here
REASONED = {
    f"{board.uid}/{panel.title}/{letter}"
    for board in CODE
    for panel in board.panels
    for letter, query in zip(LETTERS, panel.queries, strict=False)
    if query.empty
}
OF_QUEUES = [board for board in BOARDS if board != "laravel-queue-exporter"]
INSTANCES = ("exporter-0", "exporter-1")
TWO_CLOCKS = 0.3  # share by which a rate may differ: the two are not scraped at the same moment
READY = re.compile(r'^(laravel_queue_jobs\{connection="database",queue="default",state="ready"\}) \S+$', re.MULTILINE)
LEAST_STEP, DEFAULT_SCRAPE = 120, 15  # seconds: of our panels; of a data source that nobody has told otherwise
SERIES = 'job="j",instance="i",connection="redis",queue="default"'


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One world for all tests in here."""
    with scene(tmp_path_factory.mktemp("prometheus")) as found:
        yield found


@pytest.mark.parametrize("board", BOARDS)
def test_every_query_finds_something(board: str, watched: Scene) -> None:
    """Prometheus takes every query, and no panel is blank in a healthy world, but for those that name the reason."""
    blank = {str(target): target.expr for target in targets(board)}

    def shorter() -> bool:
        """Ask again for what was blank; whether nothing is left that should not be."""
        for name, expr in list(blank.items()):
            if watched.ask(filled(expr, **WINDOW)):
                del blank[name]
        return set(blank) <= REASONED

    try:
        until(shorter, PATIENCE)
    except AssertionError:
        assert set(blank) - REASONED == set()


@pytest.mark.parametrize("board", BOARDS)
def test_every_choice_has_values(board: str, watched: Scene) -> None:
    """Each variable finds something to choose from, the first one given all that is to its left."""
    for name, variable in variables(board).items():
        if variable["type"] == "query":
            form = r"(?:label_values|query_result)\((.+?)(?:, (\w+))?\)"
            series, label = re.fullmatch(form, variable["query"]["query"]).groups("instance")  # type: ignore[union-attr]
            asked = f"count by ({label}) ({filled(series)})"
            found = until(lambda asked=asked: watched.ask(asked), PATIENCE)  # type: ignore[misc]
            assert all(labels for labels in found), name


@pytest.fixture(scope="module")
def twice(watched: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that scrapes two exporters with one and the same page, on which ten jobs are ready in `default`."""
    until(lambda: watched.ask('laravel_queue_jobs{connection="sqs"}'), PATIENCE)
    with urllib.request.urlopen(f"http://{watched.exporter}/metrics") as answer:
        page = READY.sub(r"\1 10.0", answer.read().decode())
    folder = tmp_path_factory.mktemp("twice")
    with standing(page, 2) as both, prometheus(folder, dict(zip(INSTANCES, both, strict=True)), 1) as address:
        for recorded in ("connection:laravel_queue_job_duration_seconds:mean30m", "up offset 15s"):
            until(lambda recorded=recorded: len(ask(address, recorded)) >= 2, PATIENCE)  # type: ignore[misc]
        yield address


@pytest.mark.parametrize("board", OF_QUEUES)
def test_case_42_two_exporters_say_the_same_as_one(board: str, twice: str) -> None:
    """Whoever watches a queue twice, for want of trust in one exporter, sees each job once (Case 42)."""
    for target in targets(board):
        both = ask(twice, filled(target.expr, **WINDOW))
        one = ask(twice, filled(target.expr, instance=INSTANCES[0], **WINDOW))
        assert set(both) == set(one), target
        for labels, value in one.items():
            assert abs(both[labels] - value) <= TWO_CLOCKS * abs(value), target


def test_case_42_the_board_says_ten_and_not_twenty(twice: str) -> None:
    """Two exporters report the same queue with ten jobs: the board says ten (Case 42)."""
    (ready,) = [
        one
        for one in targets("laravel-queue-overview")
        if (one.panel["title"], one.panel["type"]) == ("Ready jobs", "timeseries")
    ]
    found = ask(twice, filled(ready.expr))
    assert found[("connection", "database"), ("queue", "default")] == 10


def test_case_80_the_least_step_is_enough_for_a_minute_between_two_scrapes(tmp_path: Path) -> None:
    """Scraped once a minute, by a data source that nobody told of it, no graph of a rate has a hole (Case 80)."""
    samples = [
        f"laravel_queue_horizon_jobs_processed_total{{{SERIES}}} {60 * n} {1_700_000_000 + 60 * n}" for n in range(61)
    ]
    history = tmp_path / "history"
    history.write_text("# TYPE laravel_queue_horizon_jobs_processed counter\n" + "\n".join([*samples, "# EOF", ""]))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(history), str(tmp_path / "data")]
    subprocess.run(command, check=True, capture_output=True)
    (jobs_done,) = [one for one in targets("laravel-queue-redis") if one.panel["title"] == "Jobs done"]
    window = f"{LEAST_STEP + DEFAULT_SCRAPE}s"  # as Grafana computes it
    with prometheus(tmp_path, {}, 1) as address:
        until(lambda: ask(address, "vector(1)"), PATIENCE)
        for at in range(1_700_000_300, 1_700_003_600, LEAST_STEP):
            rate = ask(address, filled(jobs_done.expr.replace("]", f"] @ {at}"), __rate_interval=window))
            assert rate, at
