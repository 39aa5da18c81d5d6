"""Single jobs in great numbers: of jobs, queues and classes. What is read, kept and shown stays bounded."""

from __future__ import annotations

import gc
import time
import tracemalloc

from exporter.app import App
from exporter.queues import DROPPED
from exporter.sources.database.questions import MOST_HELD
from exporter.sources.ledger import Ledger
from exporter.timing import Deadline

from ..world import HandClock, poll, series, state, value, watched
from .holding import SLOW, Db, payload

MOST = 2000
# So many held jobs: their queue and class are expressions of their number n.
HELD = """
INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)
SELECT {queue}, replace(%(payload)s, 'Slow', {job_class}), 1, floor(extract(epoch FROM now())) - %(age)s, 0, 0
  FROM generate_series(%(first)s, %(first)s + %(count)s - 1) AS n
"""


def hold_many(
    db: Db, count: int, age: int, *, queue: str = "'default'", job_class: str = "'Slow'", first: int = 1
) -> None:
    """Add so many jobs that were held for so many seconds."""
    text = HELD.format(queue=queue, job_class=job_class)
    db.execute(text.encode(), {"payload": payload(), "count": count, "age": age, "first": first})
    db.execute("ANALYZE jobs")


def look(app: App) -> None:
    """A pass, and the look at single jobs that follows it."""
    poll(app, "jobs", "reservations")


def ledger(app: App) -> Ledger:
    """What is known of single jobs."""
    found: Ledger = app.pollers[0].source.collectors[1].ledger  # type: ignore[attr-defined]
    return found


def counted(app: App, name: str) -> float:
    """A metric summed over all its series."""
    return sum(n for (metric, _), n in series(app.exposition.page("text")).items() if metric == f"laravel_queue_{name}")


def queues(app: App) -> set[str]:
    """The queues that are told of."""
    return {s.labelled["queue"] for s in state(app, "reservations").samples if "queue" in s.labelled}


def test_twenty_thousand_held_in_one_queue(dsn: str, db: Db) -> None:
    """Two thousand are looked at and stay the ones that are; a note says that it is not all, and none are mixed up."""
    assert MOST == MOST_HELD
    hold_many(db, 20_000, 100)
    with watched(dsn) as app:
        for _ in range(3):
            look(app)
            assert len(ledger(app).held) == MOST
            assert value(app, "long_reservations_total", job_class=SLOW) in (0, MOST)
        assert value(app, "jobs", state="expired") == 20_000
        assert "not all jobs that are held are looked at" in state(app, "reservations").notes[0]
        db.execute("UPDATE jobs SET attempts = attempts + 1, reserved_at = reserved_at + 95")
        look(app)
        assert value(app, "reservations_repeated_total") == MOST
        assert value(app, "reservation_seconds_count") == MOST


def test_case_77_ten_thousand_queues_with_a_held_job_each(dsn: str, db: Db) -> None:
    """Case 77: a hundred queues are told of and the rest as `other`; of their jobs as many are looked at as may be."""
    hold_many(db, 10_000, 60, queue="'queue-' || n")
    with watched(dsn) as app:
        look(app)
        look(app)
        assert len(queues(app)) == 101
        assert len(ledger(app).held) == MOST
        assert counted(app, "long_reservations_total") == MOST
        assert "not all jobs that are held are looked at" in state(app, "reservations").notes[0]


def test_a_few_thousand_less_are_all_seen(dsn18: str, db18: Db) -> None:
    """At the limit nothing is left out, in many queues as in one."""
    hold_many(db18, MOST - 1, 60, queue="'queue-' || n %% 50")
    with watched(dsn18) as app:
        look(app)
        look(app)
        assert state(app, "reservations").notes == ()
        assert counted(app, "long_reservations_total") == MOST - 1


def test_case_77_ten_thousand_job_classes(dsn: str, db: Db) -> None:
    """Case 77: a hundred classes have series of their own; the rest are `other`, and each of those is counted."""
    with watched(dsn) as app:
        for turn in range(10):
            db.execute("TRUNCATE jobs")
            hold_many(db, 1000, 50, job_class="'Job' || n", first=turn * 1000)
            look(app)
        look(app)
        classes = {s.labelled["job_class"] for s in state(app, "reservations").samples if "job_class" in s.labelled}
        assert len(classes) == 101
        assert counted(app, "long_reservations_total") == 10_000
        assert value(app, "long_reservations_total", job_class="other") == 9900
        assert value(app, "labels_dropped_total", collector="reservations", label="job_class") == 9900


def test_measuring_again_folds_nothing_twice(dsn18: str, db18: Db) -> None:
    """The same answer measured again gives the same counters, the hundred classes included."""
    hold_many(db18, 150, 50, job_class="'Job' || n")
    with watched(dsn18) as app:
        poll(app, "jobs")
        collector = app.pollers[0].source.collectors[1]
        raw = collector.fetch(Deadline(time.monotonic() + 5))
        measured = [list(collector.measure(raw, 0)) for _ in range(3)]
        assert measured[0] == measured[1] == measured[2]
        assert DROPPED(50, "database", "reservations", "job_class") in measured[0]


def test_case_77_memory_stays_flat(dsn18: str, db18: Db) -> None:
    """Case 77: however many jobs, queues and classes come and go, what is kept of them does not grow."""
    hand, kept = HandClock(), []
    tracemalloc.start()
    with watched(dsn18, hand.clock) as app:
        for turn in range(21):
            db18.execute("TRUNCATE jobs")
            hold_many(db18, 150, 50, queue="'queue-' || n", job_class="'Job' || n", first=turn * 150)
            look(app)
            hand.pass_(600)
            assert len(queues(app)) == 101
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(kept[14:]) < max(kept[7:14]) + 20_000, "bytes"
