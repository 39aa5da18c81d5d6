"""Dead-letter queues: always there, beside the queue whose messages end in them."""

from __future__ import annotations

from exporter.status import report

from ..world import poll, state, value
from .cloud import World, about, error
from .watching import watch


def policy(name: str, account: str = "123456789012") -> dict[str, object]:
    """A redrive policy to this queue."""
    return {"deadLetterTargetArn": f"arn:aws:sqs:eu-west-1:{account}:{name}", "maxReceiveCount": 3}


def test_case_70_zero_first(world: World) -> None:
    """Case 70: an empty dead-letter queue says 0 from the first poll on, so an alert on > 0 has something to see."""
    world.queue("mail-failed")
    world.queue("mail", RedrivePolicy=policy("mail-failed"))
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert value(app, "sqs_dead_letter_messages", queue="mail") == 0
        assert value(app, "sqs_dead_letter_info", queue="mail", dead_letter_queue="mail-failed", foreign="false") == 1
        assert report(app.board).findings == ()


def test_case_70_one_from_the_first_sample_on(world: World) -> None:
    """Case 70: one that was there before us shows as 1, linked to its source, and is over its limit at once."""
    world.queue("mail-failed", 1)
    world.queue("mail", RedrivePolicy=policy("mail-failed"))
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert value(app, "sqs_dead_letter_messages", queue="mail") == 1
        (finding,) = report(app.board).findings
        assert (finding.where, finding.says, finding.over) == ("sqs/mail", "1 dead letter", True)


def test_case_70_in_another_account(world: World) -> None:
    """Case 70: one in another account is flagged, not asked for, and said to be out of sight: no zero."""
    world.queue("mail")
    attributes = {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "VisibilityTimeout": "30",
        "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:mail",
        "RedrivePolicy": '{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:999999999999:lost","maxReceiveCount":"5"}',
    }
    world.cloud.mood = about("GetQueueAttributes", "/mail", ("200 OK", {"Attributes": attributes}))
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert value(app, "sqs_dead_letter_info", queue="mail", dead_letter_queue="lost", foreign="true") == 1
        assert value(app, "sqs_dead_letter_messages", queue="mail") is None
        assert len(world.cloud.asked) == 1
        assert "mail: its dead-letter queue is in another account" in state(app, "queues", "sqs").notes[0]


def test_one_for_two_queues_is_asked_for_once(world: World) -> None:
    """Both queues show what is in it: which of them it came from, SQS does not say."""
    world.queue("failed", 4)
    for name in ("mail", "exports"):
        world.queue(name, RedrivePolicy=policy("failed"))
    with watch(world, queues={"mail": {}, "exports": {}}) as app:
        poll(app, source="sqs")
        assert value(app, "sqs_dead_letter_messages", queue="mail") == 4
        assert value(app, "sqs_dead_letter_messages", queue="exports") == 4
        assert len(world.cloud.asked) == 3


def test_one_that_may_not_be_asked_for_costs_its_source_nothing(world: World) -> None:
    """Its own series is absent and the reason told; the queue is shown."""
    world.queue("mail-failed", 1)
    world.queue("mail", 5, RedrivePolicy=policy("mail-failed"))
    world.cloud.mood = about("GetQueueAttributes", "/mail-failed", error("AccessDenied"))
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert value(app, "jobs", queue="mail", state="ready") == 5
        assert value(app, "sqs_dead_letter_messages", queue="mail") is None
        assert state(app, "queues", "sqs").notes == (
            "permission: dead-letter queue mail-failed: GetQueueAttributes: AccessDenied: no",
        )


def test_messages_move_there(world: World) -> None:
    """On the real protocol: a message that was received too often is a dead letter."""
    world.queue("mail-failed")
    url = world.queue("mail", 1, RedrivePolicy=policy("mail-failed"), VisibilityTimeout="0")
    with watch(world, queues={"mail": {}}) as app:
        for _ in range(4):
            world.receive(url)
        poll(app, source="sqs")
        assert value(app, "jobs", queue="mail", state="ready") == 0
        assert value(app, "sqs_dead_letter_messages", queue="mail") == 1
