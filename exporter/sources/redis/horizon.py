"""Horizon: who is alive, who works for which queue, how much was done, what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from ... import queues
from ...errors import SourceError
from ...model import Limit, Metric, Note, Sample
from ...queues import OTHER, QUEUE
from ...timing import Deadline
from .. import payloads
from ..remembered import Remembered
from ..resp.link import Command
from ..resp.replies import Reply, answered, number, pairs
from . import failures, throughput
from . import fleet as fleets
from .failures import Failure, Tally
from .fleet import STATES, Fleet
from .session import Session
from .throughput import Count, Snapshot

MASTERS = Metric(
    "laravel_queue_horizon_masters",
    "Horizon's masters that are alive, by state.",
    ("connection", "state"),
    limit=Limit(
        1,
        "no Horizon master is running: is Horizon down, or paused?",
        "LaravelQueueHorizonInactive",
        where=("state", "running"),
        below=True,
    ),
)
SUPERVISORS = Metric(
    "laravel_queue_horizon_supervisors", "Horizon's supervisors that are alive, by state.", ("connection", "state")
)
PROCESSES = Metric(
    "laravel_queue_horizon_processes",
    "Worker processes that Horizon runs for a queue; one for several queues counts for each of them.",
    QUEUE,
    limit=Limit(1, "Horizon runs no worker for this queue", "LaravelQueueHorizonNoProcesses", below=True),
)
PROCESSED = Metric(
    "laravel_queue_horizon_jobs_processed_total",
    "Jobs that Horizon has seen through without a failure since the exporter started.",
    QUEUE,
    "counter",
)
RUNTIME = Metric(
    "laravel_queue_horizon_job_runtime_seconds",
    "Mean runtime of jobs since Horizon's last snapshot, or before it while nothing was done since. Absent if unknown.",
    QUEUE,
)
SNAPSHOT_AGE = Metric(
    "laravel_queue_horizon_snapshot_age_seconds",
    "Age of Horizon's last snapshot of its own metrics. Absent if there was none.",
    ("connection",),
)

SIGNS = ("masters", "supervisors", "measured_queues", "last_snapshot_at", "recent_jobs", "failed_jobs")  # of Horizon
MOST_QUEUES = 1000  # that Horizon has numbers of
MORE = f"{{:,}} failed jobs are kept, more than the {failures.MOST:,} that are looked at: they are not counted by queue"
ADDED_UP = "Horizon works for {} on several connections ({}): its numbers of that queue are those of all of them"


class Done(NamedTuple):
    """What Horizon says of one queue."""

    in_hash: int  # jobs since the last snapshot
    runtime: float  # their mean, in milliseconds
    snapshots: list[Snapshot]


class Raw(NamedTuple):
    """What a poll brought."""

    now: int
    withheld: Note | None
    fleet: Fleet
    snapshot_at: float | None  # Unix time
    done: Mapping[str, Done]  # by queue
    failed: list[Failure]
    failed_jobs: Mapping[Failure, failures.Job]  # those of them that we did not know
    failed_kept: int
    counts: Mapping[str, Count]  # before
    tally: Tally


class Horizon:
    """Two pipelines: what there is, and then each of it. No key of a job, but those of jobs that have just failed."""

    name = "horizon"
    metrics: tuple[Metric, ...] = (
        MASTERS, SUPERVISORS, PROCESSES, queues.WORKERS, queues.WORKER_TIMEOUT, PROCESSED, RUNTIME, SNAPSHOT_AGE,
        queues.FAILED, queues.FAILED_TOTAL, queues.DROPPED,
    )  # fmt: skip

    def __init__(self, session: Session, prefix: str) -> None:
        self.session, self.settings, self.prefix = session, session.settings, prefix
        self.interval = self.settings.interval
        self.remembered = Remembered(self.settings.queues, lambda _: OTHER)
        self.pools = Remembered[str]((), lambda _: OTHER)
        self.counts: Mapping[str, Count] = {}
        self.tally = Tally()

    def fetch(self, deadline: Deadline) -> Raw:
        answer = self.session.ask(deadline, lambda _: self._what_there_is())
        signs, snapshot_at, measured, kept, failed, *there = map(answered, answer.replies)
        if not signs:
            raise SourceError("not_found", f"no Horizon keys found under the prefix {self.prefix!r}")
        names = sorted(filter(None, map(self._named_queue, measured)))[:MOST_QUEUES]
        all_failed = [(id_.decode(errors="replace"), float(minus)) for id_, minus in pairs(failed)]
        unknown = self.tally.unknown(all_failed)
        who_is_there = fleets.names(there)
        members, numbers = fleets.each(self.prefix, who_is_there), [c for name in names for c in self._numbers(name)]
        jobs: list[Command] = [("HMGET", f"{self.prefix}{id_}", "queue", "name") for id_, _ in unknown]
        replies = map(answered, self.session.link.ask([*members, *numbers, *jobs], deadline))
        return Raw(
            answer.now,
            answer.withheld,
            fleet=fleets.fleet(who_is_there, list(islice(replies, len(members)))),
            snapshot_at=number(snapshot_at),
            done={name: work(next(replies), next(replies)) for name in names},
            failed=all_failed,
            failed_jobs=dict(zip(unknown, map(self._job, replies), strict=True)),
            failed_kept=kept,
            counts=self.counts,
            tally=self.tally,
        )

    def _what_there_is(self) -> list[Command]:
        key = f"{self.prefix}{{}}".format
        return [
            ("EXISTS", *map(key, SIGNS)),
            ("GET", key("last_snapshot_at")),
            ("SMEMBERS", key("measured_queues")),
            ("ZCARD", key("failed_jobs")),
            ("ZRANGE", key("failed_jobs"), 0, failures.MOST - 1, "WITHSCORES"),  # minus its time: the last one is first
            *fleets.who(self.prefix),
        ]

    def _numbers(self, queue: str) -> list[Command]:
        return [
            ("HMGET", f"{self.prefix}queue:{queue}", "throughput", "runtime"),
            ("ZRANGE", f"{self.prefix}snapshot:queue:{queue}", 0, -1, "WITHSCORES"),
        ]

    def _named_queue(self, member: bytes) -> str:
        """The queue in `queue:NAME`, before which Horizon may have put its prefix."""
        return member.decode(errors="replace").removeprefix(self.prefix).removeprefix("queue:")

    def _job(self, reply: Reply) -> failures.Job:
        queue, name = (value.decode(errors="replace") if value else None for value in reply)
        job_class = name if payloads.is_class(name) else None
        return failures.Job(queue or OTHER, self.session.classes.shown(job_class))

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        if raw.withheld:
            yield raw.withheld
            return
        self.session.worker_timeouts = raw.fleet.timeouts()
        yield from self._members(raw.fleet)
        yield from self._pools(raw.fleet, now)
        if raw.snapshot_at is not None:
            yield SNAPSHOT_AGE(max(0.0, raw.now - raw.snapshot_at), self.session.name)
        processes = raw.fleet.processes()
        failed = [job.queue for job in (*raw.failed_jobs.values(), *raw.tally.jobs.values())]
        sizes = Counter((*processes, *raw.done, *failed))
        shown = self.remembered.shown(sizes, now)
        yield queues.DROPPED(sum(name != queue for queue, name in shown.items()), self.session.name, self.name, "queue")
        yield from self._queues(raw, processes, shown)
        yield from self._failed(raw, shown)
        if paused := raw.fleet.paused:
            yield Note(f"paused in Horizon: {', '.join(sorted(paused))}")
        for queue, connections in sorted(raw.fleet.connections().items()):
            if len(connections) > 1:
                yield Note(ADDED_UP.format(repr(queue), ", ".join(sorted(connections))))

    def _members(self, fleet: Fleet) -> Iterator[Sample]:
        supervisors = [supervisor.status for supervisor in fleet.supervisors]
        for metric, members in ((MASTERS, [*fleet.masters.values()]), (SUPERVISORS, supervisors)):
            for state in STATES:
                yield metric(members.count(state), self.session.name, state)

    def _pools(self, fleet: Fleet, now: float) -> Iterator[Sample]:
        sizes, timeouts = Counter[str](), dict[tuple[str, str], float]()
        for supervisor in fleet.supervisors:
            sizes[supervisor.pool] += sum(supervisor.processes.values())
            for queue in supervisor.queues if supervisor.timeout is not None else ():
                key = supervisor.pool, queue
                timeouts[key] = max(timeouts.get(key, 0.0), supervisor.timeout or 0.0)
        shown = self.pools.shown(sizes, now)
        for pool in sorted({*shown.values()}):
            number = sum(sizes[name] for name, shown_as in shown.items() if shown_as == pool)
            yield queues.WORKERS(number, self.session.name, pool)
        for (pool, queue), timeout in timeouts.items():
            if shown.get(pool) == pool:
                yield queues.WORKER_TIMEOUT(timeout, self.session.connection_of(queue), pool, queue)

    def _queues(self, raw: Raw, processes: Mapping[str, int], shown: Mapping[str, str]) -> Iterator[Sample]:
        nothing = Done(0, 0.0, [])
        self.counts = {
            queue: throughput.after(raw.counts.get(queue), done.snapshots, done.in_hash)
            for queue in shown
            if (done := raw.done.get(queue, nothing))
        }
        for name in sorted({*shown.values()}):
            of = [queue for queue, shown_as in shown.items() if shown_as == name]
            connection = self.session.connection_of(name)
            yield PROCESSES(sum(processes.get(queue, 0) for queue in of), connection, name)
            yield PROCESSED(sum(self.counts[queue].total for queue in of), connection, name)
            if name in raw.done and name != OTHER:
                done = raw.done[name]
                mean = throughput.mean(done.snapshots, done.in_hash, done.runtime, raw.now)
                if mean is not None:
                    yield RUNTIME(mean, connection, name)

    def _failed(self, raw: Raw, shown: Mapping[str, str]) -> Iterator[Sample | Note]:
        self.tally = raw.tally.after(raw.failed, raw.failed_jobs, shown)
        names = sorted({*shown.values()})
        if raw.failed_kept <= failures.MOST:
            kept = Counter[str]()
            for queue, number in self.tally.kept().items():
                kept[shown[queue]] += number
            for name in names:
                yield queues.FAILED(kept[name], self.session.connection_of(name), name)
        else:
            yield Note(MORE.format(raw.failed_kept))
        total = {(name, OTHER): 0 for name in names} | dict(self.tally.total)
        for (name, job_class), number in total.items():
            # A counter born at 1 would hide that from increase(), so at first it is 0.
            is_known = (name, job_class) in raw.tally.total or job_class == OTHER
            yield queues.FAILED_TOTAL(number if is_known else 0, self.session.connection_of(name), name, job_class)


def work(hash_: list[bytes | None], snapshots: list[bytes]) -> Done:
    """What Horizon keeps of one queue."""
    jobs, runtime = (number(value) or 0.0 for value in hash_)
    taken = [Snapshot(float(time), *of_a_snapshot(member)) for member, time in pairs(snapshots)]
    return Done(int(jobs), runtime, taken)


def of_a_snapshot(member: bytes) -> tuple[int, float]:
    """The jobs in a snapshot, and their mean runtime in milliseconds; numbers are written as texts."""
    says = payloads.members(member.decode(errors="replace"))
    jobs, runtime = (number(str(says.get(name))) or 0.0 for name in ("throughput", "runtime"))
    return int(jobs), runtime
