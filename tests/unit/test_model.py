"""The nouns refuse what Prometheus, or we ourselves, would misread."""

from __future__ import annotations

import pytest

from exporter.errors import REASONS, ConfigError, SourceError
from exporter.model import Metric


@pytest.mark.parametrize(
    "name", ["queue_jobs", "laravel_queue_", "laravel_queue_Jobs", "laravel_queue__jobs", "laravel_queue_jobs:rate", ""]
)
def test_a_metric_has_our_prefix_and_snake_case(name: str) -> None:
    """A name that does not look like ours is refused when the module is loaded, not when somebody scrapes."""
    with pytest.raises(ValueError, match="snake_case"):
        Metric(name, "Help.")


def test_counters_and_only_counters_end_in_total() -> None:
    """Prometheus's tools take `_total` for a counter, so the two never differ."""
    with pytest.raises(ValueError, match="_total"):
        Metric("laravel_queue_polls", "Help.", kind="counter")
    with pytest.raises(ValueError, match="_total"):
        Metric("laravel_queue_polls_total", "Help.")


def test_a_sample_has_a_value_for_every_label() -> None:
    """Too few or too many label values are a bug that is found where the sample is made."""
    metric = Metric("laravel_queue_things", "Help.", ("connection", "queue"))
    assert metric(1, "database", "default").labelled == {"connection": "database", "queue": "default"}
    for labels in [(), ("database",), ("database", "default", "ready")]:
        with pytest.raises(ValueError, match="takes texts for"):
            metric(1, *labels)


def test_values_are_floats() -> None:
    """Truth is 1, and a count is exact up to nine quadrillion."""
    metric = Metric("laravel_queue_things", "Help.")
    assert metric(True).value == 1.0
    assert isinstance(metric(True).value, float)
    assert int(metric(2**53).value) == 2**53


def test_an_error_has_a_reason_of_the_closed_set() -> None:
    """The reason becomes a label; the message does not."""
    error = SourceError("dns", "db.internal: no such name", unreachable=True)
    assert (error.reason, str(error), error.unreachable) == ("dns", "db.internal: no such name", True)
    assert not SourceError("timeout", "no answer").unreachable
    assert len(set(REASONS)) == len(REASONS)


def test_complaints_about_the_settings_stand_one_to_a_line() -> None:
    """All that is wrong is told at once."""
    error = ConfigError("web.listen: no port", "connections: is missing")
    assert str(error).splitlines() == list(error.problems) == ["web.listen: no port", "connections: is missing"]


def test_a_label_is_a_text() -> None:
    """A number or a null where a name should be is found where the sample is made, not when a page is rendered."""
    metric = Metric("laravel_queue_things", "Help.", ("queue",))
    for label in (7, None, b"default"):
        with pytest.raises(ValueError, match="takes texts for"):
            metric(1, label)  # type: ignore[arg-type]  # what a far side may hand us at run time
