"""What a board could hide, or say of the wrong thing: asked of a real Prometheus over pages made for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exporter.demo.daemon import free_port
from tools.record import prometheus

from ..patience import until
from .files import filled, targets
from .pages import standing
from .scene import Answer, ask

INFO = 'laravel_queue_exporter_build_info{version="1"} 1\n'
SEEN, BLIND = (INFO + f'laravel_queue_source_fresh{{source="database",collector="jobs"}} {fresh}\n' for fresh in (1, 0))
AGE, TARGET, PAUSED, READY = (
    f"laravel_queue_{name}" for name in ("oldest_job_age_seconds", "target_wait_seconds", "paused", "jobs")
)
QUEUES = [f"queue-{number:02}" for number in range(12)]
OTHERS = """\
  - job_name: node
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def series(name: str, queue: str, value: float, more: str = "") -> str:
    """A line of a page."""
    return f'{name}{{connection="database",queue="{queue}"{more}}} {value:g}\n'


MANY = (
    SEEN
    + "".join(
        series(AGE, queue, 10 * number)
        + series(TARGET, queue, 60)
        + series(PAUSED, queue, queue == QUEUES[-1])
        + series(READY, queue, number, ',state="ready"')
        for number, queue in enumerate(QUEUES)
    )
    + series(READY, "", 99, ',state="ready"')
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Scrapes an exporter that sees the database, one that does not, one that is gone, and a dead target of others."""
    folder = tmp_path_factory.mktemp("prometheus")
    with standing(MANY, 1) as (seeing,), standing(BLIND, 1) as (blind,):
        exporters = {"seeing": seeing, "blind": blind, "gone": f"127.0.0.1:{free_port()}"}
        with prometheus(folder, exporters, 1, OTHERS.format(port=free_port())) as found:
            until(lambda: len(ask(found, "up")) == 4 and ask(found, AGE))
            yield found


def asked(address: str, board: str, title: str, **chosen: str) -> Answer:
    """What the first query of a panel finds."""
    (target,) = [one for one in targets(board) if (one.panel["title"], one.letter) == (title, "A")][:1]
    return ask(address, filled(target.expr, __range="1h", **chosen))


@pytest.mark.parametrize(("instance", "number"), [(".+", 2), ("seeing", 0), ("blind", 1), ("gone", 1)])
def test_who_sees_hides_nobody_who_is_blind(address: str, instance: str, number: int) -> None:
    """Who sees a database of the same name, in another environment say, lends nobody its eyes."""
    assert asked(address, "laravel-queue-overview", "Blind sources", instance=instance) == {(): number}


def test_targets_of_others_are_no_exporters(address: str) -> None:
    """In the same Prometheus a machine is down that has nothing to do with us."""
    assert asked(address, "laravel-queue-exporter", "Exporters down") == {(): 1}
    assert len(asked(address, "laravel-queue-exporter", "A scrape")) == 3


def test_links_lead_to_an_exporter_that_answers(address: str) -> None:
    """Of those that may be chosen, none is gone."""
    links = ask(address, filled('laravel_queue_exporter_build_info{job=~"$job", instance=~"$instance"}'))
    assert {dict(labels)["instance"] for labels in links} == {"seeing", "blind"}


def test_a_paused_queue_may_wait(address: str) -> None:
    """Of five queues that wait for longer than they may, one is paused: neither the number nor the bars count it."""
    assert asked(address, "laravel-queue-overview", "Queues too late") == {(): 4}
    bars = asked(address, "laravel-queue-overview", "Wait, as a share of what is allowed")
    assert {dict(labels)["queue"] for labels in bars} == set(QUEUES[:-1])


def test_a_graph_has_the_ten_worst(address: str) -> None:
    """More lines nobody can read. A queue whose name is empty is one of them: it has no such label."""
    (graph,) = [
        one
        for one in targets("laravel-queue-overview")
        if (one.panel["title"], one.panel["type"], one.letter) == ("Ready jobs", "timeseries", "A")
    ]
    found = ask(address, filled(graph.expr, __range="1h", queue=".*"))
    assert {dict(labels).get("queue", "") for labels in found} == {"", *QUEUES[3:]}
