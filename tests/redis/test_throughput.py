"""Horizon's jobs as a counter, and its failures."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
import redis

from exporter.demo.redis import Redis
from exporter.sources.redis import throughput
from exporter.sources.redis.failed import MOST, Failure, Job, Tally
from exporter.sources.redis.throughput import NONE_YET, Count, Done, Snapshot, Totals

from ..world import value
from .world import look, now, state_of, watched

HORIZON = "laravel_horizon:"
NOW = 1_800_000_000


@dataclass
class World:
    """A Horizon that works and takes snapshots, in the two steps in which it does so."""

    chance: random.Random
    done: int = 0
    in_hash: int = 0
    taken: int | None = None  # from the hash, and not yet in a snapshot
    snapshots: list[Snapshot] = field(default_factory=list)
    time: int = NOW

    def step(self) -> None:
        """Some jobs, or one step of a snapshot."""
        self.time += 1
        match self.chance.randrange(4):
            case 0 if self.taken is None:
                self.taken, self.in_hash = self.in_hash, 0
            case 1:
                self.complete()
            case _:
                jobs = self.chance.randrange(5)
                self.done += jobs
                self.in_hash += jobs

    def at_rest(self) -> Done:
        """What somebody sees while nothing happens."""
        return Done(self.snapshots, self.in_hash)

    def look(self) -> Done:
        """What somebody sees who reads the snapshots first, and the hash a step later."""
        snapshots = self.snapshots
        self.step()
        return Done(snapshots, self.in_hash)

    def complete(self) -> None:
        """The second step of a snapshot that was begun."""
        if self.taken is not None:
            self.snapshots = [*self.snapshots, Snapshot(self.time, self.taken, 100.0)][-24:]
        self.taken = None


@pytest.mark.parametrize("seed", range(20))
def test_the_counter_never_falls_and_misses_nothing(seed: int) -> None:
    """Whenever somebody looks between jobs and snapshots, the count rises, and in the end it has all that was done."""
    world = World(random.Random(seed))
    for _ in range(5):
        world.step()
    world.complete()
    before, count = world.done, throughput.after(None, world.at_rest())
    for _ in range(200):
        world.step()
        after = throughput.after(count, world.look())
        assert count.total <= after.total <= world.done - before
        count = after
        world.complete()  # the gap between the two steps is shorter than two polls
    assert throughput.after(count, world.at_rest()).total == world.done - before


def test_a_look_between_hash_and_snapshot() -> None:
    """The hash is gone and the snapshot is not there yet: the count stands still, and then goes on with both."""
    count = throughput.after(Count(0, 0.0, 0), Done([], 10))
    gap = throughput.after(count, Done([], 2))
    assert (count.total, gap.total) == (10, 10)
    assert throughput.after(gap, Done([Snapshot(NOW, 12, 1.0)], 3)).total == 15


def test_a_first_look_between_hash_and_snapshot() -> None:
    """What was done before us is not counted when its snapshot comes; what is done from then on is."""
    taken = [Snapshot(NOW, 1200, 1.0)]
    first = throughput.after(None, Done([], 0))
    second = throughput.after(first, Done(taken, 3))
    assert (first.total, second.total) == (0, 0)
    assert throughput.after(second, Done(taken, 5)).total == 2


def test_a_first_job() -> None:
    """A queue in which nothing was done yet counts from its first job on."""
    nothing = Snapshot(NOW, 0, 0.0)
    first = throughput.after(None, Done([nothing], 0))
    assert throughput.after(first, Done([nothing], 1)).total == 1
    idle = throughput.after(first, Done([nothing], 0))
    assert throughput.after(idle, Done([nothing, Snapshot(NOW + 300, 7, 1.0)], 1)).total == 8


def test_a_horizon_that_was_cleared_begins_anew() -> None:
    """Where no snapshot comes, what was in the hash was thrown away: what is in it now is new."""
    count = throughput.after(Count(10, 0.0, 10), Done([], 1))
    cleared = throughput.after(count, Done([], 2))
    assert cleared.total == 12
    assert throughput.after(cleared, Done([], 5)).total == 15


def test_mean_runtime() -> None:
    """Of the jobs since the last snapshot; before the first of them, of the last snapshot while that is fresh."""
    taken = [Snapshot(NOW - 400, 5, 250.0), Snapshot(NOW - 700, 1, 50.0)]
    assert throughput.mean(Done(taken, 3, 1500.0), NOW - 400, NOW) == 1.5
    assert throughput.mean(Done(taken, 0), NOW - 400, NOW) == 0.25
    assert throughput.mean(Done(taken, 0), NOW, NOW + 600) is None  # that one was of another queue
    assert throughput.mean(Done([], 0), NOW, NOW) is None
    assert throughput.mean(Done([Snapshot(NOW, 0, 0.0)], 0), NOW, NOW) is None


def test_the_mean_runtime_of_a_dead_horizon_is_nobodys() -> None:
    """Without a snapshot within fifteen minutes, what is in the hash is of nobody knows when."""
    working = Done([], 3, 1500.0)
    assert throughput.mean(working, NOW - 899, NOW) == 1.5
    assert throughput.mean(working, NOW - 900, NOW) is None
    assert throughput.mean(working, None, NOW) is None


def test_a_queue_that_comes_later_has_its_first_jobs() -> None:
    """What a queue has done that Horizon did not know at our first look, was done since then; not so what was there."""
    old = Totals().after({"old": Done([Snapshot(NOW, 7, 1.0)], 5)}, {"old": "old"})
    both = {"old": Done([Snapshot(NOW, 7, 1.0)], 5), "new": Done([Snapshot(NOW + 9, 10, 1.0)], 30)}
    after = old.after(both, {"old": "old", "new": "new"})
    assert (old.total, after.total) == ({"old": 0}, {"old": 0, "new": 40})


def test_a_queue_that_could_not_be_read_at_first_has_no_first_jobs() -> None:
    """It was there before us, whatever stood in our way: it is counted from the first answer on."""
    shown = {"default": "default"}
    blind = Totals().after({"default": None}, shown)
    seen = blind.after({"default": Done([], 500)}, shown)
    assert seen.total == {"default": 0}
    assert seen.after({"default": None}, shown).after({"default": Done([], 502)}, shown).total == {"default": 2}


def test_other_does_not_fall_when_a_queue_leaves_it() -> None:
    """What was done under the name `other` stays there; what is done from then on has the queue's own name."""
    done = Totals({"a": NONE_YET, "b": NONE_YET}, {}, is_first=False)
    folded = done.after({"a": Done([], 5), "b": Done([], 2)}, {"a": "other", "b": "other"})
    named = folded.after({"a": Done([], 6), "b": Done([], 2)}, {"a": "a", "b": "other"})
    assert folded.total == {"other": 7}
    assert named.total == {"other": 7, "a": 1}


def test_a_snapshot_does_not_make_the_counter_fall(server: Redis, client: redis.Redis) -> None:
    """On a real Redis: 12 jobs, a snapshot, 3 more are 15, and a queue without any job says 0."""
    queue, snapshots = f"{HORIZON}queue:default", f"{HORIZON}snapshot:queue:default"
    client.sadd(f"{HORIZON}measured_queues", queue)
    client.hset(queue, mapping={"throughput": 100, "runtime": "219.87"})
    client.set(f"{HORIZON}last_snapshot_at", now(client))
    queues = {"default": None, "mail": None}
    with watched(server.url(), horizon={"prefix": HORIZON}, queues=queues) as app:
        shown = []
        for work in (lambda: None, lambda: client.hincrby(queue, "throughput", 12)):
            work()
            look(app, "horizon")
            shown.append(value(app, "horizon_jobs_processed_total", queue="default"))
        client.delete(queue)
        look(app, "horizon")
        client.zadd(snapshots, {f'{{"throughput":"112","runtime":"219.87","wait":0,"time":{NOW}}}': NOW})
        client.hset(queue, mapping={"throughput": 3, "runtime": "100"})
        look(app, "horizon")
        shown.append(value(app, "horizon_jobs_processed_total", queue="default"))
        assert shown == [0, 12, 15]
        assert value(app, "horizon_jobs_processed_total", queue="mail") == 0
        assert value(app, "horizon_job_runtime_seconds", queue="default") == 0.1


def fail(client: redis.Redis, id_: str, at: float, queue: str = "default", name: str = "App\\Jobs\\A") -> None:
    """Let a job have failed, as Horizon keeps it."""
    client.zadd(f"{HORIZON}failed_jobs", {id_: -at})
    client.hset(f"{HORIZON}{id_}", mapping={"queue": queue, "name": name, "status": "failed"})


def test_case_53_failed_jobs_are_a_counter(server: Redis, client: redis.Redis) -> None:
    """Case 53: what failed within the last week is kept, and not counted as new; what fails now is counted by class."""
    at = now(client)
    for n in range(50):
        fail(client, f"old-{n}", at - 10_000 * n)
    with watched(server.url(), horizon={"prefix": HORIZON}) as app:
        look(app, "horizon")
        assert value(app, "failed_jobs", queue="default") == 50
        assert value(app, "failed_jobs_total", job_class="App\\Jobs\\A") == 0
        assert value(app, "failed_jobs_total", queue="default", job_class="other") == 0
        for n in range(3):
            fail(client, f"new-{n}", at - n)  # the clocks of the workers need not agree
        fail(client, "old-7", at)  # retried, and failed again
        client.zrem(f"{HORIZON}failed_jobs", "old-49")
        look(app, "horizon")
        assert value(app, "failed_jobs", queue="default") == 52
        assert value(app, "failed_jobs_total", job_class="App\\Jobs\\A") == 4


def test_old_failures_that_come_into_sight_are_not_new() -> None:
    """Where more are kept than we look at, a newer one that is forgotten brings an older one into sight."""
    shown = {"default": "default"}
    job = Job("default", "A")
    failures = [Failure(f"id-{n}", NOW - n) for n in range(MOST + 1)]
    first = Tally().after(failures[:-1], dict.fromkeys(failures[:-1], job), shown)
    second = first.after(failures[1:], {failures[-1]: job}, shown)
    assert second.total == {("default", "A"): 0}
    new = Failure("id-x", NOW + 1)
    assert second.after([new, *failures[1:-1]], {new: job}, shown).total == {("default", "A"): 1}


def test_failures_of_a_queue_that_is_not_shown_any_more_are_forgotten() -> None:
    """Its labels are free for another queue; should it come back, it begins at 0 as a counter may."""
    one = Failure("id-1", NOW)
    tally = Tally().after([], {}, {"mail": "mail"}).after([one], {one: Job("mail", "A")}, {"mail": "mail"})
    assert tally.total == {("mail", "A"): 1}
    assert tally.after([], {}, {"default": "default"}).total == {}


def test_more_failures_than_are_looked_at(server: Redis, client: redis.Redis) -> None:
    """Of thousands nobody says how many are of which queue; that they are many is told."""
    with client.pipeline() as pipeline:
        pipeline.zadd(f"{HORIZON}failed_jobs", {f"id-{n}": -(NOW - n) for n in range(MOST + 1)})
        pipeline.execute()
    with watched(server.url(), horizon={"prefix": HORIZON}) as app:
        look(app, "horizon")
        assert value(app, "failed_jobs", queue="default") is None
        assert value(app, "failed_jobs_total", queue="default", job_class="other") == 0
        assert state_of(app, "horizon").notes[0].startswith("1,001 failed jobs are kept, more than the 1,000")
