"""The jobs that workers hold, one by one: handed out again, held for long, held past their timeout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from ... import queues
from ...errors import SourceError
from ...model import Metric, Note
from ...queues import EARLIEST, OTHER
from ...source import Result
from ...timing import Deadline
from .. import held
from ..ledger import SLACK, Job, Key, Ledger, Reading, Rules
from ..resp.link import Command
from ..resp.replies import Reply, pairs
from .heads import as_many, job
from .session import Answer, Session

WATCH = 1.0  # seconds between two looks at a job that is about to expire: an idle worker looks every 3 s, and moves it
MOST_HELD = 500  # jobs of one queue that are looked at, those first that are held longest
FIRST_HELD = 20  # the same as long as nobody knows how large they are
ENOUGH = 4 * 1024 * 1024  # bytes of all queues' together: a payload may hold megabytes, and comes whole
LATE = (
    "queue {!r}: a job expires {} s later than its retry_after of {} s allows: either the workers have another one in "
    "config/queue.php than the settings here, or a worker's clock is ahead"
)


class Raw(NamedTuple):
    """What a poll brought."""

    answer: Answer
    asked: tuple[str, ...]  # queues
    limits: Mapping[str, int]  # jobs that were asked for
    before: Ledger


class Reservations:
    """
    Reads what is in `:reserved`: as many jobs as there are busy workers.

    The score says when a job expires; since when it is held, only where `retry_after` is known.
    """

    name = "reservations"
    metrics: tuple[Metric, ...] = (*held.METRICS, queues.DROPPED)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        rules = Rules(
            self.settings.interval,
            self._retry_after,
            session.worker_timeout_of,
            session.classes.shown,
            release_keeps_id=True,
        )
        self.ledger = Ledger(rules)
        self.limits: Mapping[str, int] = {}  # by queue, where the jobs' sizes are known

    @property
    def interval(self) -> float:
        """Seconds until it should be asked again: few while a job may be handed out again soon."""
        usual = self.settings.interval
        return min(WATCH, usual) if self.ledger.nearly_expired() else usual

    def fetch(self, deadline: Deadline) -> Raw:
        asked = tuple(self.session.shown)
        limits = {queue: self.limits.get(queue, FIRST_HELD) for queue in asked}
        question: list[Command] = [
            ("ZRANGEBYSCORE", self.session.key(queue) + b":reserved", EARLIEST, "(+inf", "WITHSCORES", "LIMIT", 0, most)
            for queue, most in limits.items()
        ]
        answer = self.session.ask(deadline, lambda _: question)
        self.session.raise_shared(reply if isinstance(reply, SourceError) else None for reply in answer.replies)
        return Raw(answer, asked, limits, self.ledger)

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        if raw.answer.withheld:
            yield raw.answer.withheld
            return
        rows: list[Job] = []
        failed, seen_to = set(), dict[str, float]()
        self.limits = {}
        busy = sum(1 for reply in raw.answer.replies if reply and not isinstance(reply, SourceError))
        for queue, reply in zip(raw.asked, raw.answer.replies, strict=True):
            name = self.session.shown.get(queue, OTHER)
            if isinstance(reply, SourceError):
                failed.add(name)
                yield SourceError(reply.reason, f"queue {queue!r}: {reply}")
                continue
            found = list(self._jobs(queue, name, reply))
            rows += found
            if reply:
                self.limits[queue] = as_many(reply[::2], MOST_HELD, ENOUGH // busy)
            if len(reply) == 2 * raw.limits[queue]:
                last = max((each.reserved_at for each in found), default=0)
                seen_to[name] = min(seen_to.get(name, inf), last)
        shown = frozenset(self.session.shown.get(queue, OTHER) for queue in raw.asked)
        asked = frozenset(
            key.id
            for key, known in raw.before.held.items()
            if known.queue not in failed and known.reserved_at < seen_to.get(known.queue, inf)
        )
        self.ledger = raw.before.after(Reading(raw.answer.now, True, asked, tuple(rows), shown))
        yield queues.DROPPED(self.ledger.folded, self.session.name, self.name, "job_class")
        for sample in held.samples(self.ledger, self.session.connection_of):
            if sample.labelled["queue"] not in failed:
                yield sample
        yield from held.told(self.ledger, raw.answer.now)
        if seen_to:
            yield Note(held.LOWER_BOUNDS)
        yield from self._doubts()

    def _doubts(self) -> Iterator[Note]:
        """Queues whose jobs expire later than they can, if `retry_after` is what the workers have."""
        for queue, of in sorted(self.ledger.queues.items()):
            if of.lead and of.lead > SLACK:
                yield Note(LATE.format(queue, of.lead, self.settings.retry_after_of(queue) or 0))

    def _jobs(self, queue: str, name: str, reply: Reply) -> Iterator[Job]:
        """Those that have an id: without one nobody can tell whether two are the same."""
        retry_after = self.settings.retry_after_of(queue) or 0
        for payload, score in pairs(reply):
            says = job(payload)
            id_, attempts = says.get("id"), says.get("attempts")
            if isinstance(id_, str) and isinstance(attempts, int):
                text = payload.decode(errors="replace")
                yield Job(Key(id_), name, attempts, int(float(score)) - retry_after, text, None)

    def _retry_after(self, queue: str) -> float:
        found = self.settings.retry_after_of(queue)
        return inf if found is None else found
