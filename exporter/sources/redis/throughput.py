"""
Jobs that Horizon has seen through, as a counter. Arithmetic only.

For each queue Horizon keeps a hash of what was done since its last snapshot. A snapshot takes the
hash away, and puts what was in it into a sorted set, a moment later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from ...errors import SourceError
from .. import payloads
from ..resp.link import Command
from ..resp.replies import Reply, number, pairs

FRESH = 900  # seconds for which the mean of a snapshot is one of now; Horizon takes one every 5 minutes


class Snapshot(NamedTuple):
    """What was done between one snapshot and the one before."""

    time: float  # Unix time
    jobs: int
    runtime: float | None  # mean, in milliseconds


class Done(NamedTuple):
    """What Horizon says of one queue."""

    snapshots: list[Snapshot]
    in_hash: int  # jobs since the last snapshot
    runtime: float | None = None  # their mean, in milliseconds


class Count(NamedTuple):
    """The jobs that were done since we look, and how far that goes."""

    total: int
    snapshot: float  # Unix time of the last snapshot that is in it
    in_hash: int  # as many of those in the hash are in it
    fell: bool = False  # the hash is not there: it may have been taken away, and the snapshot is still to come


NONE_YET = Count(0, 0.0, 0)


class Totals(NamedTuple):
    """What was done, as of the last look. A new look makes a new one."""

    counts: Mapping[str, Count | None] = {}  # by queue; None as long as its keys could not be read
    total: Mapping[str, int] = {}  # by the name that queues are shown under
    is_first: bool = True

    def after(self, done: Mapping[str, Done | None], shown: Mapping[str, str]) -> Totals:
        """
        What is known now. A queue that Horizon has known since our first look only has done all of it since then.

        What one has done stays under the name that it was shown under then, so `other` does not fall
        when one of its queues gets a name of its own.
        """
        counts: dict[str, Count | None] = {}
        total = {name: self.total.get(name, 0) for name in shown.values()}
        for queue, now in done.items():
            before = self.counts.get(queue, None if self.is_first else NONE_YET)
            count = counts[queue] = before if now is None else after(before, now)
            total[shown[queue]] += (count.total if count else 0) - (before.total if before else 0)
        return Totals(counts, total, is_first=False)


def questions(prefix: str, queues: Iterable[str]) -> list[Command]:
    """
    What was done? The snapshots are read before the hash.

    One that is taken in between is not seen then, but that the hash is empty, and that is waited
    for. The other way round its jobs would be counted twice.
    """
    return [*chain.from_iterable(_of(prefix, queue) for queue in queues)]


def _of(prefix: str, queue: str) -> Iterator[Command]:
    yield ("ZRANGE", f"{prefix}snapshot:queue:{queue}", 0, -1, "WITHSCORES")
    yield ("HMGET", f"{prefix}queue:{queue}", "throughput", "runtime")


def done(snapshots: Reply, hash_: Reply) -> Done | None:
    """What Horizon says, by the answers to `questions`; None where it could not be read."""
    if isinstance(snapshots, SourceError) or isinstance(hash_, SourceError):
        return None
    jobs, runtime = map(number, hash_)
    taken = [Snapshot(at, *_taken(member)) for member, score in pairs(snapshots) if (at := number(score)) is not None]
    return Done(taken, int(jobs or 0), runtime)


def _taken(member: bytes) -> tuple[int, float | None]:
    """The jobs in a snapshot, and their mean runtime in milliseconds; numbers are written as texts."""
    says = payloads.members(member.decode(errors="replace"))
    jobs, runtime = (number(str(says.get(name))) for name in ("throughput", "runtime"))
    return int(jobs or 0), runtime


def after(before: Count | None, done: Done) -> Count:
    """The count after another look, which never falls."""
    in_hash, newest = done.in_hash, max((snapshot.time for snapshot in done.snapshots), default=0.0)
    if before is None:
        return Count(0, newest, in_hash, fell=not in_hash)
    new = [snapshot.jobs for snapshot in done.snapshots if snapshot.time > before.snapshot]
    if new and before.fell and not before.in_hash:
        return before._replace(snapshot=newest, in_hash=in_hash, fell=False)  # it may hold what was done before us
    more = sum(new) + in_hash - before.in_hash
    if more >= 0:
        return Count(before.total + more, max(newest, before.snapshot), in_hash)
    if new:  # it was taken away once more, and that snapshot is still to come
        return Count(before.total, newest, before.in_hash - sum(new), fell=True)
    if not before.fell:
        return before._replace(fell=True)
    return Count(before.total + in_hash, before.snapshot, in_hash)  # it was cleared for good, as by `clear-metrics`


def mean(done: Done, snapshot_at: float | None, now: int) -> float | None:
    """
    Mean runtime in seconds, since the last snapshot or, as long as nothing was done, before it; None if unknown.

    Where Horizon takes no snapshots, as it is dead or nobody told it to, it is a mean of nobody knows when.
    """
    if snapshot_at is None or now - snapshot_at >= FRESH:
        return None
    if done.in_hash:
        return None if done.runtime is None else done.runtime / 1000
    last = max(done.snapshots, key=lambda snapshot: snapshot.time, default=None)
    is_recent = last is not None and last.jobs > 0 and now - last.time < FRESH
    return last.runtime / 1000 if last and is_recent and last.runtime is not None else None
