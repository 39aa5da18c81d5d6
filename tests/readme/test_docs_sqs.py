"""What the documents say of the numbers of SQS and ECS is what the code does."""

from __future__ import annotations

from exporter.sources.sqs import cloudwatch, ecs, minutes
from exporter.sources.sqs.aws import MOST_LEFT_BEHIND
from exporter.timing import BELIEF

from .blocks import README


def document(name: str) -> str:
    """A document beside the README, its lines joined."""
    return " ".join((README.parent / name).read_text("utf-8").split())


def test_why_it_shows_what_it_shows() -> None:
    """Each bound that it names is the one that is kept."""
    text = document("docs/why-it-shows-what-it-shows.md").partition("## SQS and ECS")[2].partition("## What")[0]
    assert cloudwatch.AGE_SHOWN == 3 * 60
    assert "until three minutes after the end of that minute" in text
    assert cloudwatch.LONGEST_GAP == 3 * 3600
    assert "over failures of up to three hours" in text
    assert f"over the last {minutes.WINDOW / 60:.0f} minutes" in text
    shortest = f"{minutes.SHORTEST / 60:.0f} minutes, {minutes.FEWEST_COUNTS} counts and {minutes.FEWEST_JOBS} deleted"
    assert shortest in text
    assert minutes.SETTLED == 2 * 60
    assert f"believed for {BELIEF:g} intervals of `cloudwatch`" in text
    assert ecs.IDLE_POLLS == 3
    assert "the smallest of three polls in a row" in text


def test_contributing() -> None:
    """How many requests without an end there may be."""
    assert f"At most {MOST_LEFT_BEHIND} are left behind." in document("CONTRIBUTING.md")


def test_the_page_on_sqs_says_over_how_long_a_job_is_measured() -> None:
    """The same quarter of an hour."""
    assert f"over the last {minutes.WINDOW / 60:.0f} minutes" in document("docs/sqs.md")
