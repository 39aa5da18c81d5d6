"""One queue's trouble is that queue's alone; trouble of all is the collector's; and each has its name."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from exporter.demo.fargate.aws import CREDENTIALS
from exporter.errors import Reason

from ..world import poll, state, value
from .cloud import Answer, Asked, World, about, error
from .watching import watch

FOUR = ("exports", "mail", "orders", "reports")
MISSING = "AWS.SimpleQueueService.NonExistentQueue"


def ready(app: Any) -> dict[str, float | None]:
    """Ready jobs of each of the four queues."""
    return {queue: value(app, "jobs", queue=queue, state="ready") for queue in FOUR}


@pytest.fixture
def four(world: World) -> World:
    """Four queues with one message each."""
    for name in FOUR:
        world.queue(name, 1)
    return world


@pytest.mark.parametrize(
    ("answer", "reason", "outcome"),
    [
        (error("AccessDenied", "not authorized to perform: sqs:getqueueattributes"), "permission", "denied"),
        (error("AccessDeniedException"), "permission", "denied"),
        (error("ThrottlingException", "Rate exceeded"), "throttled", "throttled"),
        (error("RequestThrottled"), "throttled", "throttled"),
        (error("ServiceUnavailable", status="503 Service Unavailable"), "throttled", "throttled"),
        (("503 Service Unavailable", b""), "throttled", "throttled"),
        (("500 Internal Server Error", b""), "connect", "failed"),
        (error("InternalFailure", status="500 Internal Server Error"), "connect", "failed"),
        (error(MISSING), "not_found", "not_found"),
        (error("QueueDoesNotExist"), "not_found", "not_found"),
        (("200 OK", b"<html>a captive portal</html>"), "malformed", "ok"),
        (("200 OK", b"[]"), "malformed", "failed"),
        (("200 OK", {"Attributes": {"ApproximateNumberOfMessages": "many"}}), "malformed", "ok"),
    ],
    ids=str,
)
def test_case_57_one_queue_hides_none(four: World, answer: Answer, reason: Reason, outcome: str) -> None:
    """Cases 57, 60: of four queues one is denied, throttled or gone: three are fine, the reason is counted for one."""
    four.cloud.mood = about("GetQueueAttributes", "/mail", answer)
    with watch(four, queues={name: {} for name in FOUR}) as app:
        poll(app, "queues", source="sqs")
        assert ready(app) == {"exports": 1, "mail": None, "orders": 1, "reports": 1}
        assert value(app, "source_up", collector="queues") == 1
        assert value(app, "source_errors_total", collector="queues", reason=reason) == 1
        (note,) = state(app, "queues", "sqs").notes
        assert note.startswith(f"{reason}: mail: ")
        ok = value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="ok")
        assert ok == (4 if outcome == "ok" else 3)
        if outcome != "ok":
            assert value(app, "aws_requests_total", operation="GetQueueAttributes", outcome=outcome) in (1, 3)


def test_case_60_a_queue_that_is_gone_is_told_once(four: World, caplog: pytest.LogCaptureFixture) -> None:
    """Case 60: each poll counts it, one line in the log names it; it heals alone."""
    caplog.set_level(logging.INFO)
    with watch(four, queues={name: {} for name in (*FOUR, "mial")}) as app:
        for _ in range(3):
            poll(app, "queues", source="sqs")
        assert value(app, "source_errors_total", collector="queues", reason="not_found") == 3
        assert [record.levelname for record in caplog.records if record.message == "poll"] == ["WARNING"]
        assert "mial" in caplog.records[-1].__dict__["note"]
        four.queue("mial", 2)
        poll(app, "queues", source="sqs")
        assert value(app, "jobs", queue="mial", state="ready") == 2
        assert state(app, "queues", "sqs").notes == ()


def test_when_all_queues_fail_the_collector_fails(four: World) -> None:
    """Nothing may be shown, and nobody takes that for success."""
    four.cloud.mood = lambda asked: error("AccessDenied", "no identity-based policy allows it")
    with watch(four, queues={name: {} for name in FOUR}) as app:
        poll(app, "queues", source="sqs")
        assert set(ready(app).values()) == {None}
        said = state(app, "queues", "sqs")
        assert (said.up, said.reason) == (False, "permission")
        assert said.error.endswith("no identity-based policy allows it (and 3 more)")


@pytest.mark.parametrize(
    "code",
    ["ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException",
     "InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationToken", "IncompleteSignature"],
)  # fmt: skip
def test_refused_credentials_are_refused_for_all(four: World, code: str) -> None:
    """
    Where every queue refuses them, everybody's login has failed; one that says they have ended is enough.

    What AWS says to it is not repeated, as it may quote the signed request.
    """
    four.cloud.mood = lambda asked: error(code, "The Canonical String should have been 'x-amz-security-token:s3cret'")
    with watch(four, queues={name: {} for name in FOUR}, cloudwatch={}) as app:
        app.pollers[0].poll_all()
        assert set(four.cloud.operations()) == {"GetQueueAttributes"}
        assert len(four.cloud.asked) <= 4  # as many as are asked at once
        for collector in ("queues", "cloudwatch"):
            said = state(app, collector, "sqs")
            assert (said.up, said.reason) == (False, "auth")
            assert code in said.error
            assert "s3cret" not in said.error


@pytest.mark.parametrize("code", ["InvalidClientTokenId", "UnrecognizedClientException", "OptInRequired"])
def test_a_region_that_is_not_enabled_hides_no_other(four: World, code: str) -> None:
    """There credentials are refused that are good everywhere else: one queue's trouble, and the session stays."""
    four.cloud.mood = about("GetQueueAttributes", "/mail", error(code))
    with watch(four, queues={name: {} for name in FOUR}) as app:
        poll(app, source="sqs")
        assert ready(app) == {"exports": 1, "mail": None, "orders": 1, "reports": 1}
        assert value(app, "source_errors_total", collector="queues", reason="auth") == 1


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidClientTokenId"])
def test_rotated_credentials_are_found(four: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    """A file of credentials that is written anew is read anew once the old ones are refused, without a restart."""
    file = tmp_path / "credentials"
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))

    def write(key: str) -> None:
        file.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = x\n")

    write("AKIAOLD")
    with watch(four, queues={name: {} for name in FOUR}) as app:
        poll(app, source="sqs")
        four.cloud.mood = lambda asked: error(code) if "AKIAOLD" in asked.headers["authorization"] else None
        write("AKIANEW")
        for up in (False, True):
            poll(app, "queues", source="sqs")
            assert state(app, "queues", "sqs").up is up


@pytest.mark.parametrize("script", ["echo s3cret >&2; exit 1", "echo s3cret", 'echo \'{"Version": "s3cret"}\''])
def test_what_a_credential_process_prints_is_not_told(
    four: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    """It may have printed half of a secret when it failed."""
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "print").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "print").chmod(0o755)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {tmp_path / 'print'}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with watch(four, queues={"mail": {}}) as app:
        poll(app, "queues", source="sqs")
        said = state(app, "queues", "sqs")
        assert said.reason in ("auth", "malformed")
        assert "s3cret" not in said.error


@pytest.mark.parametrize(
    "answer",
    [error("RequestTimeTooSkewed"), error("InvalidSignatureException", "Signature expired: 20260101 is now earlier")],
    ids=str,
)
def test_a_wrong_clock_is_named(four: World, answer: Answer) -> None:
    """AWS refuses what was signed minutes ago: the login fails because of our clock, and the message says so."""
    four.cloud.mood = lambda asked: answer
    with watch(four, queues={"mail": {}}) as app:
        poll(app, "queues", source="sqs")
        said = state(app, "queues", "sqs")
        assert said.reason == "auth"
        assert said.error.endswith("the clock of this machine is wrong by minutes")


def test_no_credentials_at_all(four: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the standard chain finds none, nothing is sent, and the reason says so."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with watch(four, queues={"mail": {}}) as app:
        poll(app, "queues", source="sqs")
        assert state(app, "queues", "sqs").reason == "auth"
        assert state(app, "queues", "sqs").error == "Unable to locate credentials"
        assert four.cloud.asked == []


def test_a_throttled_request_is_tried_again(four: World) -> None:
    """One that is let through the second time is no failure; both are counted."""
    refusals = [error("ThrottlingException"), error("ThrottlingException")]
    four.cloud.mood = lambda asked: refusals.pop() if refusals and "/mail" in asked.body else None
    with watch(four, queues={name: {} for name in FOUR}, timeout="60s") as app:  # a busy machine may be slow
        poll(app, "queues", source="sqs")
        assert set(ready(app).values()) == {1}
        assert state(app, "queues", "sqs").notes == ()
        assert value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="throttled") == 2
        assert value(app, "aws_requests_total", operation="GetQueueAttributes", outcome="ok") == 4


def test_tries_are_bounded(four: World) -> None:
    """A queue that is throttled for good is asked for three times a poll, and what is denied once."""
    codes = {"/mail": "ThrottlingException", "/orders": "AccessDenied"}

    def mood(asked: Asked) -> Answer | None:
        return next((error(code) for queue, code in codes.items() if queue in asked.body), None)

    four.cloud.mood = mood
    with watch(four, queues={name: {} for name in FOUR}) as app:
        poll(app, "queues", source="sqs")
        tries = [asked.body for asked in four.cloud.asked]
        assert sum("/mail" in body for body in tries) == 3
        assert sum("/orders" in body for body in tries) == 1


SILENT = 7.0  # seconds: longer than any poll here may take


def test_a_queue_without_an_answer_leaves_time_for_the_others(four: World) -> None:
    """One request that hangs takes a third of what is left, and the others are asked all the same."""
    with watch(four, queues={name: {} for name in FOUR}, timeout="5s") as app:
        poll(app, "queues", source="sqs")
        four.cloud.delay = lambda asked: SILENT if "/mail" in asked.body else 0.0
        poll(app, "queues", source="sqs")
        assert ready(app) == {"exports": 1, "mail": None, "orders": 1, "reports": 1}
        assert state(app, "queues", "sqs").notes == ("timeout: mail: GetQueueAttributes: no answer in time",)


def test_when_the_time_is_over_what_was_answered_stands(four: World) -> None:
    """Queues that there was no time left for fail as a timeout; those before them are shown."""
    with watch(four, queues={name: {} for name in FOUR}, timeout="5s") as app:
        poll(app, "queues", source="sqs")  # on a busy machine the first question may take too long
        before = value(app, "source_errors_total", collector="queues", reason="timeout") or 0
        four.cloud.delay = lambda asked: 0.0 if "/exports" in asked.body else SILENT
        poll(app, "queues", source="sqs")
        assert ready(app) == {"exports": 1, "mail": None, "orders": None, "reports": None}
        assert value(app, "source_errors_total", collector="queues", reason="timeout") == before + 3
        assert state(app, "queues", "sqs").duration < 5


def test_a_message_cannot_move_the_cursor(four: World) -> None:
    """What AWS, or whoever answers in its place, says to an error is shown without control characters."""
    four.cloud.mood = about("GetQueueAttributes", "/mail", error("AccessDenied", "no \x1b[2J\x00 \u202e way"))
    with watch(four, queues={name: {} for name in FOUR}) as app:
        poll(app, "queues", source="sqs")
        (note,) = state(app, "queues", "sqs").notes
        assert note.isprintable()
        assert note.endswith("no �[2J� � way")


ODD: tuple[Any, ...] = ("-5", "9" * 30, "9" * 5000, "", None, [])
SOUND: dict[str, Any] = {
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
    "ApproximateNumberOfMessagesDelayed": "0",
    "VisibilityTimeout": "30",
    "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:mail",
}


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        *(("GetQueueAttributes", {"Attributes": SOUND | {"ApproximateNumberOfMessages": odd}}) for odd in ODD),
        ("GetQueueAttributes", {"Attributes": SOUND | {"RedrivePolicy": "[]"}}),
        ("GetQueueAttributes", {"Attributes": SOUND | {"RedrivePolicy": "{"}}),
        ("GetQueueAttributes", {"Attributes": []}),
        ("GetQueueAttributes", {}),
        ("GetQueueUrl", {"QueueUrl": "mail"}),
        ("GetQueueUrl", {}),
        ("ListQueues", {"QueueUrls": ["ftp://queue"]}),
        ("ListQueues", {"QueueUrls": "mail"}),
        ("DescribeServices", {"services": [{"serviceName": "mail", "runningCount": -1}]}),
        ("DescribeServices", {"services": [{"serviceName": "mail", "runningCount": "many"}]}),
        ("DescribeServices", {"services": "mail"}),
        ("DescribeServices", {"failures": "mail"}),
    ],
    ids=lambda given: str(given)[:80],
)
def test_odd_answers_are_malformed(four: World, operation: str, answer: dict[str, Any]) -> None:
    """Whatever an answer of 200 OK holds, it is malformed by name, and no bug of ours with a traceback."""
    four.cloud.mood = about(operation, "", ("200 OK", answer))
    queue = {"ecs": {"cluster": "workers", "service": "mail"}}
    with watch(four, prefix=None, queues={"mail": queue}, discover="x") as app:
        poll(app, source="sqs")
        collector = "ecs" if operation == "DescribeServices" else "queues"
        assert value(app, "source_errors_total", collector=collector, reason="malformed") == 1
        assert value(app, "source_errors_total", collector=collector, reason="unexpected") == 0
