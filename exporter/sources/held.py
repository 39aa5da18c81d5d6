"""What is said of the jobs that workers hold, whichever driver they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .. import queues
from ..model import Limit, Metric, Note, Sample
from ..queues import OTHER, QUEUE
from .ledger import BUCKETS, Ledger, OfClass, OfQueue

REPEATED = Metric(
    "laravel_queue_reservations_repeated_total",
    "Jobs handed out again: a double run if the first worker lives, a rerun if it died. A lower bound.",
    QUEUE,
    "counter",
)
LONG = Metric(
    "laravel_queue_long_reservations_total",
    "Reservations that outlasted half of retry_after; more than one in a hundred means that the p99 did.",
    (*QUEUE, "job_class"),
    "counter",
)
LENGTHS = Metric(
    "laravel_queue_reservation_seconds",
    "Lengths of reservations, up to when they were last seen: a lower bound, and below one interval a biased sample.",
    QUEUE,
    "histogram",
    buckets=BUCKETS,
)
PAST_TIMEOUT = Metric(
    "laravel_queue_reserved_past_timeout_jobs",
    "Jobs held for 10 s longer than their timeout, and not expired yet: their worker should be dead.",
    QUEUE,
    limit=Limit(0, "{value:job} held past the timeout: is the worker dead?", "LaravelQueueOrphanedReservations"),
)
TIMEOUT = Metric(
    "laravel_queue_job_timeout_seconds",
    "The largest timeout of the class's jobs held within the last hour, else that of their workers; +Inf for none.",
    (*QUEUE, "job_class"),
    limit=Limit(
        queues.RETRY_AFTER,
        "timeout {value}, not below retry_after {bound}",
        "LaravelQueueTimeoutExceedsRetryAfter",
        reached=True,
    ),
)
METRICS = (REPEATED, LONG, LENGTHS, PAST_TIMEOUT, TIMEOUT, queues.LAST_RESERVATION)

LOWER_BOUNDS = "not all jobs that are held are looked at one by one, so these numbers are lower bounds"
TOLD = 900  # seconds for which a job that was handed out again is worth a word


def samples(ledger: Ledger, connection_of: Callable[[str], str]) -> Iterator[Sample]:
    """What the ledger says of each queue, and of each class in it."""
    past_timeout = ledger.past_timeout()
    for queue, of in sorted(ledger.queues.items()):
        yield from _of_a_queue(of, past_timeout[queue], connection_of(queue), queue)
        if (queue, OTHER) not in ledger.classes:
            yield LONG(0, connection_of(queue), queue, OTHER)
    for (queue, job_class), of_class in ledger.classes.items():
        yield from _of_a_class(of_class, connection_of(queue), queue, job_class)


def _of_a_queue(of: OfQueue, past_timeout: int, connection: str, queue: str) -> Iterator[Sample]:
    yield REPEATED(of.repeated, connection, queue)
    yield LENGTHS(of.lengths, connection, queue)
    yield PAST_TIMEOUT(past_timeout, connection, queue)
    if of.newest is not None:
        yield queues.LAST_RESERVATION(of.newest, connection, queue)


def _of_a_class(of: OfClass, connection: str, queue: str, job_class: str) -> Iterator[Sample]:
    # A counter that is born at 1 would hide that 1 from increase().
    yield LONG(0 if of.is_new else of.long, connection, queue, job_class)
    if of.timeout is not None:
        yield TIMEOUT(of.timeout, connection, queue, job_class)


def told(ledger: Ledger, now: float) -> Iterator[Note]:
    """A word about the last job that was handed out again: no label can say which one it was."""
    last = ledger.last_repeat
    if last and now - last.held.seen < TOLD:
        yield Note(
            f"{last.held.job_class} (id {last.key.id}, queue {last.held.queue!r}) was handed out again"
            f" after {last.after} s or more, attempt {last.held.attempts}"
        )
