"""Roles: assumed per account, renewed before they expire; one account's trouble is its own."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from exporter import app as application
from exporter import config

from ..world import close, poll, state, value
from .cloud import Answer, Asked, World
from .watching import settings, watch

ROLE = "arn:aws:iam::123456789012:role/queue-exporter"
XML = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>s3cret{number}</SecretAccessKey>
<SessionToken>token{number}</SessionToken><Expiration>{expiration}</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""
DENIED = """<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>
<Message>not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>"""


def temporary(asked: Asked, *, number: int, minutes: float) -> Answer | None:
    """Credentials that end after so many minutes, where the role is assumed."""
    if asked.operation != "AssumeRole":
        return None
    expiration = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return "200 OK", XML.format(number=number, expiration=expiration).encode()


def tokens(world: World) -> list[str | None]:
    """The session's token of each request for a queue's attributes."""
    return [
        asked.headers.get("x_amz_security_token")
        for asked in world.cloud.asked
        if asked.operation == "GetQueueAttributes"
    ]


def test_a_role_is_assumed_once(world: World) -> None:
    """While its credentials last, they are used for all requests; assuming it is a request that counts."""
    world.queue("mail", 1)
    world.cloud.mood = lambda asked: temporary(asked, number=1, minutes=60)
    with watch(world, queues={"mail": {}}, role_arn=ROLE) as app:
        for _ in range(2):
            poll(app, source="sqs")
        assert tokens(world) == ["token1", "token1"]
        assert value(app, "aws_requests_total", operation="AssumeRole", outcome="ok") == 1
        (assumed,) = [asked.body for asked in world.cloud.asked if asked.operation == "AssumeRole"]
        assert "RoleSessionName=queue-exporter" in assumed


def test_temporary_credentials_are_renewed(world: World) -> None:
    """Credentials that are about to end are replaced without anybody noticing."""
    world.queue("mail", 1)
    with watch(world, queues={"mail": {}}, role_arn=ROLE) as app:
        for number in (1, 2):
            world.cloud.mood = lambda asked, number=number: temporary(asked, number=number, minutes=3)  # type: ignore[misc]
            poll(app, source="sqs")
        assert tokens(world) == ["token1", "token2"]
        assert state(app, "queues", "sqs").up


def test_a_role_that_may_not_be_assumed(world: World) -> None:
    """It is the login that is refused, for all collectors, and the message names the operation."""
    world.queue("mail", 1)
    denied = "403 Forbidden", DENIED.encode()
    world.cloud.mood = lambda asked: denied if asked.operation == "AssumeRole" else None
    with watch(world, queues={"mail": {}}, role_arn=ROLE, cloudwatch={}) as app:
        app.pollers[0].poll_all()
        for collector in ("queues", "cloudwatch"):
            said = state(app, collector, "sqs")
            assert (said.up, said.reason) == (False, "auth")
            assert said.error == "AssumeRole: AccessDenied: not authorized to perform: sts:AssumeRole"
        assert tokens(world) == []


def test_an_answer_with_credentials_is_never_repeated(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """An answer of STS that is cut off in the middle is malformed: neither page nor log has a piece of it."""
    caplog.set_level(logging.DEBUG)
    cut = XML.format(number=1, expiration="soon").encode()[:250]
    assert b"s3cret1" in cut
    world.cloud.mood = lambda asked: ("200 OK", cut) if asked.operation == "AssumeRole" else None
    with watch(world, queues={"mail": {}}, role_arn=ROLE) as app:
        poll(app, source="sqs")
        assert state(app, "queues", "sqs").reason == "malformed"
        assert "s3cret1" not in state(app, "queues", "sqs").error
    assert "s3cret1" not in caplog.text


def test_case_68_accounts_do_not_hide_each_other(world: World) -> None:
    """Case 68: one account's role is refused; the other account's series are complete."""
    world.queue("mail", 3)
    world.cloud.mood = lambda asked: ("403 Forbidden", DENIED.encode()) if asked.operation == "AssumeRole" else None
    both = {
        "ours": settings(world, queues={"mail": {}}).connections["sqs"].model_dump(),
        "theirs": settings(world, queues={"mail": {}}, role_arn=ROLE).connections["sqs"].model_dump(),
    }
    app = application.build(config.parse({"connections": both}))
    for source in both:
        poll(app, source=source)
    assert value(app, "jobs", connection="ours", state="ready") == 3
    assert value(app, "source_up", source="ours", collector="queues") == 1
    assert value(app, "source_up", source="theirs", collector="queues") == 0
    close(app)
