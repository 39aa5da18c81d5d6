"""Little's law on hand-made numbers: how long a job takes, and when that is not known."""

from __future__ import annotations

import pytest

from exporter.sources.sqs.minutes import seconds_per_job
from exporter.sources.sqs.session import Counts

NOW = 1_800_000_000  # the beginning of a minute


def history(*held: int) -> list[Counts]:
    """Counts of so many messages in flight, one a minute, the last one just now."""
    began = NOW - 60 * len(held)
    return [Counts(60.0 * n, began + 60.0 * n, {}, {"mail": count}) for n, count in enumerate(held)]


def done(minutes: int, each: float) -> dict[int, float]:
    """Messages deleted in each of the last minutes."""
    return {NOW - 60 * (n + 1): each for n in range(minutes)}


def test_mean_in_flight_by_deletions_per_second() -> None:
    """Six in flight on average and two deleted a second: three seconds each."""
    assert seconds_per_job(history(*[4, 8] * 5), "mail", done(10, 120), NOW) == pytest.approx(3)


def test_only_what_both_know_counts() -> None:
    """Deletions from before the first count, and counts after the last settled minute, are left out."""
    before = done(10, 120) | {NOW - 60 * n: 9999.0 for n in range(11, 60)}
    assert seconds_per_job([*history(*[6] * 10), *history(*[6] * 10)], "mail", before, NOW) == pytest.approx(3)
    after = [*history(*[6] * 10), Counts(9999.0, NOW + 30.0, {}, {"mail": 9999})]
    assert seconds_per_job(after, "mail", before, NOW) == pytest.approx(3)


@pytest.mark.parametrize(
    ("counts", "deleted"),
    [
        ([], done(10, 120)),  # nothing was counted yet
        (history(6, 6, 6, 6), done(10, 120)),  # four minutes are too short
        (history(*[6] * 10), done(10, 0.5)),  # too few jobs
        (history(*[6] * 10), {}),
        (history(*[0] * 10), done(10, 120)),  # jobs too short to be seen in flight
    ],
)
def test_what_is_not_known(counts: list[Counts], deleted: dict[int, float]) -> None:
    """Too short a time, too few jobs, none seen: no number, rather than a wrong one."""
    assert seconds_per_job(counts, "mail", deleted, NOW) is None
    assert seconds_per_job(counts, "exports", deleted, NOW) is None
