"""Horizon: who is alive, who works for which queue, how much was done, what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from ... import queues
from ...errors import SourceError
from ...model import Limit, Metric, Note, Sample
from ...queues import OTHER, QUEUE
from ...source import Result
from ...timing import Deadline
from ..remembered import Remembered
from ..resp.link import Command
from ..resp.replies import Reply, answered, failures, keyed, number
from . import failed, throughput
from . import fleet as fleets
from .failed import Failure, Tally
from .fleet import LONGEST, STATES, Fleet, Names
from .session import Answer, Session
from .throughput import Done, Totals

MASTERS = Metric(
    "laravel_queue_horizon_masters",
    "Horizon's masters that are alive, by state.",
    ("connection", "state"),
    limit=(
        Limit(
            1,
            "no Horizon master is alive: nobody does its jobs",
            "LaravelQueueHorizonInactive",
            total="state",
            below=True,
            given=queues.READY,
            page=True,
        ),
        Limit(1, "no Horizon master is alive", "LaravelQueueHorizonInactive", total="state", below=True),
        Limit(0, "{value:Horizon master} paused", "LaravelQueueHorizonPaused", where=("state", "paused")),
    ),
)
SUPERVISORS = Metric(
    "laravel_queue_horizon_supervisors", "Horizon's supervisors that are alive, by state.", ("connection", "state")
)
PROCESSES = Metric(
    "laravel_queue_horizon_processes",
    "Worker processes that Horizon runs for a queue; one for several queues counts for each of them.",
    QUEUE,
    limit=Limit(
        1, "Horizon runs no worker for this queue", "LaravelQueueHorizonNoProcesses", below=True, given=queues.READY
    ),
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
TOLD = 10  # queues that a note names
MORE = f"{{:,}} failed jobs are kept, more than the {failed.MOST:,} that are looked at: they are not counted by queue"
ADDED_UP = "Horizon works for {} on several connections ({}): its numbers of that queue are those of all of them"
UNNAMED = "Horizon works for queues that are not named in the settings, so nobody counts their jobs: {}"


class There(NamedTuple):
    """What there is: the replies to the first pipeline, of which a part may have failed."""

    signs: Reply
    snapshot_at: Reply
    measured: Reply
    failed_kept: Reply
    failed: Reply
    masters: Reply
    supervisors: Reply


class Known(NamedTuple):
    """What is known, as of the last poll."""

    done: Totals = Totals()
    failed: Tally = Tally()
    dropped: Mapping[str, int] = {}  # how often something was folded into `other`, by label


class Raw(NamedTuple):
    """What a poll brought."""

    answer: Answer
    there: There
    names: Names
    measured: list[str]  # queues
    failures: list[Failure]
    unknown: list[Failure]  # those of them that we have to look up
    replies: list[Reply]  # about each of these, in this order
    before: Known


class Horizon:
    """Two pipelines: what there is, and then each of it. No key of a job, but those of jobs that have just failed."""

    name = "horizon"
    metrics: tuple[Metric, ...] = (
        MASTERS, SUPERVISORS, PROCESSES, queues.WORKERS, queues.WORKER_TIMEOUT, queues.RETRY_AFTER, PROCESSED, RUNTIME,
        SNAPSHOT_AGE, queues.FAILED, queues.FAILED_TOTAL, queues.DROPPED,
    )  # fmt: skip

    def __init__(self, session: Session, prefix: str) -> None:
        self.session, self.settings, self.prefix = session, session.settings, prefix
        self.interval = self.settings.interval
        self.remembered = Remembered(self.settings.queues, lambda _: OTHER)
        self.worked_for = Remembered(self.settings.queues, lambda _: OTHER)
        self.pools = Remembered[str]((), lambda _: OTHER)
        self.known = Known()

    def fetch(self, deadline: Deadline) -> Raw:
        questions = self._what_there_is()
        answer = self.session.ask(deadline, lambda _: questions)
        there = There(*keyed(questions, answer.replies))
        if not answered(there.signs):
            raise SourceError("not_found", self._nothing())
        names = fleets.names(there.masters, there.supervisors)
        measured = self._queues(there.measured)
        failures = failed.failures(there.failed)
        unknown = self.known.failed.unknown(failures)
        each = [
            *fleets.each(self.prefix, names),
            *throughput.questions(self.prefix, measured[:MOST_QUEUES]),
            *failed.each(self.prefix, unknown),
        ]
        replies = keyed(each, self.session.link.ask(each, deadline))
        return Raw(answer, there, names, measured, failures, unknown, replies, self.known)

    def _what_there_is(self) -> list[Command]:
        key = f"{self.prefix}{{}}".format
        return [
            ("EXISTS", *map(key, SIGNS)),
            ("GET", key("last_snapshot_at")),
            ("SMEMBERS", key("measured_queues")),
            *failed.which(self.prefix),
            *fleets.who(self.prefix),
        ]

    def _nothing(self) -> str:
        database = self.settings.target().database
        return f"no Horizon keys found under the prefix {self.prefix!r} in database {database}"

    def _queues(self, measured: Reply) -> list[str]:
        """The queues in `queue:NAME`, before which Horizon may have put its prefix; none where that has no answer."""
        texts = () if is_failure(measured) else (member.decode(errors="replace") for member in measured)
        found = {text.removeprefix(self.prefix).removeprefix("queue:") for text in texts}
        return sorted(queue for queue in found if 0 < len(queue) <= LONGEST)

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        if raw.answer.withheld:
            self.session.tell(None)
            yield raw.answer.withheld
            return
        yield from failures((*raw.there, *raw.replies))
        seen = read(raw, self.session.classes.shown)
        self.session.tell(seen.fleet)
        of_failures = [job.queue for job in (*raw.before.failed.jobs.values(), *seen.jobs.values()) if job]
        shown = self.remembered.shown(Counter((*seen.fleet.processes(), *seen.done, *of_failures)), now)
        pools = self.pools.shown(seen.fleet.pools(), now)
        left_out = max(0, len(raw.measured) - MOST_QUEUES)
        more_dropped = {"queue": left_out + folded(shown), "pool": folded(pools), "job_class": seen.folded}
        done, failures_ = raw.before.done, raw.before.failed
        self.known = Known(
            done if is_failure(raw.there.measured) else done.after(seen.done, shown),
            failures_ if is_failure(raw.there.failed) else failures_.after(raw.failures, seen.jobs, shown),
            {label: count + raw.before.dropped.get(label, 0) for label, count in more_dropped.items()},
        )
        yield from self._fleet(seen.fleet, pools, now)
        yield from self._done(raw, seen.done, shown)
        yield from self._failed(raw, shown)
        for label, count in self.known.dropped.items():
            yield queues.DROPPED(count, self.session.name, self.name, label)
        yield from self._notes(seen.fleet)

    def _fleet(self, fleet: Fleet, pools: Mapping[str, str], now: float) -> Iterator[Sample]:
        supervisors = [supervisor.status for supervisor in fleet.supervisors]
        for metric, members in ((MASTERS, [*fleet.masters.values()]), (SUPERVISORS, supervisors)):
            for state in STATES:
                yield metric(members.count(state), self.session.name, state)
        sizes, processes = fleet.pools(), fleet.processes()
        for pool in sorted({*pools.values()}):
            workers = sum(sizes[name] for name, shown_as in pools.items() if shown_as == pool)
            yield queues.WORKERS(workers, self.session.name, pool)
        for (pool, queue), timeout in fleet.timeouts().items():
            if pools[pool] == pool:
                yield queues.WORKER_TIMEOUT(timeout, self.session.connection_of(queue), pool, queue)
        for queue, shown_as in sorted(self.worked_for.shown(Counter(processes), now).items()):
            if shown_as == queue != OTHER:
                yield PROCESSES(processes.get(queue, 0), self.session.connection_of(queue), queue)
        yield from self._retry_after(fleet)

    def _retry_after(self, fleet: Fleet) -> Iterator[Sample]:
        """What a timeout is compared with, for queues of our connection that nobody named. `Queues` tells of others."""
        retry_after = self.settings.retry_after
        if retry_after is not None and not self.settings.discover:
            for queue in fleet.queues_of({self.session.name}) - self.settings.queues.keys():
                yield queues.RETRY_AFTER(retry_after, self.session.name, queue)

    def _done(self, raw: Raw, done: Mapping[str, Done | None], shown: Mapping[str, str]) -> Iterator[Sample]:
        snapshot_at = None if is_failure(raw.there.snapshot_at) else number(raw.there.snapshot_at)
        if snapshot_at is not None:
            yield SNAPSHOT_AGE(max(0.0, raw.answer.now - snapshot_at), self.session.name)
        unknown = {shown[queue] for queue, each in done.items() if each is None}
        for name, total in self.known.done.total.items() if not is_failure(raw.there.measured) else ():
            if name not in unknown:
                is_known = name in raw.before.done.total or name == OTHER
                # A counter born at 40 would hide that from increase(), so at first it is 0.
                yield PROCESSED(total if is_known else 0, self.session.connection_of(name), name)
        for queue, each in done.items():
            mean = throughput.mean(each, snapshot_at, raw.answer.now) if each and shown[queue] == queue else None
            if mean is not None:
                yield RUNTIME(mean, self.session.connection_of(queue), queue)

    def _failed(self, raw: Raw, shown: Mapping[str, str]) -> Iterator[Sample | Note]:
        if is_failure(raw.there.failed) or is_failure(raw.there.failed_kept):
            return
        names = sorted({*shown.values()})
        if raw.there.failed_kept <= failed.MOST:
            kept = Counter[str]()
            for queue, count in self.known.failed.kept().items():
                kept[shown[queue]] += count
            for name in names:
                yield queues.FAILED(kept[name], self.session.connection_of(name), name)
        else:
            yield Note(MORE.format(raw.there.failed_kept))
        total = {(name, OTHER): 0 for name in names} | dict(self.known.failed.total)
        for (name, job_class), count in total.items():
            # A counter born at 1 would hide that from increase(), so at first it is 0.
            is_known = (name, job_class) in raw.before.failed.total or job_class == OTHER
            yield queues.FAILED_TOTAL(count if is_known else 0, self.session.connection_of(name), name, job_class)

    def _notes(self, fleet: Fleet) -> Iterator[Note]:
        if paused := fleet.paused:
            yield Note(f"paused in Horizon: {', '.join(sorted(paused))}")
        for queue, connections in sorted(fleet.connections().items()):
            if len(connections) > 1:
                yield Note(ADDED_UP.format(repr(queue), ", ".join(sorted(connections))))
        ours = {self.session.name, *map(self.session.connection_of, self.settings.queues)}
        if not self.settings.discover and (unnamed := fleet.queues_of(ours) - self.settings.queues.keys()):
            yield Note(UNNAMED.format(", ".join([*map(repr, sorted(unnamed)[:TOLD]), *["…"][: len(unnamed) > TOLD]])))


class Seen(NamedTuple):
    """What the replies of a poll say."""

    fleet: Fleet
    done: dict[str, Done | None]  # by queue; None where it could not be read
    jobs: dict[Failure, failed.Job]  # that were looked up
    folded: int  # of those, how many have a class that is not shown under its name


def read(raw: Raw, shown: Callable[[str | None], str]) -> Seen:
    """What the replies say; `shown` is the name that a class is shown under."""
    replies = iter(raw.replies)
    fleet = fleets.fleet(raw.names, [*islice(replies, len(raw.names.masters) + len(raw.names.supervisors))])
    done = {queue: throughput.done(next(replies), next(replies)) for queue in raw.measured[:MOST_QUEUES]}
    return Seen(fleet, done, *failed.jobs(raw.unknown, replies, shown))


def is_failure(reply: Reply) -> bool:
    """Whether this reply is none."""
    return isinstance(reply, SourceError)


def folded(shown: Mapping[str, str]) -> int:
    """How many names are not shown as they are."""
    return sum(name != shown_as for name, shown_as in shown.items())
