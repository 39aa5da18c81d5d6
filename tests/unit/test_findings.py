"""Limits that look at more than one series, and which of two findings is told first."""

from __future__ import annotations

from exporter.model import Limit, Metric

from .test_status import JOBS, QUEUE, findings


def test_what_wakes_somebody_up_comes_before_a_ticket() -> None:
    """However far over its limit the ticket is; what is merely close comes after both."""
    limit = Limit(100, "{value} of {bound}", "Page", page=True, soon=0.9)
    paged = Metric("laravel_queue_paged_jobs", "Jobs.", QUEUE, limit=limit)
    found = findings(JOBS(9, "x", "ticket", "expired"), paged(101, "x", "page"), paged(99, "x", "soon"))
    assert [where for where, _, _ in found] == ["x/page", "x/ticket", "x/soon"]


def test_a_limit_may_not_count_while_something_else_is_true() -> None:
    """A paused queue is not late; one that is not paused, or of which nobody knows it, is."""
    held = Metric("laravel_queue_held_up", "Held up.", QUEUE)
    limit = Limit(60, "waits {value}", "TooLong", unless=(held.name,))
    age = Metric("laravel_queue_wait_seconds", "A wait.", QUEUE, limit=limit)
    found = findings(*(age(90, "a", name) for name in "xyz"), held(1, "a", "x"), held(0, "a", "y"))
    assert [where for where, _, _ in found] == ["a/y", "a/z"]


def test_two_limits_of_one_metric_and_a_limit_of_all_its_states() -> None:
    """None alive in any state is one thing, one that is paused another; each connection is told for itself."""
    limits = (
        Limit(1, "none alive", "Inactive", total="state", below=True),
        Limit(0, "{value} paused", "Paused", where=("state", "paused")),
    )
    masters = Metric("laravel_queue_masters", "Masters.", ("connection", "state"), limit=limits)
    alive = {("down", "running"): 0, ("down", "paused"): 0, ("rests", "running"): 0, ("rests", "paused"): 2}
    found = findings(*(masters(count, *labels) for labels, count in alive.items()))
    assert sorted(found) == [("down", "none alive", True), ("rests", "2 paused", True)]
