"""Queues with unusual names, as Laravel itself writes them."""

from __future__ import annotations

import pytest

from ..world import poll, value, watched
from .laravel import Laravel

NAMES = ['a"b\\c\nd', "очередь-🚀", " spaces ", "{x} %s", "'; DROP TABLE jobs; --", "x" * 255]


@pytest.mark.parametrize("name", NAMES)
def test_queue_keeps_its_name_from_laravel_to_the_page(laravel: Laravel, name: str) -> None:
    """Cases 27 and 29: a name that Laravel's worker listens to is the same on the page, whatever is in it."""
    laravel.dispatch(name, n=2, seconds=30)
    laravel.work(name)
    (started,) = laravel.truth.wait_for("started")
    assert started.facts["queue"] == name
    with watched(laravel.dsn) as app:
        poll(app, "jobs")
        assert value(app, "jobs", queue=name, state="reserved") == 1
        assert value(app, "jobs", queue=name, state="ready") == 1
        assert value(app, "queues") == 1
