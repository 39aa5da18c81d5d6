"""The boards as files: current, importable anywhere, in order, and explained."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from math import inf

import pytest
import yaml

from dashboards import BOARDS as CODE

from .files import BOARDS, FILES, FOLDER, ROOT, matchers, named, panels, parsed, selectors, targets, variables

KINDS = {"timeseries", "stat", "table", "bargauge", "text"}
UNITS = {"s", "bytes", "percentunit", "ops", "reqps", "short", "dateTimeFromNow"}
COLOURS = {"orange", "red", "blue", "transparent", "text"}
WITHOUT_TARGET = {"ALERTS", "ALERTS_FOR_STATE"}  # some alerts are about no instance
FIXED = {"15m", "1h"}  # windows of the alerts; four scrapes a minute apart fit into the shorter one
every_board = pytest.mark.parametrize("board", BOARDS)


def test_files_are_what_the_code_makes() -> None:
    """Nobody edits the JSON: `python -m dashboards` writes it, and it was run after the last change."""
    assert {f"{board.uid}.json": board.text() for board in CODE} == {
        path.name: path.read_text("utf-8") for path in FILES
    }


@every_board
def test_case_79_a_board_can_be_provisioned_anywhere(board: str) -> None:
    """It has a uid of its own and no id, and asks whatever data source is chosen, which is called nowhere (Case 79)."""
    it, text = BOARDS[board], json.dumps(BOARDS[board])
    assert it["uid"] == board
    assert len(board) <= 40
    assert "id" not in it
    assert "__inputs" not in it
    assert "${DS_" not in text
    sources = re.findall(r'"datasource": (\{[^}]*\})', text.replace("${datasource}", "$datasource"))
    assert {json.loads(source)["uid"] for source in sources} == {"$datasource"}
    asked = [*panels(board), *(each for each in it["templating"]["list"] if each["type"] == "query")]
    assert all("datasource" in each for each in [*asked, *it["annotations"]["list"]])
    assert (it["schemaVersion"], it["editable"], it["tags"]) == (41, False, ["laravel-queue"])
    assert (it["refresh"], it["graphTooltip"], it["time"]["from"]) == ("30s", 1, "now-3h")


@every_board
def test_the_variables_are_those_that_people_expect(board: str) -> None:
    """Data source, job, instance, and what the board is about; all of a choice is chosen, and kept up to date."""
    found = variables(board)
    assert list(found)[:3] == ["datasource", "job", "instance"]
    assert (found["datasource"]["type"], found["datasource"]["query"]) == ("datasource", "prometheus")
    for name, variable in list(found.items())[1:]:
        assert variable["refresh"] == 2, name
        assert variable["label"] == name
        assert variable["hide"] == 2 or (variable["multi"] and variable["includeAll"]), name
        form = r"label_values\(.+, \w+\)" if variable["hide"] == 0 else r"query_result\(.+\)"  # what is there now
        assert re.fullmatch(form, variable["query"]["query"], re.DOTALL)
        assert named(variable["query"]["query"]) <= set(list(found)[: list(found).index(name)]), "asks to the right"
    assert found["job"]["allValue"] == found["instance"]["allValue"] == ".+"
    assert found.get("queue", {}).get("allValue") in (None, ".*")  # one with the empty name has no such label


@every_board
def test_every_variable_is_used_and_no_other(board: str) -> None:
    """A choice that changes nothing, or a name that is no choice, is a mistake."""
    used = named(json.dumps({**BOARDS[board], "templating": {}}, ensure_ascii=False))
    builtin = {"__rate_interval", "__range", "__value"}
    assert used - builtin == set(variables(board))


@every_board
def test_panels_do_not_overlap_and_leave_no_hole(board: str) -> None:
    """Each row of Grafana's 24 columns is filled from the left, and the ids are unique."""
    everything = BOARDS[board]["panels"]
    assert [panel["id"] for panel in everything] == list(range(1, len(everything) + 1))
    boxes = [panel["gridPos"] for panel in everything]
    cells = [(x, y) for b in boxes for x in range(b["x"], b["x"] + b["w"]) for y in range(b["y"], b["y"] + b["h"])]
    assert len(cells) == len(set(cells))
    bottom = max(y for _, y in cells) + 1
    assert set(cells) == {(x, y) for x in range(24) for y in range(bottom)}


@every_board
def test_every_panel_explains_itself(board: str) -> None:
    """It says what it shows, what is normal and which runbook to open; each runbook is one of an alert that exists."""
    alerts = set(re.findall(r"- alert: (\w+)", (ROOT / "alerts" / "laravel-queue.alerts.yml").read_text()))
    for panel in panels(board):
        assert panel["type"] in KINDS
        assert panel["title"]
        assert " Normal: " in panel["description"], panel["title"]
        runbooks = re.findall(r"LaravelQueue\w+", panel["description"])
        assert set(runbooks) <= alerts
        assert [link["title"] for link in panel["links"]] == runbooks
        assert all(link["url"] == f"http://${{exporter:raw}}/runbooks/{link['title']}" for link in panel["links"])
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["fieldConfig"]["defaults"]["noValue"] == "–"


@every_board
def test_colours_judge_and_are_never_alone(board: str) -> None:
    """Orange and red stand for a limit of an alert. Nothing is called good by a colour. A state is a word as well."""
    text = json.dumps(BOARDS[board]["panels"])
    assert set(re.findall(r'"(?:color|fixedColor)": "([\w-]+)"', text)) <= COLOURS
    for panel in panels(board):
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert {step["color"] for step in steps} - {"orange", "red"} in ({"blue"}, {"transparent"})
        values = [-inf if step["value"] is None else step["value"] for step in steps]
        assert all(before < after for before, after in pairwise(values))
        assert steps[0]["color"] in ("blue", "transparent") or panel["type"] == "timeseries", "what nobody knows"
        mapped = [one for over in panel["fieldConfig"]["overrides"] for one in over["properties"]]
        for words in (one["value"][0]["options"] for one in mapped if one["id"] == "mappings"):
            assert all(word["text"] for word in words.values())


@every_board
def test_legends_are_tables_with_the_largest_first(board: str) -> None:
    """Who matters is on top, and no last value of a source that fell silent stands there; every series has a name."""
    for panel in panels(board):
        if panel["type"] == "timeseries":
            legend = panel["options"]["legend"]
            assert (legend["displayMode"], legend["sortBy"], legend["sortDesc"]) == ("table", "Max", True)
            assert legend["calcs"] == ["max"]
        if panel["type"] in ("timeseries", "bargauge"):
            assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]


@every_board
def test_a_number_that_stands_alone_is_of_now(board: str) -> None:
    """Only graphs ask for a span of time: the last number before a source fell silent is never shown as the present."""
    for panel in panels(board):
        over_time = panel["type"] == "timeseries"
        assert all((target["range"], target["instant"]) == (over_time, not over_time) for target in panel["targets"])


@every_board
def test_boards_lead_to_each_other_and_to_the_runbooks(board: str) -> None:
    """A link keeps the span of time and the choices; restarts and pages are drawn into every graph."""
    boards, runbooks = BOARDS[board]["links"]
    assert (boards["type"], boards["tags"]) == ("dashboards", ["laravel-queue"])
    assert boards["keepTime"]
    assert boards["includeVars"]
    assert runbooks["url"] == "http://${exporter:raw}/runbooks/"
    restarts, pages = BOARDS[board]["annotations"]["list"]
    assert restarts["useValueForTime"]
    assert "laravel_queue_restart_signal_timestamp_seconds" in restarts["expr"]
    assert 'severity="critical"' in pages["expr"]


@every_board
def test_every_selector_is_held_to_what_was_chosen(board: str) -> None:
    """Each query is valid, and each of its selectors names job and instance."""
    for target in targets(board):
        for selector in selectors(target.expr):
            expected = {"job"} if selector.name in WITHOUT_TARGET else {"job", "instance"}
            assert expected <= set(matchers(selector)), target
            if selector.name not in WITHOUT_TARGET and "laravel_queue_" not in selector.name:
                assert 'job="laravel-queue-exporter"' in str(selector), "every target has such a series"


@every_board
def test_case_80_a_rate_has_samples_at_any_scrape_interval(board: str) -> None:
    """Counters are rated over Grafana's own window or an alert's, gauges never, and the least step is set (Case 80)."""
    for target in targets(board):
        calls = [node.func.name for node in parsed(target.expr) if type(node).__name__ == "Call"]
        counters = [each.name for each in selectors(target.expr) if re.search("_(total|bucket)$", each.name)]
        assert sum(map(calls.count, ("rate", "increase"))) == len(counters), target
        assert set(re.findall(r"\[([^\]]+)\]", target.expr)) <= {"$__rate_interval", "$__range", *FIXED}, target
        rated = "$__rate_interval" in json.dumps(target.panel["targets"])
        assert target.panel.get("interval") == ("2m" if rated else None), target


def test_provisioning_reads_these_files() -> None:
    """The provider file names a folder of Grafana's; the data source file says how often Prometheus scrapes."""
    (provider,) = yaml.safe_load((FOLDER / "provisioning" / "dashboards.yml").read_text())["providers"]
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    (source,) = yaml.safe_load((FOLDER / "provisioning" / "datasources.yml").read_text())["datasources"]
    assert source["type"] == "prometheus"
    assert source["jsonData"]["timeInterval"] == "15s"
    assert "uid" not in source
