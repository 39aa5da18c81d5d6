"""The tasks beside their queues, and what follows from both."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.browser import status_page
from exporter.demo.fargate.aws import EcsService
from exporter.status import report
from exporter.terminal import text

from ..world import HandClock, poll, state, value
from .cloud import Answer, Asked, World, about, error
from .watching import watch

WORKER = {"ecs": {"cluster": "workers", "service": "mail"}}


def tasks(app: Any, queue: str) -> tuple[float | None, ...]:
    """Running, desired, pending."""
    return tuple(value(app, f"ecs_{each}_tasks", queue=queue) for each in ("running", "desired", "pending"))


@pytest.mark.parametrize(
    ("waiting", "running", "desired", "backlog"), [(40, 0, 0, 40), (40, 4, 4, 10), (0, 0, 0, 0), (3, 2, 5, 1.5)]
)
def test_case_67_backlog_per_task(world: World, waiting: int, running: int, desired: int, backlog: float) -> None:
    """Case 67: with no task the backlog is all that waits, beside running 0; with none waiting it is 0."""
    world.queue("mail", waiting)
    world.aws.ecs.services["workers", "mail"] = EcsService(running, desired, desired - running)
    with watch(world, queues={"mail": WORKER}) as app:
        poll(app, source="sqs")
        assert tasks(app, "mail") == (running, desired, desired - running)
        assert value(app, "backlog_per_task", queue="mail") == backlog
        says = [f"no task runs, {waiting} jobs waiting"] if waiting and not running else []
        assert [each.says for each in report(app.board).findings] == says  # nobody said how much would be too much


def test_what_a_task_can_do_in_time(world: World) -> None:
    """A target of 30 s and jobs of half a second: 60 per task are acceptable, 61 are over the limit."""
    world.queue("mail", 61)
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    with watch(world, queues={"mail": WORKER | {"target_wait": "30s", "seconds_per_job": "0.5"}}) as app:
        poll(app, source="sqs")
        assert value(app, "acceptable_backlog_per_task", queue="mail") == 60
        (finding,) = report(app.board, runbooks=("LaravelQueueBacklogPerTaskHigh",)).findings
        assert (finding.where, finding.says) == ("sqs/mail", "61 jobs waiting per task, 60 can be done in time")
        world.aws.ecs.services["workers", "mail"] = EcsService(2, 2)
        poll(app, source="sqs")
        assert report(app.board).findings == ()


def test_no_task_while_jobs_wait(world: World) -> None:
    """Nothing starts the first task by itself: that is told at once, with its alert, and the tasks are on the page."""
    world.queue("mail", 1)
    world.queue("exports")
    for name in ("mail", "exports"):
        world.aws.ecs.services["workers", name] = EcsService(0, 2, 1)
    exports = {"ecs": {"cluster": "workers", "service": "exports"}}
    with watch(world, queues={"mail": WORKER, "exports": exports}) as app:
        poll(app, source="sqs")
        said = report(app.board, runbooks=("LaravelQueueScaleFromZeroStuck",))
        (found,) = said.findings
        assert (found.where, found.says, found.over) == ("sqs/mail", "no task runs, 1 job waiting", True)
        assert found.alert == "LaravelQueueScaleFromZeroStuck"
        lines = [line.split() for line in text(said).splitlines()]
        at = lines.index(["WORKERS", "now", "desired", "pending"])
        assert lines[at + 1 : at + 3] == [["sqs/exports", "0", "2", "1"], ["sqs/mail", "0", "2", "1"]]
        assert "<td" in status_page(said).partition("pending</th>")[2].partition("</table>")[0]


def test_one_service_may_work_on_several_queues(world: World) -> None:
    """It is asked for once, and each of its queues shows its tasks."""
    for name in ("mail", "exports"):
        world.queue(name, 6)
    world.aws.ecs.services["workers", "mail"] = EcsService(3, 3)
    with watch(world, queues={"mail": WORKER, "exports": WORKER}) as app:
        poll(app, source="sqs")
        assert tasks(app, "mail") == tasks(app, "exports") == (3, 3, 0)
        assert value(app, "backlog_per_task", queue="exports") == 2
        assert world.cloud.operations().count("DescribeServices") == 1


def test_ten_services_at_a_time_for_each_cluster(world: World) -> None:
    """23 services in one cluster and one in another: four requests."""
    queues: dict[str, Any] = {}
    for number in range(24):
        cluster = "workers" if number else "others"
        queues[f"q{number}"] = {"ecs": {"cluster": cluster, "service": f"s{number}"}}
        world.aws.ecs.services[cluster, f"s{number}"] = EcsService(number, number)
    with watch(world, queues=queues) as app:
        poll(app, "ecs", source="sqs")
        assert world.cloud.operations() == ["DescribeServices"] * 4
        assert [value(app, "ecs_running_tasks", queue=f"q{number}") for number in range(24)] == list(range(24))


def test_missing_and_deleted_services_are_no_zeros(world: World) -> None:
    """MISSING and INACTIVE are errors by name: neither says that no worker runs. The others are shown."""
    queues = {name: {"ecs": {"cluster": "workers", "service": name}} for name in ("mail", "gone", "lost")}
    world.aws.ecs.services["workers", "mail"] = EcsService(2, 2)
    world.aws.ecs.services["workers", "gone"] = EcsService(0, 0, status="INACTIVE")
    with watch(world, queues=queues) as app:
        poll(app, "ecs", source="sqs")
        assert tasks(app, "mail") == (2, 2, 0)
        assert tasks(app, "gone") == tasks(app, "lost") == (None, None, None)
        assert value(app, "source_errors_total", collector="ecs", reason="not_found") == 2
        assert set(state(app, "ecs", "sqs").notes) == {
            "not_found: service gone of the cluster workers was deleted",
            "not_found: service lost of the cluster workers: MISSING",
        }


def described(*services: object) -> Answer:
    """An answer with these services in it."""
    return "200 OK", {"services": list(services), "failures": [None]}


def test_an_odd_service_is_named_and_hides_no_other(world: World) -> None:
    """One count that is none, and entries that are no services: the one is told by its name, the others are shown."""
    queues = {name: {"ecs": {"cluster": "workers", "service": name}} for name in ("mail", "odd")}
    mail = {"serviceName": "mail", "status": "ACTIVE", "runningCount": 2, "desiredCount": 3, "pendingCount": 1}
    world.cloud.mood = lambda asked: described(None, mail, mail | {"serviceName": "odd", "runningCount": "many"})
    with watch(world, queues=queues) as app:
        poll(app, "ecs", source="sqs")
        assert tasks(app, "mail") == (2, 3, 1)
        assert state(app, "ecs", "sqs").notes == (
            "malformed: DescribeServices: service odd of the cluster workers: the answer is not what it should be",
        )


def test_a_service_may_be_named_by_its_arn(world: World) -> None:
    """As a cluster may: ECS answers with both, and says which ARN is missing."""
    world.aws.ecs.services["workers", "mail"] = EcsService(2, 2)
    arn = "arn:aws:ecs:eu-west-1:123456789012:service/workers/{}"
    mail: dict[str, Any] = {"serviceName": "mail", "serviceArn": arn.format("mail"), "status": "ACTIVE"}
    mail |= {f"{state}Count": 2 for state in ("running", "desired", "pending")}
    missing = [{"arn": arn.format("other"), "reason": "NOT_ASKED"}, {"arn": arn.format("gone"), "reason": "MISSING"}]
    world.cloud.mood = lambda asked: ("200 OK", {"services": [mail], "failures": missing})
    queues = {name: {"ecs": {"cluster": "workers", "service": arn.format(name)}} for name in ("mail", "gone")}
    with watch(world, queues=queues) as app:
        poll(app, "ecs", source="sqs")
        assert tasks(app, "mail") == (2, 2, 2)
        assert state(app, "ecs", "sqs").notes == (
            f"not_found: service {arn.format('gone')} of the cluster workers: MISSING",
        )


def test_each_region_is_asked_for_its_own_services(world: World) -> None:
    """A queue in another region has its tasks there."""
    far = "https://sqs.us-east-1.amazonaws.com/123456789012/far"
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    with watch(world, queues={"mail": WORKER, far: WORKER}) as app:
        poll(app, "ecs", source="sqs")
        regions = {asked.headers["authorization"].split("/")[2] for asked in world.cloud.asked}
        assert regions == {"eu-west-1", "us-east-1"}
        assert tasks(app, "mail") == tasks(app, far) == (1, 1, 0)


def test_a_cluster_that_is_not_there_hides_no_other(world: World) -> None:
    """One cluster's name is wrong; the services of the other one are shown."""
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    queues = {"mail": WORKER, "exports": {"ecs": {"cluster": "wrokers", "service": "exports"}}}
    with watch(world, queues=queues) as app:
        poll(app, "ecs", source="sqs")
        assert tasks(app, "mail") == (1, 1, 0)
        (note,) = state(app, "ecs", "sqs").notes
        assert note.startswith("not_found: cluster wrokers: DescribeServices: ClusterNotFoundException")


def test_a_deployment_is_known(world: World) -> None:
    """While one deployment replaces another there are two, so more tasks than desired are no surprise."""
    world.aws.ecs.services["workers", "mail"] = EcsService(4, 2, deployments=2)
    with watch(world, queues={"mail": WORKER}) as app:
        poll(app, "ecs", source="sqs")
        assert value(app, "ecs_deployments", queue="mail") == 2


def test_without_the_queue_there_are_no_derived_numbers(world: World) -> None:
    """A queue that may not be asked has tasks, but no backlog per task: it is unknown, not 0."""
    world.queue("mail", 5)
    world.queue("exports", 5)
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    world.cloud.mood = lambda asked: (
        error("AccessDenied") if asked.operation == "GetQueueAttributes" and "/mail" in asked.body else None
    )
    with watch(world, queues={"mail": WORKER, "exports": {}}) as app:
        poll(app, source="sqs")
        assert value(app, "ecs_running_tasks", queue="mail") == 1
        assert value(app, "backlog_per_task", queue="mail") is None


def test_an_old_count_makes_no_new_backlog(world: World, hand: HandClock) -> None:
    """While the queues do not answer, their last count is used for one more poll and then no longer."""
    world.queue("mail", 5)
    world.aws.ecs.services["workers", "mail"] = EcsService(1, 1)
    with watch(world, hand.clock, queues={"mail": WORKER}) as app:
        poll(app, source="sqs")
        world.cloud.mood = lambda asked: error("AccessDenied") if asked.operation == "GetQueueAttributes" else None
        for shown in (5, None):
            hand.pass_(60)
            poll(app, source="sqs")
            assert value(app, "backlog_per_task", queue="mail") == shown
            assert value(app, "ecs_running_tasks", queue="mail") == 1


def test_seconds_per_job_are_measured(world: World, hand: HandClock) -> None:
    """Little's law: three messages in flight and 60 deleted a minute are jobs of three seconds: 10 in half a minute."""
    url = world.queue("mail", 4, VisibilityTimeout="7200")
    world.aws.ecs.services["workers", "mail"] = EcsService(3, 3)
    for _ in range(3):
        world.receive(url)
    hand.wall = hand.wall // 60 * 60 + 1
    deleted = {hand.wall // 60 * 60 + 60 * number: 60.0 for number in range(20)}
    world.measured("mail", "NumberOfMessagesDeleted", deleted)
    with watch(world, hand.clock, cloudwatch={}, queues={"mail": WORKER | {"target_wait": "30s"}}) as app:
        for _ in range(5):
            poll(app, source="sqs")
            assert value(app, "acceptable_backlog_per_task", queue="mail") is None
            hand.pass_(60)
        for _ in range(10):
            poll(app, source="sqs")
            hand.pass_(60)
        assert value(app, "acceptable_backlog_per_task", queue="mail") == pytest.approx(10)


def test_idle_tasks_are_not_told_where_a_queue_is_unknown(world: World) -> None:
    """One of two queues of a service may not be asked: what it holds is unknown, so nobody says that tasks idle."""
    world.queue("mail", 10)
    url = world.queue("exports", 5)
    world.aws.ecs.services["workers", "mail"] = EcsService(5, 5)
    for _ in range(5):
        world.receive(url)
    with watch(world, queues={"mail": WORKER, "exports": WORKER}) as app:
        shown = []
        for denied in (False, False, False, True, True, True, False, False, False):
            world.cloud.mood = about("GetQueueAttributes", "/exports", error("AccessDenied")) if denied else well
            poll(app, source="sqs")
            shown.append(value(app, "ecs_idle_tasks", queue="mail"))
        assert shown == [None, None, 0, None, None, None, None, None, 0]
        assert value(app, "ecs_running_tasks", queue="mail") == 5


def well(_asked: Asked) -> None:
    """A cloud that is well."""
