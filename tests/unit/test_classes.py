"""Which job classes are shown under their own names."""

from __future__ import annotations

from exporter.queues import OTHER
from exporter.sources.classes import MOST, JobClasses


def test_a_hundred_classes_are_shown() -> None:
    """Case 77: of 10,000 classes the first hundred keep their names for ever, whatever comes after them."""
    classes = JobClasses()
    names = [f"App\\Jobs\\Job{number}" for number in range(10_000)]
    for _ in range(2):
        shown = [classes.shown(name) for name in names]
        assert shown == names[:MOST] + [OTHER] * (10_000 - MOST)


def test_what_has_no_class_is_other() -> None:
    """A job that does not say its class is counted under `other`, and takes up nobody's place."""
    classes = JobClasses(most=1)
    assert [classes.shown(None) for _ in range(3)] == [OTHER] * 3
    assert classes.shown("App\\Jobs\\SendInvoice") == "App\\Jobs\\SendInvoice"


def test_a_class_called_other_takes_up_no_place() -> None:
    """A class whose own name is `other` is shown together with the rest."""
    classes = JobClasses(most=1)
    assert classes.shown(OTHER) == OTHER
    assert classes.shown("App\\Jobs\\SendInvoice") == "App\\Jobs\\SendInvoice"
