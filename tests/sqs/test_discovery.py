"""Queues that nobody named: found by how their names begin, page by page, a bounded number of them by name."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from typing import Any

import pytest

from exporter.model import Sample
from exporter.sources.sqs import metrics
from exporter.sources.sqs.queues import Queues
from exporter.sources.sqs.session import Session
from exporter.sources.sqs.settings import Sqs
from exporter.timing import Deadline

from ..world import HandClock, poll, series, state, value
from .cloud import Answer, Asked, World, error
from .watching import watch


class Account:
    """An account with many queues that pages as SQS does: without MaxResults it stops at 1,000."""

    def __init__(self, prefix: str, names: list[str]) -> None:
        self.prefix, self.names = prefix, names
        self.ready = Counter[str]()

    def __call__(self, asked: Asked) -> Answer | None:
        question = json.loads(asked.body)
        if asked.operation == "ListQueues":
            return "200 OK", self.page(question)
        name = question["QueueUrl"].rpartition("/")[2]
        counts = {"ApproximateNumberOfMessages": self.ready[name], "VisibilityTimeout": 60}
        counts |= {f"ApproximateNumberOfMessages{state}": 0 for state in ("Delayed", "NotVisible")}
        arn = f"arn:aws:sqs:eu-west-1:123456789012:{name}"
        return "200 OK", {"Attributes": {key: str(count) for key, count in counts.items()} | {"QueueArn": arn}}

    def page(self, question: dict[str, Any]) -> dict[str, Any]:
        """One page of the names that begin as asked."""
        names = [name for name in self.names if name.startswith(question.get("QueueNamePrefix", ""))]
        begin = int(question.get("NextToken", 0))
        end = begin + question.get("MaxResults", 1000)
        more = {"NextToken": str(end)} if end < len(names) and "MaxResults" in question else {}
        return {"QueueUrls": [f"{self.prefix}/{name}" for name in names[begin:end]]} | more


def ready(page: bytes) -> dict[str, float]:
    """Ready jobs by queue."""
    return {
        dict(labels)["queue"]: number
        for (name, labels), number in series(page).items()
        if name == "laravel_queue_jobs" and dict(labels)["state"] == "ready"
    }


def test_case_59_more_than_a_thousand_queues(world: World) -> None:
    """Cases 59, 77: 1,250 queues are found, a hundred of them are shown by name, and the total is right."""
    account = Account(world.aws.prefix, [f"q{number}" for number in range(1250)])
    account.ready.update(dict.fromkeys(account.names, 1) | {"q1249": 1000})
    world.cloud.mood = account
    with watch(world, discover="q", timeout="60s") as app:
        poll(app, "queues", source="sqs")
        assert world.cloud.operations().count("ListQueues") == 2
        assert value(app, "queues", connection="sqs") == 1250
        shown = ready(app.exposition.page("text"))
        assert len(shown) == 101
        assert sum(shown.values()) == 1249 + 1000
        assert shown["q1249"] == 1000
        assert value(app, "labels_dropped_total", source="sqs", label="queue") == 1150


def test_case_58_a_beginning_that_fits_no_queue(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Case 58: it says 0 queues, counts the reason at each poll for an alert, and warns once."""
    caplog.set_level(logging.INFO)
    world.queue("mail")
    with watch(world, discover="prodution-") as app:
        for _ in range(3):
            poll(app, "queues", source="sqs")
        assert value(app, "queues", connection="sqs") == 0
        assert value(app, "source_errors_total", collector="queues", reason="not_found") == 3
        assert [record.levelname for record in caplog.records if record.message == "poll"] == ["WARNING"]
        assert state(app, "queues", "sqs").notes == ("not_found: no queue has a name that begins with 'prodution-'",)


def test_found_queues_are_called_as_laravel_calls_them(world: World) -> None:
    """The suffix is taken off; what has none belongs to another application; a named queue is not found again."""
    for name in ("mail-prod", "orders-prod.fifo", "mail-staging", "exports-prod"):
        world.queue(name, 1)
    with watch(world, discover="true", suffix="-prod", queues={"mail": {}}, target_wait="5m") as app:
        poll(app, "queues", source="sqs")
        assert ready(app.exposition.page("text")) == {"mail": 1, "orders.fifo": 1, "exports": 1}
        assert value(app, "target_wait_seconds", queue="exports") == 300


def test_a_found_queue_that_is_deleted_is_no_failure(world: World) -> None:
    """ListQueues is a minute behind: a queue that is listed and gone is not there, and nothing else."""
    urls = {name: world.queue(name, 1) for name in ("mail", "exports")}
    with watch(world, discover="true") as app:
        world.cloud.mood = lambda asked: (
            ("200 OK", {"QueueUrls": [*urls.values(), f"{world.aws.prefix}/gone"]})
            if asked.operation == "ListQueues"
            else None
        )
        poll(app, "queues", source="sqs")
        assert ready(app.exposition.page("text")) == {"mail": 1, "exports": 1}
        assert value(app, "queues", connection="sqs") == 2
        assert state(app, "queues", "sqs").notes == ()


def test_while_looking_around_is_denied_the_known_are_asked(world: World) -> None:
    """Queues found before and named ones are still counted; what fails is told."""
    for name in ("mail", "exports"):
        world.queue(name, 1)
    with watch(world, discover="true", queues={"mail": {}}) as app:
        poll(app, "queues", source="sqs")
        world.cloud.mood = lambda asked: error("AccessDenied") if asked.operation == "ListQueues" else None
        poll(app, "queues", source="sqs")
        assert ready(app.exposition.page("text")) == {"mail": 1, "exports": 1}
        assert value(app, "source_errors_total", collector="queues", reason="permission") == 1


def test_looking_around_denied_from_the_start(world: World) -> None:
    """With nothing known, nothing is known: the collector fails."""
    world.cloud.mood = lambda asked: error("AccessDenied")
    with watch(world, discover="true") as app:
        poll(app, "queues", source="sqs")
        assert state(app, "queues", "sqs").reason == "permission"
        assert value(app, "queues", connection="sqs") is None


def test_case_77_names_that_come_and_go(world: World, hand: HandClock) -> None:
    """Case 77: a new set of queues each hour leaves no more than a hundred names on the page."""
    with watch(world, hand.clock, discover="true") as app:
        for hour in range(4):
            account = Account(world.aws.prefix, [f"{hour}-{number}" for number in range(150)])
            account.ready.update(account.names)
            world.cloud.mood = account
            hand.pass_(3601)
            poll(app, "queues", source="sqs")
            shown = ready(app.exposition.page("text"))
            assert len(shown) == 101
            assert sum(shown.values()) == 150


def test_a_dead_letter_queue_that_is_found_is_no_queue(world: World) -> None:
    """What lies in it is told beside its source, and nobody waits there; it is asked for once."""
    world.queue("mail-failed", 2)
    policy = {"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:123456789012:mail-failed", "maxReceiveCount": 3}
    world.queue("mail", 1, RedrivePolicy=policy)
    with watch(world, discover="true") as app:
        poll(app, "queues", source="sqs")
        assert ready(app.exposition.page("text")) == {"mail": 1}
        assert value(app, "queues", connection="sqs") == 1
        assert value(app, "sqs_dead_letter_messages", queue="mail") == 2
        assert world.cloud.operations() == ["ListQueues", "GetQueueAttributes", "GetQueueAttributes"]


def test_a_thousand_failures_are_ten_and_the_rest(world: World) -> None:
    """Each poll tells the first ten queues by name, and how many more have failed for the same reason."""
    account = Account(world.aws.prefix, [f"q{number}" for number in range(200)])
    world.cloud.mood = lambda asked: error("AccessDenied") if "/q1" in asked.body else account(asked)
    with watch(world, discover="q", timeout="30s") as app:
        poll(app, "queues", source="sqs")
        notes = state(app, "queues", "sqs").notes
        assert len(notes) == 11
        assert notes[-1] == "permission: 101 more"
        assert value(app, "source_errors_total", collector="queues", reason="permission") == 111
        assert value(app, "queues", connection="sqs") == 200


def test_other_is_no_partial_sum(world: World) -> None:
    """While one of the queues that are `other` does not answer, what they hold together is not known."""
    account = Account(world.aws.prefix, [f"q{number:03}" for number in range(120)])
    account.ready.update(dict.fromkeys(account.names, 2) | dict.fromkeys(account.names[100:], 1))
    world.cloud.mood = account
    with watch(world, discover="q", timeout="30s") as app:
        poll(app, "queues", source="sqs")
        assert value(app, "jobs", queue="other", state="ready") == 20
        for silent, shown in (("/q110", None), ("/q010", 20), ("/q999", 20)):
            world.cloud.mood = lambda asked, silent=silent: (  # type: ignore[misc]
                error("ThrottlingException") if silent in asked.body else account(asked)
            )
            poll(app, "queues", source="sqs")
            assert value(app, "jobs", queue="other", state="ready") == shown
            assert value(app, "jobs", queue="q000", state="ready") == 2


def test_what_is_denied_is_no_part_of_other(world: World) -> None:
    """Two of the queues that are `other` may never be looked into: the rest is told, and so is how many are denied."""
    account = Account(world.aws.prefix, [f"q{number:03}" for number in range(120)])
    account.ready.update(dict.fromkeys(account.names, 2) | dict.fromkeys(account.names[100:], 1))
    world.cloud.mood = lambda asked: (
        error("AccessDenied") if "/q110" in asked.body or "/q111" in asked.body else account(asked)
    )
    with watch(world, discover="q", timeout="30s") as app:
        for polls in (1, 2):
            poll(app, "queues", source="sqs")
            assert value(app, "jobs", queue="other", state="ready") == 18
            assert value(app, "source_errors_total", collector="queues", reason="permission") == 2 * polls
            assert value(app, "queues", connection="sqs") == 120
            notes = {note.partition(": G")[0] for note in state(app, "queues", "sqs").notes}
            assert notes == {"permission: q110", "permission: q111"}  # in the order in which they were asked


def test_the_dead_letters_of_other_are_no_partial_sum(world: World, hand: HandClock) -> None:
    """One dead-letter queue does not answer: how many there are in all is not known. One that is denied is no part."""
    for number in range(2):
        world.queue(f"dead{number}", 5)
        policy = {"deadLetterTargetArn": f"arn:aws:sqs:eu-west-1:123456789012:dead{number}", "maxReceiveCount": 3}
        world.queue(f"q{number}", RedrivePolicy=policy)
    settings = Sqs(driver="sqs", region="eu-west-1", prefix=world.aws.prefix, endpoint_url=world.aws.url, discover="q")
    session = Session("sqs", settings)
    session.remembered.most = 0
    collector = Queues(session)

    def dead_letters() -> list[float]:
        said = collector.measure(collector.fetch(Deadline(time.monotonic() + 5)), hand.wall)
        return [each.value for each in said if isinstance(each, Sample) and each.metric is metrics.DEAD_LETTERS]

    assert dead_letters() == [10]
    for code, shown in (("ThrottlingException", []), ("AccessDenied", [5])):
        world.cloud.mood = lambda asked, code=code: (  # type: ignore[misc]
            error(code) if "/dead1" in asked.body else None
        )
        assert dead_letters() == shown


def test_a_queue_between_two_others_is_a_queue(world: World) -> None:
    """What fails in one goes to a second that has workers, and from there to a third, where nobody works."""
    world.queue("dead", 3)
    for name, there, messages in (("again", "dead", 2), ("mail", "again", 1)):
        policy = {"deadLetterTargetArn": f"arn:aws:sqs:eu-west-1:123456789012:{there}", "maxReceiveCount": 3}
        world.queue(name, messages, RedrivePolicy=policy)
    with watch(world, discover="true") as app:
        poll(app, "queues", source="sqs")
        assert ready(app.exposition.page("text")) == {"mail": 1, "again": 2}
        assert value(app, "sqs_dead_letter_messages", queue="again") == 3


def test_a_url_of_the_same_name_elsewhere_hides_no_queue(world: World) -> None:
    """Only a queue that is named by its name alone is the same as a found one of that name."""
    world.queue("reports", 7)
    world.queue("mail", 1)
    elsewhere = f"{world.aws.url}/999999999999/reports"
    with watch(world, discover="true", queues={elsewhere: {}, "mail": {}}) as app:
        world.cloud.mood = lambda asked: error("AccessDenied") if "999999999999" in asked.body else None
        poll(app, "queues", source="sqs")
        assert ready(app.exposition.page("text")) == {"reports": 7, "mail": 1}
        assert value(app, "queues", connection="sqs") == 3


@pytest.mark.parametrize("host", ["queue.amazonaws.com", "sqs.us-east-1.amazonaws.com", "sqs.us-east-1.api.aws"])
def test_a_queue_has_many_hosts(world: World, host: str) -> None:
    """Named by a URL and found under another host of the same region, it is there once, as it is named."""
    url, account = (
        f"https://{host}/123456789012/mail",
        Account("https://us-east-1.queue.amazonaws.com/123456789012", ["mail"]),
    )
    world.cloud.mood = account
    with watch(world, prefix=None, region="us-east-1", discover="true", queues={url: {}}) as app:
        poll(app, "queues", source="sqs")
        assert value(app, "queues", connection="sqs") == 1
        assert world.cloud.operations() == ["ListQueues", "GetQueueAttributes"]


def test_a_queue_of_the_same_name_in_another_region_is_another(world: World) -> None:
    """Named in one region and found in another one: both are there."""
    url, other = (f"https://sqs.{region}.amazonaws.com/123456789012/mail" for region in ("us-east-1", "eu-west-1"))
    world.cloud.mood = lambda asked: ("200 OK", {"QueueUrls": [other]}) if asked.operation == "ListQueues" else None
    world.queue("mail", 3)
    with watch(world, prefix=None, discover="true", queues={url: {}}) as app:
        poll(app, "queues", source="sqs")
        assert value(app, "queues", connection="sqs") == 2
