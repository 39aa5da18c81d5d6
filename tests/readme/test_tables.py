"""The README says what the code does: its tables are made from it, and they are not stale."""

from __future__ import annotations

import pytest

from exporter.config import Config

from ..test_contract import opened
from .tables import DRIVERS, METRICS, README, given_by, metrics, settings, written


def test_the_tables_are_not_stale() -> None:
    """Who changes a metric or a setting runs `python -m tests.readme`."""
    readme = README.read_text("utf-8")
    assert written(readme) == readme, "stale: run python -m tests.readme"


def test_every_metric_has_a_row() -> None:
    """Each name once, with type and labels."""
    rows = metrics().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(dict.fromkeys(metric.name for metric in METRICS))
    assert "| `laravel_queue_source_polls_total` | counter | `source`, `collector` | " in metrics()


def test_each_metric_names_the_drivers_that_give_it() -> None:
    """What a driver's collectors and settings say is marked as its own, and nothing else is."""
    sources = {source.name: source for source in opened()}
    for driver in DRIVERS:
        source = sources[driver]
        said = {metric for collector in source.collectors for metric in collector.metrics}
        said |= {sample.metric for sample in (*source.constants, *source.joined(()).samples)}
        marked = {metric for metric in METRICS if given_by(metric) == "all" or f"`{driver}`" in given_by(metric)}
        assert said <= marked
        assert {metric.name for metric in marked - said} <= {
            "laravel_queue_worker_timeout_seconds",  # needs a pool
            "laravel_queue_oldest_job_age_seconds",  # of SQS follows from what was answered
        }
    assert "| `laravel_queue_queues` | gauge | `connection` | all | " in metrics()
    assert "| `laravel_queue_paused` | gauge | `connection`, `queue` | `database`, `redis` with `cache` | " in metrics()
    assert (
        "| `laravel_queue_failed_jobs` | gauge | `connection`, `queue` | `database`, `redis` with `horizon` | "
        in metrics()
    )
    assert "| `laravel_queue_horizon_masters` | gauge | `connection`, `state` | `redis` with `horizon` | " in metrics()
    assert "| `laravel_queue_retried_jobs` | gauge | `connection`, `queue` | `database` | " in metrics()
    assert "| `laravel_queue_attempts_max` | gauge | `connection`, `queue` | `database` | " in metrics()


@pytest.mark.parametrize(
    "row",
    [
        "| `web.listen` | `0.0.0.0:10087` | ",
        "| `clock.interval` | `64s` | ",
        "| `driver` | needed | ",
        "| `password_file` |  | ",
        "| `schema` | `public` | ",
        "| `retry_after` | `90s` | ",
        "| `discover` | `true` | ",
        "| `queues.QUEUE.connection` |  | ",
        "| `pools.POOL.application_name` |  | ",
        "| `cache.table` | `cache` | ",
    ],
)
def test_settings_have_their_paths_and_defaults(row: str) -> None:
    """As one writes them in the file."""
    assert row in settings()


def test_every_setting_says_what_it_is() -> None:
    """A setting without a description would be missing in the table."""
    assert Config.model_fields.keys() == {"web", "connections", "clock"}
    rows = [line.split(" | ") for line in settings().splitlines() if line.startswith("| `")]
    assert all(len(row) == 3 and row[2].removesuffix(" |") for row in rows)
    assert len(rows) > 30


def test_markers_are_needed() -> None:
    """Without the place for a table nothing is written."""
    with pytest.raises(ValueError, match="expected the lines <!-- status --> and <!-- /status -->"):
        written("# README\n<!-- settings -->\n<!-- /settings -->\n")
