"""What CloudWatch adds: ages, and how many messages came and went; late, and never more than it knows."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.sources.sqs.cloudwatch import MOST_PAGES
from exporter.status import report

from ..world import HandClock, poll, state, value
from .cloud import Answer, Asked, World, about, error
from .watching import watch

AGE, SENT, DELETED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "NumberOfMessagesDeleted"
ON: dict[str, Any] = {"cloudwatch": {}}


def minute(hand: HandClock, ago: int) -> float:
    """The beginning of the minute that ended so many minutes ago."""
    return hand.wall // 60 * 60 - 60 * (ago + 1)


def polled(app: Any) -> None:
    """One poll of both who know something of the age."""
    poll(app, "queues", "cloudwatch", source="sqs")


def test_the_age_is_cloudwatchs_while_something_is_ready(world: World, hand: HandClock) -> None:
    """The newest minute's age is shown, and compared with the target as any driver's."""
    world.queue("mail", 1)
    world.measured("mail", AGE, {minute(hand, 2): 45, minute(hand, 1): 105})
    with watch(world, hand.clock, queues={"mail": {"target_wait": "1m"}}, **ON) as app:
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == 105
        (finding,) = report(app.board, clock=hand.clock).findings
        assert finding.says == "oldest job 1m 45s, target 1m"


def test_with_nothing_ready_nobody_waits(world: World, hand: HandClock) -> None:
    """CloudWatch's age counts messages in flight: a long job is no long wait."""
    url = world.queue("mail", 1, VisibilityTimeout="600")
    world.receive(url)
    world.measured("mail", AGE, {minute(hand, 1): 500})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert value(app, "jobs", queue="mail", state="reserved") == 1
        assert value(app, "oldest_job_age_seconds", queue="mail") == 0


@pytest.mark.parametrize(("ago", "shown"), [(0, 105), (2, 105), (3, None), (60, None)])
def test_an_age_of_more_than_three_minutes_ago_is_not_shown(
    world: World, hand: HandClock, ago: int, shown: float | None
) -> None:
    """A queue that was idle stops reporting: its last age is not today's."""
    world.queue("mail", 1)
    hand.wall = hand.wall // 60 * 60 + 1
    world.measured("mail", AGE, {minute(hand, ago): 105})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == shown


def test_without_permission_the_rest_is_there(world: World, hand: HandClock) -> None:
    """Where CloudWatch may not be asked, a queue with ready jobs has no age; one without has 0; no other is missing."""
    world.queue("mail", 1)
    world.queue("exports")
    world.cloud.mood = lambda asked: error("AccessDenied") if asked.operation == "GetMetricData" else None
    with watch(world, hand.clock, queues={"mail": {}, "exports": {}}, **ON) as app:
        for _ in range(2):
            polled(app)
        assert state(app, "cloudwatch", "sqs").reason == "permission"
        assert value(app, "oldest_job_age_seconds", queue="mail") is None
        assert value(app, "oldest_job_age_seconds", queue="exports") == 0
        assert value(app, "jobs", queue="mail", state="ready") == 1
        world.cloud.well()
        for _ in range(2):
            polled(app)
        assert value(app, "oldest_job_age_seconds", queue="exports") == 0
        assert value(app, "sqs_messages_sent_total", queue="exports") == 0


def test_one_request_for_up_to_166_queues(world: World, hand: HandClock) -> None:
    """GetMetricData is asked once for three numbers of each of 166 queues."""
    names = {f"q{number}": dict[str, Any]() for number in range(166)}
    with watch(world, hand.clock, queues=names, **ON) as app:
        poll(app, "cloudwatch", source="sqs")
        assert world.cloud.operations() == ["GetMetricData"]


def test_more_than_five_hundred_numbers_take_two_requests(world: World, hand: HandClock) -> None:
    """The API takes 500 at a time: 200 queues with three numbers each."""
    with watch(world, hand.clock, queues={f"q{number}": {} for number in range(200)}, **ON, timeout="30s") as app:
        poll(app, "cloudwatch", source="sqs")
        assert world.cloud.operations() == ["GetMetricData"] * 2
        assert value(app, "sqs_messages_sent_total", queue="q199") == 0


def test_another_accounts_queue_gets_no_numbers_of_its_namesake(world: World, hand: HandClock) -> None:
    """CloudWatch knows our own account alone, and a queue by its name: what it says of `mail` is of ours."""
    theirs = "https://sqs.eu-west-1.amazonaws.com/999999999999/mail"
    world.queue("mail", 1)
    world.measured("mail", AGE, {minute(hand, 1): 105})
    attributes = {"VisibilityTimeout": "30", "QueueArn": "arn:aws:sqs:eu-west-1:999999999999:mail"} | {
        f"ApproximateNumberOfMessages{state}": "7" for state in ("", "NotVisible", "Delayed")
    }
    world.cloud.mood = about("GetQueueAttributes", "999999999999", ("200 OK", {"Attributes": attributes}))
    with watch(world, hand.clock, queues={"mail": {}, theirs: {}}, **ON) as app:
        polled(app)
        assert [value(app, "jobs", queue=queue, state="ready") for queue in ("mail", theirs)] == [1, 7]
        assert [value(app, "oldest_job_age_seconds", queue=queue) for queue in ("mail", theirs)] == [105, None]
        assert [value(app, "sqs_messages_sent_total", queue=queue) for queue in ("mail", theirs)] == [0, None]
        assert state(app, "cloudwatch", "sqs").notes == (
            f"no age of {theirs}: CloudWatch knows the queues of our own account alone",
        )


def test_a_missing_age_is_explained(world: World, hand: HandClock) -> None:
    """Jobs wait and CloudWatch says nothing of the last three minutes: a note says so, for as long as it is true."""
    world.queue("exports")
    world.queue("mail", 1)
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}, "exports": {}}, **ON) as app:
        for said in (None, 7):
            if said:
                world.measured("mail", AGE, {minute(hand, 0): said})
            polled(app)
            notes = ("no age of mail: CloudWatch has told none of the last three minutes",)
            assert state(app, "cloudwatch", "sqs").notes == (() if said else notes)
            assert value(app, "oldest_job_age_seconds", queue="mail") == said


def test_an_age_of_before_the_queue_was_empty_is_that_of_other_jobs(world: World, hand: HandClock) -> None:
    """An hour old, then all done, then one new message: it has not waited for an hour."""
    url = world.queue("mail", 1)
    hand.wall = hand.wall // 60 * 60 + 1
    world.measured("mail", AGE, {minute(hand, 0): 3600})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == 3600
        with world.unseen():
            world.client("sqs").purge_queue(QueueUrl=url)
        hand.pass_(60)
        poll(app, "queues", source="sqs")
        assert value(app, "oldest_job_age_seconds", queue="mail") == 0
        world.queue("mail", 1)
        hand.pass_(30)
        poll(app, "queues", source="sqs")
        assert value(app, "oldest_job_age_seconds", queue="mail") is None
        world.measured("mail", AGE, {minute(hand, -1): 3600})  # the minute in which it was emptied
        hand.pass_(60)
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == 90


def test_an_age_of_zero_is_not_that_of_jobs_that_wait(world: World, hand: HandClock) -> None:
    """CloudWatch's last minute knows of no message; three came since, and nobody works: no age, rather than 0."""
    world.queue("mail", 3)
    world.measured("mail", AGE, {minute(hand, 1): 0})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") is None
        world.measured("mail", AGE, {minute(hand, 0): 30})
        polled(app)
        assert value(app, "oldest_job_age_seconds", queue="mail") == 30


def paged(asked: Asked, *tokens: str) -> Answer | None:
    """An answer in pages: the first one holds the age, each of these tokens leads to the next one."""
    if asked.operation != "GetMetricData":
        return None
    at = next((n for n, token in enumerate(tokens, 1) if f'"NextToken": "{token}"' in asked.body), 0)
    result = {"Id": f"q{at % 3}", "Timestamps": [1_799_999_900.0], "Values": [at + 7]}
    more = {"NextToken": tokens[at]} if at < len(tokens) else {}
    return "200 OK", {"MetricDataResults": [result]} | more


def test_an_answer_in_pages_is_read_to_its_end(world: World, hand: HandClock) -> None:
    """CloudWatch may give the numbers of one question in several pages; each counts."""
    world.queue("mail", 1)
    world.cloud.mood = lambda asked: paged(asked, "second")
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert world.cloud.operations().count("GetMetricData") == 2
        assert value(app, "oldest_job_age_seconds", queue="mail") == 7
        assert state(app, "cloudwatch", "sqs").up


@pytest.mark.parametrize(("tokens", "most"), [(("a", "a"), 2), (([1],), 1), ([f"t{n}" for n in range(99)], MOST_PAGES)])
def test_an_answer_without_an_end_is_malformed(world: World, hand: HandClock, tokens: Any, most: int) -> None:
    """A page that leads back to one before it, or ever on: each is paid for, so it is not followed until time is up."""
    world.queue("mail", 1)
    world.cloud.mood = lambda asked: paged(asked, *tokens)
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        assert world.cloud.operations().count("GetMetricData") == most
        assert state(app, "cloudwatch", "sqs").reason == "malformed"


def test_one_odd_number_hides_no_other_queue(world: World, hand: HandClock) -> None:
    """Of two queues one has a number that cannot be: it is named, and the other one is shown."""
    names = ("exports", "mail")
    for name in names:
        world.queue(name, 1)
    results = [{"Id": f"q{n}", "Timestamps": [1_799_999_900.0], "Values": [7 if n < 3 else -1]} for n in (0, 3)]
    world.cloud.mood = about("GetMetricData", "", ("200 OK", {"MetricDataResults": results}))
    with watch(world, hand.clock, queues={name: {} for name in names}, **ON) as app:
        polled(app)
        assert [value(app, "oldest_job_age_seconds", queue=name) for name in names] == [7, None]
        assert state(app, "cloudwatch", "sqs").notes == (
            "malformed: mail: GetMetricData: the answer is not what it should be",
        )


def test_switched_off(world: World) -> None:
    """With cloudwatch null nothing is asked of it, and nothing is down."""
    world.queue("mail")
    with watch(world, queues={"mail": {}}) as app:
        poll(app, source="sqs")
        assert set(world.cloud.operations()) == {"GetQueueAttributes"}
        assert value(app, "source_up", collector="cloudwatch") is None


def test_what_once_prints_has_the_age(world: World, hand: HandClock) -> None:
    """One poll of everything is enough to know how long the oldest job waits."""
    world.queue("mail", 1)
    world.measured("mail", AGE, {minute(hand, 1): 7})
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        app.pollers[0].poll_all()
        assert value(app, "oldest_job_age_seconds", queue="mail") == 7


def test_one_of_two_requests_that_fails_drops_nothing_of_the_other(world: World, hand: HandClock) -> None:
    """Of 200 queues the last 34 may not be asked for: their totals stay, the ages of the others are there."""
    names = [f"mail{number:03}" for number in range(200)]
    world.queue("mail000", 1)
    world.queue("mail199", 1)
    for name in ("mail000", "mail199"):
        world.measured(name, AGE, {minute(hand, 1): 30})
    with watch(world, hand.clock, queues={name: {} for name in names}, **ON, timeout="60s") as app:
        polled(app)
        world.cloud.mood = about("GetMetricData", "mail199", error("AccessDenied"))
        polled(app)
        assert [value(app, "oldest_job_age_seconds", queue=name) for name in ("mail000", "mail199")] == [30, None]
        assert [value(app, "sqs_messages_sent_total", queue=name) for name in ("mail000", "mail199")] == [0, 0]
        assert state(app, "cloudwatch", "sqs").up
        assert value(app, "source_errors_total", collector="cloudwatch", reason="permission") == 1


def answered(asked: Asked, **result: Any) -> Answer | None:
    """The same result for each number that CloudWatch is asked for."""
    if asked.operation != "GetMetricData":
        return None
    return "200 OK", {"MetricDataResults": [{"Id": f"q{n}", "Timestamps": [], "Values": []} | result for n in range(3)]}


@pytest.mark.parametrize(("status", "reason"), [("InternalError", "connect"), ("Forbidden", "permission")])
def test_an_empty_answer_that_is_an_error(world: World, hand: HandClock, status: str, reason: str) -> None:
    """CloudWatch says 200 OK and that it could not: that is a failure, and what it missed is counted later."""
    world.queue("mail")
    hand.wall = hand.wall // 60 * 60 + 1
    with watch(world, hand.clock, queues={"mail": {}}, **ON) as app:
        polled(app)
        world.measured("mail", SENT, {minute(hand, -number): 10 for number in range(10)})
        world.cloud.mood = lambda asked: answered(asked, StatusCode=status)
        hand.pass_(360)
        polled(app)
        assert state(app, "cloudwatch", "sqs").reason == reason
        world.cloud.well()
        polled(app)
        assert value(app, "sqs_messages_sent_total", queue="mail") == 70


@pytest.mark.parametrize(
    "result",
    [
        {"Id": "zzz"},
        {"Timestamps": [1_800_000_000.0]},
        {"Timestamps": [9e99], "Values": [1]},
        {"Timestamps": [1_800_000_000.0], "Values": ["NaN"]},
        {"Timestamps": [1_800_000_000.0], "Values": [-50]},
        {"Timestamps": [1_800_000_000.0], "Values": [1e300]},
        {"Timestamps": [1_800_000_000.0], "Values": [None]},
        {"Timestamps": "today", "Values": "many"},
    ],
    ids=str,
)
def test_odd_numbers_are_malformed(world: World, result: dict[str, Any]) -> None:
    """An answer that makes no sense is that, not a bug of ours, and spoils no total."""
    world.queue("mail")
    with watch(world, queues={"mail": {}}, **ON) as app:
        world.cloud.mood = lambda asked: answered(asked, **result)
        polled(app)
        assert state(app, "cloudwatch", "sqs").reason == "malformed"
