"""The far sides as fixtures: each source in turn, opened in the mood that a test asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from .far_sides import FAR_SIDES, FarSide, Mood, Opened

OpenIn = Callable[[Mood], Opened]


@pytest.fixture(params=FAR_SIDES)
def far_side(request: pytest.FixtureRequest) -> FarSide:
    """Each source in turn."""
    return FAR_SIDES[request.param]


@pytest.fixture
def open_in(far_side: FarSide, request: pytest.FixtureRequest) -> Iterator[OpenIn]:
    """Opens the source with its far side in some mood; everything is closed at the end."""
    with ExitStack() as stack:

        def open_in(mood: Mood) -> Opened:
            opened = far_side.open(mood, request, stack)
            stack.callback(opened.source.close)
            return opened

        yield open_in


@pytest.fixture
def well(open_in: OpenIn) -> Opened:
    """The source, with its far side there, well and empty."""
    return open_in("well")
