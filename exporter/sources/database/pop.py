"""What a pop costs now: the search for a queue's next job as a worker does it, without the lock, explained."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import floor
from typing import Any, NamedTuple

from ...errors import SourceError
from ...model import Limit, Metric, Note, Sample
from ...queues import QUEUE
from ...timing import BELIEF, Deadline
from .session import GaveUpError, Poll, Session

ALERT = "LaravelQueuePopSlow"
DURATION = Metric(
    "laravel_queue_pop_duration_seconds",
    "How long a worker's search for the next job takes now, without its lock. What takes longer than we let it, which "
    "is 0.25 s or less, shows that limit, meaning 'at least', and has neither buffers nor skipped rows.",
    QUEUE,
    limit=Limit(0.1, "a pop takes {value}, limit {bound}", ALERT, reached=True),
)
BUFFERS = Metric(
    "laravel_queue_pop_buffers",
    "Pages that this search touches: a handful, unless it has to pass dead rows or those of other jobs.",
    QUEUE,
    limit=Limit(1000, "a pop touches {value:page}, limit {bound}", ALERT),
)
SKIPPED = Metric(
    "laravel_queue_pop_skipped_rows",
    "Rows that this search looks at in vain: delayed or reserved jobs, and other queues'.",
    QUEUE,
    limit=Limit(1000, "a pop steps over {value:row}, limit {bound}", ALERT),
)

LONGEST = 0.25  # seconds that one question may take
SHARE = 4  # at most one part in so many of a poll's time
MOST_TOLD = 5  # queues that are named in a sentence
PACES = 4  # pauses between polls: the shortest of these is the usual one, a longer one may have been an outage
REMOVED = ("Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter")

Node = dict[str, Any]  # of a plan


class Answer(NamedTuple):
    """What was said of one queue's pop."""

    mono: float  # when it was asked
    explained: str | None  # the plan as it was run, in JSON; None if the time was not enough
    limit: float = LONGEST  # seconds that it was given then


class Raw(NamedTuple):
    """What a poll brought, and what those before it did."""

    queues: tuple[str, ...]  # that are asked of in turns
    before: Mapping[str, Answer]
    answers: Mapping[str, Answer]
    mono: float
    pace: float  # seconds from one poll to the next, usually


class Pop:
    """One queue a poll, so that the cost does not grow with their number; all of them where nobody will ask again."""

    name = "pop"
    metrics: tuple[Metric, ...] = (DURATION, BUFFERS, SKIPPED)

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval
        self.limit = min(LONGEST, self.settings.timeout / SHARE)
        self.line: list[str] = []  # the queue whose turn it is stands first
        self.answers: Mapping[str, Answer] = {}
        self.polls: deque[float] = deque(maxlen=PACES + 1)  # when the last ones that succeeded began

    def fetch(self, deadline: Deadline) -> Raw:
        poll, began = self.session.poll(deadline), self.session.clock.mono()
        (there,) = poll.ask("pop_table", self.limit)
        nothing_to_pop = poll.in_recovery or not there["has_table"]
        self.line = [] if nothing_to_pop else line_up(self.line, self.session.called_as_shown())
        queues, answers = tuple(self.line), dict[str, Answer]()
        for queue in queues if self.session.once else queues[:1]:
            if deadline.left() < 2 * self.limit:
                break
            answers[queue] = self._explain(poll, queue)
        if queues and not answers:
            raise SourceError("timeout", "too little time was left to ask what a pop costs")
        self.polls.append(began)
        return Raw(queues, self.answers, answers, began, self._pace())

    def _explain(self, poll: Poll, queue: str) -> Answer:
        self.line.remove(queue)
        self.line.append(queue)  # whatever comes of it, the next one is next
        at, asked = floor(poll.now), self.session.clock.mono()
        expired_at = at - self.settings.retry_after_of(queue)
        try:
            (row,) = poll.ask("pop", self.limit, queue=queue, at=at, expired_at=expired_at)
        except GaveUpError as failure:
            if failure.limit is None:
                raise
            return Answer(asked, None, failure.limit)
        return Answer(asked, row["QUERY PLAN"])

    def _pace(self) -> float:
        pauses = (after - before for before, after in pairwise(self.polls))
        return max(self.interval, min(pauses, default=0.0))

    def measure(self, raw: Raw, now: float) -> Iterable[Sample | Note]:
        believed_since = raw.mono - BELIEF * raw.pace * len(raw.queues)
        self.answers = {
            queue: answer
            for queue, answer in (*raw.before.items(), *raw.answers.items())
            if queue in raw.queues and answer.mono >= believed_since
        }
        cut_off = [queue for queue, answer in self.answers.items() if answer.explained is None]
        if cut_off:
            limit = max(self.answers[queue].limit for queue in cut_off)
            yield Note(
                f"a pop of {', '.join(map(repr, cut_off[:MOST_TOLD]))} takes longer than the {limit:g} s it was given"
            )
        if self.session.once and len(self.answers) < len(raw.queues):
            yield Note(f"there was time to ask for the pop of {len(self.answers)} of {len(raw.queues)} queues")
        for queue, answer in self.answers.items():
            yield from samples(answer, self.settings.connection_of(queue, self.session.name), queue)


def line_up(line: list[str], queues: Sequence[str]) -> list[str]:
    """The queues, those that stand in line already in its order; a new one comes last, so that it delays nobody."""
    return [queue for queue in line if queue in queues] + [queue for queue in queues if queue not in line]


def samples(answer: Answer, connection: str, queue: str) -> Iterator[Sample]:
    """The numbers of one queue."""
    if answer.explained is None:
        yield DURATION(answer.limit, connection, queue)
        return
    (explained,) = json.loads(answer.explained)
    plan = explained["Plan"]
    yield DURATION(explained["Execution Time"] / 1000, connection, queue)
    yield BUFFERS(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], connection, queue)
    yield SKIPPED(skipped(plan), connection, queue)


def skipped(node: Node) -> float:
    """Rows that a part of a plan looked at in vain. A node tells them as a mean of the times that it was run."""
    own: float = sum(node.get(removed, 0) for removed in REMOVED) * node["Actual Loops"]
    return own + sum(map(skipped, node.get("Plans", ())))
