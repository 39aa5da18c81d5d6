"""What is said of the jobs that workers hold, whichever driver they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .. import queues
from ..model import Limit, Metric, Note, Sample
from ..queues import OTHER, QUEUE
from .ledger import BUCKETS, NOTHING, Ledger

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
NEWEST = Metric(
    "laravel_queue_last_reservation_timestamp_seconds",
    "Unix time of the newest reservation seen, by its worker's clock. Absent if none was.",
    QUEUE,
)
METRICS = (REPEATED, LONG, LENGTHS, PAST_TIMEOUT, TIMEOUT, NEWEST)

TOLD = 900  # seconds for which a job that was handed out again is worth a word


def samples(
    ledger: Ledger, before: Ledger, shown: Iterable[str], connection_of: Callable[[str], str]
) -> Iterator[Sample]:
    """What the ledger says of these queues; `before` is the one that said so last."""
    for queue in sorted(shown):
        yield from _of_a_queue(ledger, queue, connection_of(queue))
    for key, count in ledger.long.items():
        known = count if key in before.long else 0  # a counter born at 1 would hide that from increase()
        yield LONG(known, connection_of(key[0]), *key)
    for (queue, job_class), timeout in ledger.timeouts.items():
        yield TIMEOUT(timeout.seconds, connection_of(queue), queue, job_class)


def _of_a_queue(ledger: Ledger, queue: str, connection: str) -> Iterator[Sample]:
    yield REPEATED(ledger.repeated[queue], connection, queue)
    yield LENGTHS(ledger.lengths.get(queue, NOTHING), connection, queue)
    yield PAST_TIMEOUT(ledger.past_timeout(queue), connection, queue)
    if queue in ledger.newest:
        yield NEWEST(ledger.newest[queue], connection, queue)
    if (queue, OTHER) not in ledger.long:
        yield LONG(0, connection, queue, OTHER)


def told(ledger: Ledger, now: int) -> Iterator[Note]:
    """A word about the last job that was handed out again, as a label cannot say which one it was."""
    last = ledger.last_repeat
    if last and now - last.held.seen < TOLD:
        yield Note(
            f"{last.held.job_class} (id {last.id}, queue {last.held.queue!r}) was handed out again"
            f" after {last.after} s, attempt {last.held.attempts}"
        )
