"""A Horizon brought to life in a Redis, with the keys that Laravel and Horizon write; one thread plays all of it."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from threading import Event, Thread
from typing import Any

import redis

from .payload import payload
from .plan import RETRY_AFTER, Horizon, Job

PREFIX, HORIZON = "laravel_database_", "laravel_horizon:"
TICK = 0.1  # seconds
SNAPSHOT = 60.0  # seconds; Horizon's own schedule says five minutes
MASTER, SUPERVISOR = "web-1-Qx7t", "web-1-Qx7t:supervisor-1"
JOBS = {"default": Job("App\\Jobs\\SyncCart", (0.1, 0.4)), "mails": Job("App\\Mail\\ShippedMail", (0.2, 0.6))}
OTHER = Job("App\\Jobs\\ExportOrders", (1.0, 4.0))


class HorizonWorld:
    """The jobs, who works on them, and what Horizon tells of itself. A context manager around a thread."""

    def __init__(
        self,
        plan: Horizon,
        port: int,
        wall: Callable[[], float] = time.time,
        chance: Random | None = None,
        now: Callable[[Horizon], Horizon] = lambda plan: plan,
    ) -> None:
        self.plan, self.wall, self.now = plan, wall, now  # how the plan is now: somebody may do something about it
        self.chance = chance or Random()  # noqa: S311  # luck, not secrets
        self.client: Any = redis.Redis(port=port)
        self.stopping = Event()
        self.busy = defaultdict[str, list[tuple[float, str]]](list)  # by queue: until when, with what
        self.thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> HorizonWorld:
        self._fill()
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        self.thread.join()
        self.client.close()

    def _fill(self) -> None:
        now = self.wall()
        self.client.set(f"{HORIZON}last_snapshot_at", int(now))
        for index in range(self.plan.backlog):
            self._push("default", now - 630 + 630 * index / self.plan.backlog)
        for queue, count in self.plan.due.items():
            for _ in range(count):
                self.client.zadd(self._key(queue, "delayed"), {self._job(queue, now - 900): int(now - 300)})
        for number in range(self.plan.sessions):
            self._visit(number)
        if self.plan.state == "down":
            self.client.zadd(f"{HORIZON}masters", {MASTER: int(now - 600)})
            for _ in self.plan.workers:
                self.client.zadd(self._key("default", "reserved"), {self._job("default", now - 620, 1): int(now - 520)})

    def _run(self) -> None:
        snapshot_at = self.wall() + SNAPSHOT
        while not self.stopping.wait(TICK):
            now, self.plan = self.wall(), self.now(self.plan)
            for queue, rate in self.plan.per_second.items():
                if self.chance.random() < rate * TICK:
                    self._push(queue, now)
            if self.plan.sessions:
                self._visit(self.chance.randrange(10**6))
            if self.plan.state == "down":
                continue
            try:
                self._tell(now)
            except redis.ResponseError:  # the memory is full: Horizon cannot even say that it is alive
                continue
            for queue in self.plan.workers if self.plan.state == "running" else ():
                self._work(queue, now)
            if now >= snapshot_at:
                self._snapshot(int(now))
                snapshot_at = now + SNAPSHOT

    def _visit(self, number: int) -> None:
        with suppress(redis.ResponseError):  # the memory is full: the customer sees an error
            self.client.set(f"laravel_database_session:{number}", "x" * 2048)

    def _tell(self, now: float) -> None:
        """What the master and the supervisor say each second, and Redis soon forgets."""
        queues = ",".join(self.plan.workers)
        processes = {f"redis:{queue}": workers for queue, workers in self.plan.workers.items()}
        options = {"connection": "redis", "queue": queues, "timeout": "60", "balance": "simple"}
        told: Mapping[str, tuple[int, dict[str, str]]] = {
            f"master:{MASTER}": (15, {"name": MASTER}),
            f"supervisor:{SUPERVISOR}": (
                30,
                {"master": MASTER, "processes": json.dumps(processes), "options": json.dumps(options)},
            ),
        }
        for name, (ttl, fields) in told.items():
            self.client.hset(HORIZON + name, mapping=fields | {"status": self.plan.state})
            self.client.expire(HORIZON + name, ttl)
        self.client.zadd(f"{HORIZON}masters", {MASTER: int(now)})
        self.client.zadd(f"{HORIZON}supervisors", {SUPERVISOR: int(now)})

    def _work(self, queue: str, now: float) -> None:
        """All workers of a queue: end what is done, move what is due, take what is there."""
        for until, held in [one for one in self.busy[queue] if one[0] <= now]:
            self.busy[queue].remove((until, held))
            self.client.zrem(self._key(queue, "reserved"), held)
            self.client.hincrby(f"{HORIZON}queue:{queue}", "throughput", 1)
            self.client.hset(f"{HORIZON}queue:{queue}", "runtime", "250.5")
            self.client.sadd(f"{HORIZON}measured_queues", f"{HORIZON}queue:{queue}")
        for part in ("delayed", "reserved"):
            for due in self.client.zrangebyscore(self._key(queue, part), "-inf", int(now)):
                self.client.zrem(self._key(queue, part), due)
                self.client.rpush(self._key(queue), due)
        while len(self.busy[queue]) < self.plan.workers[queue] and (taken := self.client.lpop(self._key(queue))):
            job = json.loads(taken)
            held = json.dumps(job | {"attempts": job["attempts"] + 1})
            self.client.zadd(self._key(queue, "reserved"), {held: int(now) + RETRY_AFTER})
            self.busy[queue].append((now + self.chance.uniform(*JOBS.get(queue, OTHER).seconds), held))

    def _snapshot(self, now: int) -> None:
        """Horizon takes the hash away and keeps what was in it."""
        for queue in self.plan.workers:
            jobs, runtime = self.client.hmget(f"{HORIZON}queue:{queue}", "throughput", "runtime")
            self.client.delete(f"{HORIZON}queue:{queue}")
            taken = {"throughput": int(jobs or 0), "runtime": float(runtime or 0), "wait": 0, "time": now}
            self.client.zadd(f"{HORIZON}snapshot:queue:{queue}", {json.dumps(taken): now})
        self.client.set(f"{HORIZON}last_snapshot_at", now)

    def _push(self, queue: str, at: float) -> None:
        with suppress(redis.ResponseError):  # the memory is full: the customer sees an error
            self.client.rpush(self._key(queue), self._job(queue, at))

    def _job(self, queue: str, at: float, attempts: int = 0) -> str:
        job = json.loads(payload(JOBS.get(queue, OTHER), queue, self.chance, int(at)))
        return json.dumps(job | {"id": job["uuid"], "attempts": attempts, "pushedAt": f"{at:.4f}"})

    def _key(self, queue: str, part: str = "") -> str:
        return f"{PREFIX}queues:{queue}{part and f':{part}'}"
