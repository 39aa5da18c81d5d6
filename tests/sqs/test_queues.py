"""What is said of queues, read from SQS's own protocol."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.status import report
from exporter.terminal import text

from ..world import poll, state, value
from .cloud import World, about
from .watching import watch

AGAIN = ("laravel_queue_jobs", "laravel_queue_retry_after_seconds")


def counts(app: Any, queue: str) -> tuple[float | None, ...]:
    """Ready, reserved, delayed."""
    return tuple(value(app, "jobs", queue=queue, state=each) for each in ("ready", "reserved", "delayed"))


def test_case_63_states_are_told_apart(world: World) -> None:
    """Case 63: visible 0, in flight 3, delayed 2 are told apart: not idle while work is in flight."""
    url = world.queue("mail", 3, VisibilityTimeout="600")
    for _ in range(3):
        assert world.receive(url)
    with world.unseen():
        for _ in range(2):
            world.client("sqs").send_message(QueueUrl=url, MessageBody="{}", DelaySeconds=600)
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert counts(app, "mail") == (0, 3, 2)
        assert value(app, "jobs", queue="mail", state="expired") is None
        assert value(app, "retry_after_seconds", queue="mail") == 600


def test_one_request_for_each_queue(world: World) -> None:
    """However much is in a queue, a poll costs one request for it, and the page counts it."""
    for name, messages in (("mail", 20), ("exports", 0)):
        world.queue(name, messages)
    with watch(world, queues={"mail": {}, "exports": {}}) as app:
        poll(app, source="sqs")
        assert world.cloud.operations() == ["GetQueueAttributes"] * 2
        assert value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="ok") == 2
        assert value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="throttled") == 0
        assert value(app, "queues", connection="sqs") == 2


def test_case_64_nothing_is_zero(world: World) -> None:
    """Case 64 (a): an empty queue says 0 for each state that SQS has, and that nobody waits."""
    world.queue("mail")
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert counts(app, "mail") == (0, 0, 0)
        assert value(app, "oldest_job_age_seconds", queue="mail") == 0


@pytest.mark.parametrize(
    "missing", ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "VisibilityTimeout", "QueueArn"]
)
def test_case_64_missing_is_no_zero(world: World, missing: str) -> None:
    """Case 64 (b): an answer without an attribute is that queue's error, by name, and gives no series of it."""
    world.queue("mail", 1)
    world.queue("exports", 1)
    attributes = {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "VisibilityTimeout": "30",
        "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:mail",
    }
    attributes.pop(missing)
    world.cloud.mood = about("GetQueueAttributes", "/mail", ("200 OK", {"Attributes": attributes}))
    with watch(world, queues={"mail": {}, "exports": {}}) as app:
        poll(app, source="sqs")
        assert counts(app, "mail") == (None, None, None)
        assert counts(app, "exports") == (1, 0, 0)
        assert value(app, "source_errors_total", collector="queues", reason="malformed") == 1
        assert state(app, "queues", "sqs").notes == (f"malformed: mail: the answer has no attribute '{missing}'",)


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({}, {"fifo": "false", "deduplication_scope": "", "throughput_limit": ""}),
        ({"FifoQueue": "true"}, {"fifo": "true", "deduplication_scope": "queue", "throughput_limit": "perQueue"}),
        (
            {"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"},
            {"fifo": "true", "deduplication_scope": "messageGroup", "throughput_limit": "perMessageGroupId"},
        ),
    ],
)
def test_the_kind_of_a_queue(world: World, attributes: dict[str, Any], kind: dict[str, str]) -> None:
    """Standard or FIFO; and of a FIFO queue, whether it has high throughput."""
    name = "orders.fifo" if attributes else "orders"
    world.queue(name, **attributes)
    with watch(world, queues={name: {}}) as app:
        poll(app, source="sqs")
        assert value(app, "sqs_queue_info", queue=name, **kind) == 1


def test_case_62_the_suffix_goes_before_fifo(world: World) -> None:
    """Case 62: with the suffix -staging, emails.fifo is asked for as emails-staging.fifo and shown as emails.fifo."""
    world.queue("emails-staging.fifo", 2)
    with watch(world, suffix="-staging", queues={"emails.fifo": {}}) as app:
        poll(app, source="sqs")
        assert counts(app, "emails.fifo") == (2, 0, 0)
        assert f"{world.aws.prefix}/emails-staging.fifo" in world.cloud.asked[0].body


def test_a_url_is_used_as_it_is(world: World) -> None:
    """A queue that is named by its URL gets neither prefix nor suffix, and keeps its name as configured."""
    url = world.queue("other-app", 3)
    with watch(world, suffix="-staging", queues={url: {}}) as app:
        poll(app, source="sqs")
        assert counts(app, url) == (3, 0, 0)


def test_without_a_prefix_the_url_is_looked_up_once(world: World) -> None:
    """A name alone is looked up in the role's own account, and again only if the queue is gone from there."""
    url = world.queue("mail", 1)
    with watch(world, prefix=None, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        poll(app, source="sqs")
        assert counts(app, "mail") == (1, 0, 0)
        assert world.cloud.operations() == ["GetQueueUrl", "GetQueueAttributes", "GetQueueAttributes"]
        with world.unseen():
            world.client("sqs").delete_queue(QueueUrl=url)
        poll(app, source="sqs")
        assert state(app, "queues", "sqs").reason == "not_found"
        poll(app, source="sqs")
        assert world.cloud.operations()[-1] == "GetQueueUrl"


def test_the_status_page_needs_no_word_of_sqs(world: World) -> None:
    """The same table shows these queues; a queue that could not be asked is there, with nothing known of it."""
    world.queue("mail", 3)
    with watch(world, queues={"mail": {"target_wait": "30s"}, "gone": {"target_wait": "1m"}}) as app:
        poll(app, source="sqs")
        lines = text(report(app.board)).splitlines()
        assert [line.split() for line in lines if line.startswith("  sqs/")][:2] == [
            ["sqs/gone", "-", "-", "-", "-", "-", "1m"],
            ["sqs/mail", "3", "0", "0", "-", "-", "30s"],
        ]
        assert any("not_found: gone: GetQueueAttributes: AWS.SimpleQueueService.NonExistentQueue" in x for x in lines)


def test_a_timeout_that_is_not_below_the_visibility_timeout_is_told(world: World) -> None:
    """SQS hands a message out again after VisibilityTimeout: a worker that may take as long runs it twice."""
    world.queue("mail", VisibilityTimeout="60")
    world.queue("exports", VisibilityTimeout="61")
    with watch(world, queues={"mail": {"timeout": "60s"}, "exports": {"timeout": "60s"}}) as app:
        poll(app, source="sqs")
        findings = report(app.board, runbooks=("LaravelQueueTimeoutExceedsRetryAfter",)).findings
        assert [(found.where, found.says, found.over) for found in findings] == [
            ("sqs/workers/mail", "the workers' timeout 1m, not below retry_after 1m", True)
        ]
        assert value(app, "worker_timeout_seconds", pool="workers", queue="mail") == 60
