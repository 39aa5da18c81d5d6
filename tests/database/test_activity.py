"""The `activity` collector: connections by pool and state, waits, open transactions, and what a plain role may see."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from exporter.app import App
from exporter.model import Sample
from exporter.sources.database.activity import HIDDEN, WAIT_TYPES, WAITING, pool_of
from exporter.timing import Deadline

from ..patience import until
from ..world import add_jobs, database_of, poll, settings, state, states, value, watched

Db = psycopg.Connection[Any]

POOLS = {
    "exports": {"application_name": "worker-exports-*", "queues": ["exports"]},
    "default": {"application_name": "worker-?*", "queues": ["default"], "timeout": 60},
    "bouncer": {"application_name": "pooled-*", "queues": ["mail"], "pooled": True},
    "web": {"role": "app_web"},
}


class Sessions:
    """Sessions of other programs, ended with the test."""

    def __init__(self, dsn: str, stack: ExitStack) -> None:
        self.dsn, self.stack = dsn, stack

    def open(self, name: str = "", **params: Any) -> Db:
        """A session under this application_name."""
        connection = psycopg.connect(self.dsn, application_name=name, autocommit=True, **params)
        self.stack.callback(connection.close)
        return connection

    def busy(self, statement: str, name: str = "") -> Db:
        """A session in which this statement runs; nobody waits for it."""
        connection = self.open(name)
        self.stack.callback(connection.cancel_safe)
        connection.pgconn.send_query(statement.encode())
        return connection


@pytest.fixture
def sessions(dsn: str, db: Db) -> Iterator[Sessions]:
    """Opens sessions in the database."""
    with ExitStack() as stack:
        yield Sessions(dsn, stack)


@pytest.fixture
def web(db: Db) -> Iterator[str]:
    """A role that web requests use."""
    db.execute("CREATE ROLE app_web LOGIN")
    yield "app_web"
    db.execute("DROP ROLE app_web")


@pytest.fixture
def plain(db: Db) -> Iterator[str]:
    """A role of our own without pg_monitor."""
    db.execute("CREATE ROLE plain LOGIN")
    db.execute("GRANT SELECT ON jobs, failed_jobs, cache TO plain")
    yield "plain"
    db.execute("DROP OWNED BY plain")
    db.execute("DROP ROLE plain")


def connections(app: App) -> dict[tuple[str, str], float]:
    """The connections that are shown, by pool and state, without zeros."""
    return {
        (sample.labelled["pool"], sample.labelled["state"]): sample.value
        for sample in state(app, "activity").samples
        if sample.metric.name == "laravel_queue_database_connections" and sample.value
    }


def client_backends(db: Db) -> int:
    """How many there are on the whole server."""
    row = db.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").fetchone()
    return int(row[0]) if row else 0


def test_connections_by_pool_and_state(dsn: str, web: str, sessions: Sessions) -> None:
    """Each connection belongs to the first pool that fits by name or role, and is in the state PostgreSQL says."""
    sessions.open("worker-1")
    sessions.busy("SELECT pg_sleep(60)", "worker-2")
    sessions.open("worker-exports-1").execute("BEGIN")
    broken = sessions.open("pooled-1")
    broken.execute("BEGIN")
    with pytest.raises(psycopg.Error):
        broken.execute("SELECT 1/0")
    sessions.open("Worker-1", user=web)  # names are told apart by case
    sessions.open("stranger").execute("SET track_activities = off")
    with watched(dsn, pools=POOLS) as app:
        poll(app, "activity")
        assert connections(app) == {
            ("default", "idle"): 1,
            ("default", "active"): 1,
            ("exports", "idle_in_transaction"): 1,
            ("bouncer", "idle_in_transaction_aborted"): 1,
            ("web", "idle"): 1,
            ("other", "idle"): 1,  # the test itself
            ("other", "active"): 1,  # the exporter
            ("other", "other"): 1,  # the stranger, who tells nobody
        }
        assert value(app, "database_connections", pool="web", state="active") == 0
        assert value(app, "database_connections", pool="web", state="other") == 0


def test_workers_are_the_connections_of_a_pool_with_queues(dsn: str, sessions: Sessions) -> None:
    """A pool with queues counts its connections as workers, none as 0; one behind PgBouncer or without queues does
    not."""
    for name in ("worker-1", "worker-2", "pooled-1"):
        sessions.open(name)
    with watched(dsn, pools=POOLS) as app:
        poll(app, "activity")
        assert [value(app, "workers", pool=pool) for pool in POOLS] == [0, 2, None, None]


def test_workers_of_another_database_are_not_ours(dsn: str, sessions: Sessions) -> None:
    """A worker of the same name in another database of the server takes a connection, but works on other jobs."""
    sessions.open("worker-1")
    sessions.open("worker-1", dbname="postgres")
    with watched(dsn, pools=POOLS) as app:
        poll(app, "activity")
        assert value(app, "workers", pool="default") == 1
        assert value(app, "database_connections", pool="default", state="idle") == 2


@pytest.mark.parametrize(
    ("pool", "program", "role", "fits"),
    [
        ({"application_name": "worker-?*", "role": "app"}, "worker-1", "app", True),
        ({"application_name": "worker-?*", "role": "app"}, "worker-1", "web", False),
        ({"application_name": "worker-?*", "role": "app"}, "cron", "app", False),
        ({"application_name": "[app] *"}, "[app] worker", "app", True),
        ({"application_name": "worker-[12]"}, "worker-1", "app", False),
        ({"role": "app"}, None, "app", True),
    ],
)
def test_a_pool_is_recognised_by_all_that_is_given(
    pool: dict[str, str], program: str | None, role: str, fits: bool
) -> None:
    """A pattern and a role must both fit where both are given; in a pattern * and ? alone mean something else."""
    pools = database_of(settings("host=db", pools={"a": pool})).pools
    assert pool_of({"application_name": program, "role": role}, pools) == ("a" if fits else "other")


def test_kinds_of_waiting_are_a_closed_set(dsn18: str) -> None:
    """What a newer PostgreSQL waits for, of a kind that nobody knew, is `other`; and all kinds are there from 0 on."""
    with watched(dsn18) as app:
        (activity,) = [c for c in app.pollers[0].source.collectors if c.name == "activity"]
        raw = activity.fetch(Deadline(time.monotonic() + 5))
        waiting = [
            {**raw.sessions[0], "state": "active", "wait_event_type": kind, "sessions": 1}
            for kind in ("InjectionPoint", "IO")
        ]
        counted = {
            sample.labelled["wait_event_type"]: sample.value
            for sample in activity.measure(raw._replace(sessions=waiting), 0)
            if isinstance(sample, Sample) and sample.metric is WAITING
        }
        assert counted == dict.fromkeys((*WAIT_TYPES, "other"), 0) | {"other": 1, "IO": 1}


def test_usage_counts_client_backends_only(dsn: str, db: Db, sessions: Sessions) -> None:
    """Usage is client backends of all databases against what an application can get; background processes are none."""
    sessions.open("elsewhere", dbname="postgres")
    with watched(dsn) as app:
        poll(app, "activity")
        used = client_backends(db)
        most, reserved = (value(app, f"database_connections_{kind}") or 0 for kind in ("max", "reserved"))
        assert value(app, "database_connection_usage_ratio") == used / (most - reserved)
        assert sum(connections(app).values()) == used


def test_a_session_that_waits_for_a_lock_is_waiting(dsn: str, db: Db, sessions: Sessions) -> None:
    """A session that waits for another's row is waiting for a Lock; one that waits for its client is not waiting."""
    add_jobs(db, ("default", None, 0))
    holder = sessions.open()
    holder.execute("BEGIN")
    holder.execute("SELECT * FROM jobs FOR UPDATE")
    sessions.busy("SELECT * FROM jobs FOR UPDATE")
    with watched(dsn) as app:

        def waiting() -> float | None:
            poll(app, "activity")
            return value(app, "database_waiting_backends", wait_event_type="Lock")

        assert until(waiting) == 1
        assert value(app, "database_waiting_backends", wait_event_type="Client") is None
        holder.execute("COMMIT")
        until(lambda: waiting() == 0)


def test_the_oldest_transaction_of_each_kind(dsn: str, sessions: Sessions) -> None:
    """The oldest active and the oldest idle transaction of this database have at least their real age."""
    with watched(dsn) as app:

        def age(holder: str) -> float:
            return value(app, "database_oldest_transaction_age_seconds", holder=holder) or 0

        sessions.open(dbname="postgres").execute("BEGIN")  # holds nothing back here
        poll(app, "activity")
        assert (age("active"), age("idle_in_transaction")) == (0, 0)
        began = time.monotonic()
        sessions.busy("SELECT pg_sleep(60)")
        first = sessions.open()
        first.execute("BEGIN")
        until(lambda: time.monotonic() - began > 0.3)
        sessions.busy("SELECT pg_sleep(60)")
        sessions.open().execute("BEGIN")
        passed = time.monotonic() - began
        poll(app, "activity")
        assert passed - 0.2 < age("idle_in_transaction") < passed + 2
        assert passed - 0.2 < age("active") < passed + 2
        first.execute("COMMIT")
        poll(app, "activity")
        assert 0 < age("idle_in_transaction") < time.monotonic() - began - 0.3


def test_case_20_what_a_plain_role_cannot_see_is_absent(dsn: str, db: Db, plain: str, sessions: Sessions) -> None:
    """Case 20: without pg_monitor states, use, waits and transactions are absent, with one note; never a calm zero."""
    sessions.open("worker-1").execute("BEGIN")
    with watched(dsn.replace("postgres@", f"{plain}@"), pools=POOLS, queues={"default": {}}) as app:
        poll(app)
        assert all(state.up for state in states(app).values())
        assert state(app, "activity").notes == (HIDDEN,)
        hidden = {"database_connections", "database_connection_usage_ratio", "database_waiting_backends"}
        shown = {sample.metric.name.removeprefix("laravel_queue_") for sample in state(app, "activity").samples}
        assert not hidden & shown
        for holder in ("active", "idle_in_transaction", "standby"):
            assert value(app, "database_oldest_transaction_age_seconds", holder=holder) is None
        for holder in ("prepared", "replication_slot"):  # these are no secret
            assert value(app, "database_oldest_transaction_age_seconds", holder=holder) == 0
        assert value(app, "workers", pool="default") == 1
        assert value(app, "database_connections_max") == int(db.info.parameter_status("max_connections") or 100)
        db.execute(f"GRANT pg_monitor TO {plain}")
        poll(app, "activity")
        assert state(app, "activity").notes == ()
        assert (value(app, "database_oldest_transaction_age_seconds", holder="idle_in_transaction") or 0) > 0


def test_a_plain_role_takes_no_background_process_for_a_worker(dsn: str, db: Db, plain: str) -> None:
    """A plain role, from whom the kind of a process is hidden, counts client backends all the same."""
    pools = {"all": {"application_name": "*", "queues": ["default"]}}
    with watched(dsn.replace("postgres@", f"{plain}@"), pools=pools) as app:
        poll(app, "activity")
        here = db.execute(
            "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()"
        )
        assert value(app, "workers", pool="all") == len(here.fetchall())
