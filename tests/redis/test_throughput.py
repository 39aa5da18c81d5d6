"""Horizon's jobs as a counter, and its failures."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
import redis

from exporter.demo.redis import Redis
from exporter.sources.redis import throughput
from exporter.sources.redis.failures import MOST, Job, Tally
from exporter.sources.redis.throughput import Count, Snapshot

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
    before, count = world.done, throughput.after(None, world.snapshots, world.in_hash)
    for _ in range(200):
        world.step()
        after = throughput.after(count, world.snapshots, world.in_hash)
        assert count.total <= after.total <= world.done - before
        count = after
        world.complete()  # the gap between the two steps is shorter than two polls
    count = throughput.after(count, world.snapshots, world.in_hash)
    assert count.total == world.done - before


def test_a_look_between_hash_and_snapshot() -> None:
    """The hash is gone and the snapshot is not there yet: the count stands still, and then goes on with both."""
    count = throughput.after(Count(0, 0.0, 0), [], 10)
    gap = throughput.after(count, [], 2)
    assert (count.total, gap.total) == (10, 10)
    assert throughput.after(gap, [Snapshot(NOW, 12, 1.0)], 3).total == 15


def test_a_first_look_between_hash_and_snapshot() -> None:
    """What was done before us is not counted when its snapshot comes; what is done from then on is."""
    first = throughput.after(None, [], 0)
    second = throughput.after(first, [Snapshot(NOW, 1200, 1.0)], 3)
    assert (first.total, second.total) == (0, 0)
    assert throughput.after(second, [Snapshot(NOW, 1200, 1.0)], 5).total == 2


def test_a_first_job() -> None:
    """A queue in which nothing was done yet counts from its first job on."""
    first = throughput.after(None, [Snapshot(NOW, 0, 0.0)], 0)
    assert throughput.after(first, [Snapshot(NOW, 0, 0.0)], 1).total == 1
    idle = throughput.after(first, [Snapshot(NOW, 0, 0.0)], 0)
    assert throughput.after(idle, [Snapshot(NOW, 0, 0.0), Snapshot(NOW + 300, 7, 1.0)], 1).total == 8


def test_a_horizon_that_was_cleared_begins_anew() -> None:
    """Where no snapshot comes, what was in the hash was thrown away: what is in it now is new."""
    count = throughput.after(Count(10, 0.0, 10), [], 1)
    cleared = throughput.after(count, [], 2)
    assert cleared.total == 12
    assert throughput.after(cleared, [], 5).total == 15


def test_mean_runtime() -> None:
    """Of the jobs since the last snapshot; before the first of them, of the last snapshot while that is fresh."""
    taken = [Snapshot(NOW - 700, 1, 50.0), Snapshot(NOW - 400, 5, 250.0)]
    assert throughput.mean(taken, 3, 1500.0, NOW) == 1.5
    assert throughput.mean(taken, 0, 0.0, NOW) == 0.25
    assert throughput.mean(taken, 0, 0.0, NOW + 600) is None
    assert throughput.mean([], 0, 0.0, NOW) is None


def test_a_snapshot_does_not_make_the_counter_fall(server: Redis, client: redis.Redis) -> None:
    """On a real Redis: 12 jobs, a snapshot, 3 more are 15, and a queue without any job says 0."""
    queue, snapshots = f"{HORIZON}queue:default", f"{HORIZON}snapshot:queue:default"
    client.sadd(f"{HORIZON}measured_queues", queue)
    client.hset(queue, mapping={"throughput": 100, "runtime": "219.87"})
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


def test_numbers_that_are_none_are_nothing(server: Redis, client: redis.Redis) -> None:
    """Whatever text stands where Horizon keeps a number, the collector goes on."""
    client.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:default")
    client.set(f"{HORIZON}last_snapshot_at", "soon")
    client.hset(f"{HORIZON}queue:default", mapping={"throughput": "many", "runtime": "nan"})
    for number, text in enumerate(("", "{", '{"throughput":"inf","runtime":[]}', "[]", "\\xff")):
        client.zadd(f"{HORIZON}snapshot:queue:default", {text: NOW + number})
    with watched(server.url(), horizon={"prefix": HORIZON}) as app:
        for _ in range(2):
            look(app, "horizon")
            assert state_of(app, "horizon").error == ""
            assert value(app, "horizon_jobs_processed_total", queue="default") == 0
            assert value(app, "horizon_snapshot_age_seconds") is None


def test_case_46_a_wrong_type_among_the_keys_of_horizon(server: Redis, client: redis.Redis) -> None:
    """Case 46: a string where Horizon has a set fails that collector alone, by name; it heals alone."""
    client.set(f"{HORIZON}masters", "x")
    with watched(server.url(), horizon={"prefix": HORIZON}) as app:
        look(app)
        assert state_of(app, "horizon").reason == state_of(app, "signals").reason == "wrong_type"
        assert state_of(app, "queues").up
        client.delete(f"{HORIZON}masters")
        client.set(f"{HORIZON}last_snapshot_at", NOW)
        look(app)
        assert state_of(app, "horizon").up
        assert value(app, "horizon_masters", state="running") == 0


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
    failures = [(f"id-{n}", -float(NOW - n)) for n in range(MOST + 1)]
    first = Tally().after(failures[:-1], dict.fromkeys(failures[:-1], job), shown)
    second = first.after(failures[1:], {failures[-1]: job}, shown)
    assert second.total == {("default", "A"): 0}
    new = ("id-x", -float(NOW + 1))
    assert second.after([new, *failures[1:-1]], {new: job}, shown).total == {("default", "A"): 1}


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
