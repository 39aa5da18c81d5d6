"""The world's processes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from exporter.demo.incidents import HEALTHY, INCIDENTS
from exporter.demo.laravel import Connection
from exporter.demo.plan import Arrivals, Backlog, Job, Plan, Pool
from exporter.demo.world import World

from ..patience import until

LONG = Job("App\\Jobs\\Export", (60, 60))
DEADLY = Job("App\\Jobs\\ResizeImages", (0.1, 0.1), kills=1.0)
MakeWorld = Callable[[Plan], World]


@pytest.fixture
def start(tables: str, connection: Connection) -> MakeWorld:
    """Starts a world on empty tables."""

    def start(plan: Plan) -> World:
        world = World(plan, tables)
        world.fill()
        world.start()
        return world

    return start


def processes(connection: Connection, application_name: str) -> set[int]:
    """The server's processes of connections with this name."""
    rows = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name = %s", (application_name,)
    ).fetchall()
    return {pid for (pid,) in rows}


def test_all_end_at_once(start: MakeWorld, connection: Connection) -> None:
    """A world that is left ends in the middle of its jobs, and none of its connections stays."""
    plan = Plan(
        {},
        pools=(Pool("default", ("default",), workers=3),),
        backlogs=(Backlog("default", LONG, 3, oldest=0),),
        open_transactions=("report",),
    )
    with start(plan):
        until(lambda: reserved(connection) == 3)
        assert len(processes(connection, "worker-default")) == 3
        assert len(processes(connection, "web")) == plan.web_sessions
        began = time.monotonic()
    assert time.monotonic() - began < 2
    until(lambda: not any(processes(connection, name) for name in ("worker-default", "web", "report")))
    assert reserved(connection) == 3


def reserved(connection: Connection) -> int:
    """Rows that a worker holds, or held when it died."""
    ((count,),) = connection.execute("SELECT count(*) FROM jobs WHERE reserved_at IS NOT NULL").fetchall()
    return int(count)


def test_killed_worker_is_started_again(start: MakeWorld, connection: Connection) -> None:
    """A worker that is killed in the middle of a job loses its connection but not its job; another one starts."""
    plan = Plan(
        {},
        pools=(Pool("default", ("default",), workers=1),),
        backlogs=(Backlog("default", DEADLY, 2, oldest=0),),
        web_sessions=0,
    )
    with start(plan):
        (first,) = processes(connection, "worker-default")
        until(lambda: first not in processes(connection, "worker-default"))
        assert reserved(connection) == 1
        until(lambda: reserved(connection) == 2)


def test_deploy_restarts_the_workers_that_hear_of_it(start: MakeWorld, connection: Connection) -> None:
    """After `queue:restart` a pool has new connections, unless its cache is one of its own."""
    plan = Plan(
        {},
        pools=(
            Pool("vm-a", ("default",), workers=2, sleep=0.05),
            Pool("vm-b", ("default",), workers=2, sleep=0.05, own_cache=True),
        ),
        web_sessions=0,
        restart_after=0.2,
    )
    with start(plan):
        old = {name: processes(connection, name) for name in ("worker-vm-a", "worker-vm-b")}
        until(lambda: len(new := processes(connection, "worker-vm-a")) == 2 and not new & old["worker-vm-a"])
        assert processes(connection, "worker-vm-b") == old["worker-vm-b"]


def test_world_outlasts_broken_connections(start: MakeWorld, connection: Connection) -> None:
    """Workers and web sessions whose connections an administrator ends come back."""
    plan = Plan(
        {},
        pools=(Pool("default", (), workers=2, sleep=0.05),),
        arrivals=(Arrivals("default", LONG, per_second=100),),
        web_sessions=2,
    )
    with start(plan):
        names = ("worker-default", "web")
        old = {name: processes(connection, name) for name in names}
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ANY(%s)", (list(names),)
        )

        def back(name: str) -> bool:
            """As many connections as before, all of them new."""
            new = processes(connection, name)
            return len(new) == 2 and not new & old[name]

        until(lambda: all(back(name) for name in names))


def test_past_is_in_order(start: MakeWorld, connection: Connection) -> None:
    """A backlog became due bit by bit, in the order of its ids; delayed and held jobs are where the plan has them."""
    plan = Plan(
        {},
        backlogs=(
            Backlog("default", LONG, 10, oldest=100),
            Backlog("delayed", LONG, 2, oldest=-50, newest=-60),
            Backlog("held", LONG, 1, oldest=200, reserved=120, attempts=1),
        ),
        web_sessions=0,
        paused=("default",),
    )
    with start(plan):
        rows = connection.execute(
            "SELECT queue, floor(extract(epoch FROM now()))::int - available_at, created_at - available_at,"
            " floor(extract(epoch FROM now()))::int - reserved_at, attempts FROM jobs ORDER BY id"
        ).fetchall()
        assert connection.execute("SELECT value FROM cache").fetchall() == [("b:1;",)]
    ages = [age for queue, age, *_ in rows if queue == "default"]
    assert ages == sorted(ages, reverse=True)
    assert ages[0] in range(100, 103)
    assert ages[-1] in range(10, 13)
    (first, second) = [(age, created) for queue, age, created, *_ in rows if queue == "delayed"]
    assert (first[0] // 10, first[1], second[0] // 10, second[1]) == (-5, -50, -6, -55)
    assert [(attempts, held // 10) for queue, _, _, held, attempts in rows if queue == "held"] == [(1, 12)]


def test_dead_rows_stay_while_a_transaction_is_open(start: MakeWorld, connection: Connection) -> None:
    """Rows of finished jobs are dead, and a vacuum removes them only once nobody can see them any more."""
    plan = Plan({}, dead_rows=1000, open_transactions=("report",), web_sessions=0)

    def left() -> int:
        """Rows that a vacuum could not remove: those that the table's pages still hold."""
        connection.execute("VACUUM jobs")
        ((pages,),) = connection.execute("SELECT pg_relation_size('jobs') / 8192").fetchall()
        return int(pages)

    with start(plan):
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
        assert left() > 50
    until(lambda: left() == 0)


def test_web_application_dispatches_at_its_rate(start: MakeWorld, connection: Connection) -> None:
    """Jobs arrive in their queues in proportion to the plan; delayed ones are not due yet."""
    arrivals = (Arrivals("default", LONG, per_second=200), Arrivals("later", LONG, per_second=20, delay=60))
    with start(Plan({}, arrivals=arrivals)):

        def counts() -> dict[str, int]:
            return dict(connection.execute("SELECT queue, count(*) FROM jobs GROUP BY queue").fetchall())

        until(lambda: sum(counts().values()) >= 150 and counts().get("later"))
        seen = counts()
    assert seen["later"] / sum(seen.values()) < 0.3  # one in eleven
    ((soonest,),) = connection.execute(
        "SELECT min(available_at - created_at) FROM jobs WHERE queue = 'later'"
    ).fetchall()
    assert soonest == 60


def test_healthy_world_looks_after_every_queue() -> None:
    """Every queue that the healthy world's web application uses has workers and a target."""
    used = {some.queue for some in HEALTHY.arrivals}
    assert used == set(HEALTHY.targets) == {queue for pool in HEALTHY.pools for queue in pool.queues}


@pytest.mark.parametrize("name", sorted(INCIDENTS.keys() - {"double-run", "short-retry-after"}))
def test_jobs_end_before_they_are_handed_out_again(name: str) -> None:
    """In all other incidents no job outlasts its worker's timeout or retry_after: that would be one of those two."""
    plan = INCIDENTS[name].plan
    for job in plan.jobs.values():
        assert job.seconds[1] < (job.timeout or 60) < plan.retry_after
