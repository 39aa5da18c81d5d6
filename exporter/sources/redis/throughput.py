"""
Jobs that Horizon has seen through, as a counter. Arithmetic only.

For each queue Horizon keeps a hash of what was done since its last snapshot. A snapshot takes the
hash away, and puts what was in it into a sorted set, a moment later.
"""

from __future__ import annotations

from typing import NamedTuple

FRESH = 900  # seconds for which the mean of a snapshot is one of now; Horizon takes one every 5 minutes


class Snapshot(NamedTuple):
    """What was done between one snapshot and the one before."""

    time: float  # Unix time
    jobs: int
    runtime: float  # mean, in milliseconds


class Count(NamedTuple):
    """The jobs that were done since we look, and how far that goes."""

    total: int
    snapshot: float  # Unix time of the last snapshot that is in it
    in_hash: int  # as many of those in the hash are in it
    fell: bool = False  # the hash is not there: it may have been taken away, and the snapshot is still to come


def after(before: Count | None, snapshots: list[Snapshot], in_hash: int) -> Count:
    """The count after another look, which never falls."""
    newest = max((snapshot.time for snapshot in snapshots), default=0.0)
    if before is None:
        return Count(0, newest, in_hash, fell=not in_hash)
    new = [snapshot.jobs for snapshot in snapshots if snapshot.time > before.snapshot]
    if new and before.fell and not before.in_hash:
        return before._replace(snapshot=newest, in_hash=in_hash, fell=False)  # it may hold what was done before us
    if new:
        return Count(before.total + max(0, sum(new) + in_hash - before.in_hash), newest, in_hash)
    if in_hash >= before.in_hash:
        return Count(before.total + in_hash - before.in_hash, before.snapshot, in_hash)
    if not before.fell:
        return before._replace(fell=True)
    return Count(before.total + in_hash, before.snapshot, in_hash)  # it was cleared for good, as by `clear-metrics`


def mean(snapshots: list[Snapshot], in_hash: int, runtime: float, now: int) -> float | None:
    """Mean runtime in seconds, since the last snapshot or, as long as nothing was done, before it; None if unknown."""
    if in_hash:
        return runtime / 1000
    last = max(snapshots, default=None)
    return last.runtime / 1000 if last and last.jobs and now - last.time < FRESH else None
