"""The tasks that work on the queues, and what follows from both: how much waits for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import SourceError
from ...model import Metric, Sample
from ...source import Result
from ...timing import Deadline
from . import errors, metrics, parts
from .attributes import count
from .names import Place
from .session import Backlog, Counts, Session

MOST_SERVICES = 10  # in one request
STATES = ("running", "desired", "pending")
IDLE_POLLS = 3  # in a row


class Where(NamedTuple):
    """A service in its cluster."""

    place: Place
    cluster: str
    service: str


class Tasks(NamedTuple):
    """The tasks of one service."""

    running: int
    desired: int
    pending: int
    deployments: int


class Raw(NamedTuple):
    """What a poll brought."""

    services: Mapping[Where, Tasks]
    failures: tuple[SourceError, ...]
    idle: Mapping[Where, tuple[int, ...]]  # tasks without a job at the polls before
    counts: Counts  # of the queues, as far as they are believed
    seconds_per_job: Mapping[str, float | None]  # by queue


class Ecs:
    """DescribeServices for the services that queues name, ten at a time for each cluster."""

    name = "ecs"
    metrics: tuple[Metric, ...] = (
        metrics.RUNNING,
        metrics.DESIRED,
        metrics.PENDING,
        metrics.DEPLOYMENTS,
        metrics.BACKLOG,
        metrics.ACCEPTABLE,
        metrics.IDLE_TASKS,
    )

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asker = parts.Asker[tuple[Where, ...]]()
        self.interval = session.settings.interval
        self.queues: dict[Where, list[str]] = {}  # service → queues that it works on
        for queue, said in session.settings.queues.items():
            if said.ecs:
                where = Where(session.place_of_services(queue), said.ecs.cluster, said.ecs.service)
                self.queues.setdefault(where, []).append(queue)
        self.idle: Mapping[Where, tuple[int, ...]] = {}

    def fetch(self, deadline: Deadline) -> Raw:
        asking = parts.asking(deadline)
        requests = self._requests()
        self.session.ready("ecs", (where.place for request in requests for where in request), asking)
        answers, lost = self.asker.each(requests, self._described, asking)
        services: dict[Where, Tasks] = {}
        failures = [*lost.values()]
        for request, answer in answers.items():
            for where in request:
                try:
                    services[where] = read(where, answer)
                except SourceError as failure:
                    failures.append(failure)
        if failures and not services:
            raise parts.whole(failures)
        seconds = {queue: self.session.seconds_per_job(queue) for queue in self.session.settings.queues}
        return Raw(services, tuple(failures), self.idle, self.session.recent(), seconds)

    def _requests(self) -> list[tuple[Where, ...]]:
        """The services to ask for in each request."""
        batches = parts.batches(self.queues, lambda where: (where.place, where.cluster), MOST_SERVICES)
        return [together for _, together in batches]

    def _described(self, together: tuple[Where, ...], deadline: Deadline) -> dict[str, Any]:
        place, cluster, _ = together[0]
        services = [where.service for where in together]
        try:
            return self.session.ask("ecs", place, "DescribeServices", deadline, cluster=cluster, services=services)
        except SourceError as failure:
            raise parts.of(f"cluster {cluster}", failure) from None

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        counts = raw.counts
        self.idle = {
            where: (*raw.idle.get(where, ()), idle_tasks(tasks.running, self.queues[where], counts))[-IDLE_POLLS:]
            for where, tasks in raw.services.items()
            if counts.ready.keys() >= {*self.queues[where]}  # else nobody knows, and it begins anew
        }
        backlogs: dict[str, Backlog] = {}
        for where, tasks in raw.services.items():
            for queue in self.queues[where]:
                yield from self._tasks(queue, tasks, raw.seconds_per_job[queue])
                if queue in counts.ready:
                    backlog = Backlog(counts.ready[queue] / max(tasks.running, 1), counts.mono, counts.wall)
                    backlogs[queue] = backlog
                    yield metrics.BACKLOG(backlog.per_task, self.session.name, queue)
                if len(idle := self.idle.get(where, ())) == IDLE_POLLS:
                    yield metrics.IDLE_TASKS(min(idle), self.session.name, queue)
        self.session.backlogs = backlogs
        yield from parts.told(raw.failures)

    def _tasks(self, queue: str, tasks: Tasks, seconds: float | None) -> Iterator[Sample]:
        at = (self.session.name, queue)
        yield metrics.RUNNING(tasks.running, *at)
        yield metrics.DESIRED(tasks.desired, *at)
        yield metrics.PENDING(tasks.pending, *at)
        yield metrics.DEPLOYMENTS(tasks.deployments, *at)
        target = self.session.settings.target_wait_of(queue)
        if target is not None and seconds is not None:
            yield metrics.ACCEPTABLE(target / seconds, *at)


def read(where: Where, answer: Mapping[str, Any]) -> Tasks:
    """One service of an answer. One that is missing or was deleted has not no tasks: raises `SourceError`."""
    called = f"service {where.service} of the cluster {where.cluster}"
    with errors.reading(f"DescribeServices: {called}"):
        for service in _objects(answer, "services"):
            if where.service in (service.get("serviceName"), service.get("serviceArn")):
                if service.get("status") == "INACTIVE":
                    raise SourceError("not_found", f"{called} was deleted")
                running, desired, pending = (count(service[f"{state}Count"]) for state in STATES)
                return Tasks(running, desired, pending, len(service.get("deployments", [])))
        whys = (str(each.get("reason")) for each in _objects(answer, "failures") if _is_of(each, where.service))
        raise SourceError("not_found", f"{called}: {errors.short(next(whys, 'not mentioned'))}")


def _objects(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects of a list; what else is in it is about none of our services."""
    return [each for each in answer.get(name) or [] if isinstance(each, Mapping)]


def _is_of(failure: Mapping[str, Any], service: str) -> bool:
    return str(failure.get("arn", "")).rpartition("/")[2] == service.rpartition("/")[2]


def idle_tasks(running: int, together: Sequence[str], counts: Counts) -> int:
    """Tasks of a service that hold no job, although more are ready than it has tasks."""
    ready = sum(counts.ready[queue] for queue in together)
    held = sum(counts.reserved[queue] for queue in together)
    return max(0, running - held) if ready > running else 0
