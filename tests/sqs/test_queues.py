"""What is said of queues."""

from __future__ import annotations

from ..world import poll, value
from .cloud import World
from .watching import watch


def test_states_are_told_apart(world: World) -> None:
    """Case 63: visible, in flight and delayed messages are ready, reserved and delayed."""
    url = world.queue("mail", 5)
    world.receive(url)
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        print(app.exposition.page("text").decode())
        assert value(app, "jobs", queue="mail", state="ready") == 4
