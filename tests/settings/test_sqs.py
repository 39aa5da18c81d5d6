"""Settings of the driver sqs: names, URLs, regions, and what is refused."""

from __future__ import annotations

import pytest

from exporter.sources.sqs import names
from exporter.sources.sqs.names import Place
from exporter.sources.sqs.settings import Sqs

from .complaints import complaint, complaints, load

PREFIX = "https://sqs.eu-west-1.amazonaws.com/123456789012"
ONE = f"connections:\n  sqs:\n    driver: sqs\n    prefix: {PREFIX}\n"
EXAMPLE = """
connections:
  sqs:
    driver: sqs
    region: ap-southeast-1
    prefix: https://sqs.ap-southeast-1.amazonaws.com/123456789012
    suffix: -production
    endpoint_url: null
    role_arn: null
    queues:
      notifications.fifo: {target_wait: 30s, seconds_per_job: 0.5, timeout: 60s, ecs: {cluster: queue-workers, service: notifications-worker}}
"""  # noqa: E501  # as it is in the documentation


def sqs(text: str) -> Sqs:
    """The settings of the connection `sqs` in this file."""
    found = load(text).connections["sqs"]
    assert isinstance(found, Sqs)
    return found


def test_the_example() -> None:
    """Every setting of the documentation's example arrives with its meaning."""
    settings = sqs(EXAMPLE)
    (queue,) = settings.queues.values()
    assert queue.ecs
    assert (queue.ecs.cluster, queue.ecs.service) == ("queue-workers", "notifications-worker")
    assert (queue.target_wait, queue.seconds_per_job, queue.timeout) == (30, 0.5, 60)
    assert settings.address_of("notifications.fifo") == f"{settings.prefix}/notifications-production.fifo"
    assert (settings.interval, settings.publish, settings.discover) == (60, False, None)
    assert settings.cloudwatch


@pytest.mark.parametrize(
    ("queue", "suffix", "name"),
    [
        ("emails", "", "emails"),
        ("emails", "-staging", "emails-staging"),
        ("emails.fifo", "-staging", "emails-staging.fifo"),
        ("emails-staging", "-staging", "emails-staging"),
        ("emails-staging.fifo", "-staging", "emails-staging.fifo"),
        ("fifo", "-staging", "fifo-staging"),
    ],
)
def test_case_62_names_are_built_as_laravel_does(queue: str, suffix: str, name: str) -> None:
    """Case 62. The suffix goes before .fifo, and is not added twice."""
    settings = sqs(f"{ONE}    suffix: '{suffix}'\n    queues: {{{queue}: }}\n")
    assert settings.address_of(queue) == f"{PREFIX}/{name}"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/123/q", Place("eu-west-1", None)),
        ("https://sqs.us-gov-west-1.amazonaws.com/123/q", Place("us-gov-west-1", None)),
        ("https://sqs.cn-north-1.amazonaws.com.cn/123/q", Place("cn-north-1", None)),
        ("https://sqs-fips.us-east-2.amazonaws.com/123/q", Place("us-east-2", None)),
        ("https://sqs.us-east-1.api.aws/123/q", Place("us-east-1", None)),
        ("https://eu-central-1.queue.amazonaws.com/123/q", Place("eu-central-1", None)),
        ("https://queue.amazonaws.com/123/q", Place("us-east-1", None)),
        (
            "https://vpce-0a1b-c2d3.sqs.us-east-1.vpce.amazonaws.com/123/q",
            Place("us-east-1", "https://vpce-0a1b-c2d3.sqs.us-east-1.vpce.amazonaws.com"),
        ),
        (
            "http://sqs.eu-west-1.localhost.localstack.cloud:4566/000000000000/q",
            Place("eu-west-1", "http://sqs.eu-west-1.localhost.localstack.cloud:4566"),
        ),
    ],
)
def test_case_68_the_region_is_in_the_url(url: str, place: Place) -> None:
    """Case 68. A queue is asked for in the region of its URL, and where Laravel asks for it."""
    settings = sqs(f"connections: {{sqs: {{driver: sqs, queues: {{'{url}': }}}}}}")
    assert settings.place_of(settings.address_of(url)) == place
    elsewhere = sqs(f"connections: {{sqs: {{driver: sqs, region: sa-east-1, queues: {{'{url}': }}}}}}")
    assert elsewhere.place_of(url) == place


def test_case_68_only_a_name_needs_a_region() -> None:
    """Case 68. Without any URL the setting to give is named; one is enough for the whole connection."""
    start = "connections: {sqs: {driver: sqs"
    path = "connections.sqs.region"
    expected = "expected a region such as eu-west-1, as no URL says where"
    assert complaint(f"{start}, queues: {{mail: }}}}}}") == f"{path}: {expected} the queue 'mail' is"
    assert complaint(f"{start}, discover: true}}}}") == f"{path}: {expected} what discover looks for is"
    local = "'http://127.0.0.1:4566/000000000000/mail'"
    assert complaint(f"{start}, queues: {{{local}: }}}}}}").startswith(f"{path}: {expected} the queue 'http://")
    assert complaints(f"{start}, region: eu-west-1, queues: {{mail: , {local}: }}}}}}") == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("queues: {m: {ecs: {service: s}}}", "queues.m.ecs.cluster: is missing"),
        ("queues: {m: {ecs: {cluster: c}}}", "queues.m.ecs.service: is missing"),
        ("queues: {m: {seconds_per_job: 0}}", "queues.m.seconds_per_job: expected a duration above zero, and of a "),
        ("queues: {m: {seconds_per_job: -1}}", "queues.m.seconds_per_job: expected a duration above zero, and of a "),
        ("queues: {m: {timeout: 1.5s}}", "queues.m.timeout: expected 1s or more, in whole seconds"),
        ("queues: {'a b': }", "queues.'a b': expected a queue's name (letters, digits, - and _, perhaps .fifo) or"),
        ("queues: {'ftp://h/1/q': }", "queues.'ftp://h/1/q': expected a queue's name"),
        ("queues: {'https://h/q': }", "queues.'https://h/q': expected a queue's name"),
        ("queues: {'https://u:p@h/1/q': }", "queues.'https://u:p@h/1/q': expected a queue's name"),
        (f"queues: {{{'x' * 81}: }}", f"queues.{'x' * 60}…: expected a queue's name"),
        ("queues: {other: }", "queues.other: expected another name than 'other', which means: all the rest"),
        ("queues: {mail.fifo.fifo: }", "queues.mail.fifo.fifo: expected a queue's name"),
        ("queues: {}", "queues: expected at least one queue, or discover"),
        ("queues: {m: }\n    publish: true", "publish: expected a queue with ecs"),
        (
            "queues: {m: {ecs: {cluster: c, service: s}}}\n    publish: true\n    interval: 2m",
            "interval: expected 60s or less with publish",
        ),
        ("queues: {m: }\n    endpoint_url: http://h/1#part", "endpoint_url: expected a URL such as https://"),
        ("queues: {m: }\n    endpoint_url: http://h/1?", "endpoint_url: expected a URL such as https://"),
        (f"queues: {{m: , '{PREFIX}/m': }}", f"queues.'{PREFIX}/m': expected once, but it is the same queue as 'm'"),
        ("queues: {m: }\n    region: Ireland", "region: expected a region such as eu-west-1"),
        ("queues: {m: }\n    role_arn: admin", "role_arn: expected a role's ARN such as arn:aws:iam::123456789012:"),
        ("queues: {m: }\n    endpoint_url: localhost", "endpoint_url: expected a URL such as https://"),
        ("queues: {m: }\n    suffix: .prod", "suffix: expected letters, digits, - and _"),
        ("queues: {m: }\n    interval: 0.5s", "interval: expected 1s or more, as each request is paid for"),
        ("queues: {m: }\n    cloudwatch: {interval: 30s}", "cloudwatch.interval: expected 60s or more, as there is a"),
        ("discover: 'a b'", "discover: expected true, false, or how the names of queues begin"),
        ("queues: {m: }\n    colour: red", "colour: is not a known setting"),
        ("queues: {m: {colour: red}}", "queues.m.colour: is not a known setting"),
    ],
)
def test_what_is_refused(line: str, problem: str) -> None:
    """A service without a cluster, a queue that is neither name nor URL, no seconds: each by its path."""
    assert complaint(f"{ONE}    {line}\n").startswith(f"connections.sqs.{problem}")


@pytest.mark.parametrize(
    ("written", "meant"), [("true", ""), ("false", None), ("", None), ("production-", "production-")]
)
def test_discover(written: str, meant: str | None) -> None:
    """All, none, or how the names begin; nobody looks for queues that begin with 'true'."""
    assert sqs(f"{ONE}    discover: {written}\n    queues: {{mail: }}\n").discover == meant


def test_both_drivers_in_one_file() -> None:
    """Complaints about either carry their own path, all at once."""
    assert complaints(
        f"""
        connections:
          database: {{driver: database, tabel: jobs}}
          sqs: {{driver: sqs, prefix: {PREFIX}, queues: {{mail: {{target: 5s}}}}}}
        """
    ) == [
        "connections.database.tabel: is not a known setting",
        "connections.sqs.queues.mail.target: is not a known setting",
    ]


def test_a_job_that_takes_longer_than_its_worker_is_doubtful() -> None:
    """What the settings alone can tell: an average job that the worker would kill."""
    queue = "{seconds_per_job: 90s, timeout: 60s}"
    (doubt,) = sqs(f"{ONE}    queues: {{mail: {queue}}}\n").doubts()
    assert str(doubt).startswith("queues.mail.timeout: expected more than the 90s of seconds_per_job")
    assert list(sqs(f"{ONE}    queues: {{mail: {queue.replace('90', '9')}}}\n").doubts()) == []


@pytest.mark.parametrize(
    ("prefix", "more", "doubtful"),
    [
        ("http://127.0.0.1:4566/000000000000", "", True),
        ("http://127.0.0.1:4566/000000000000", "cloudwatch: null", False),
        ("http://127.0.0.1:4566/000000000000", "endpoint_url: http://127.0.0.1:4566", False),
        ("https://sqs.eu-west-1.amazonaws.com/123456789012", "", False),
        ("https://vpce-0a1b-c2d3.sqs.us-east-1.vpce.amazonaws.com/123456789012", "", False),
    ],
)
def test_an_endpoint_of_sqs_alone_is_doubtful(prefix: str, more: str, doubtful: bool) -> None:
    """Queues of LocalStack beside metrics of a real account: the prefix is for SQS, all else asks AWS."""
    text = f"connections:\n  sqs:\n    driver: sqs\n    region: eu-west-1\n    prefix: {prefix}\n    {more}\n"
    doubts = [str(doubt) for doubt in sqs(f"{text}    queues: {{mail: }}\n").doubts()]
    assert [doubt.partition(":")[0] for doubt in doubts] == ["endpoint_url"] * doubtful


def test_an_endpoint_in_the_environment_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets AWS's own variables for endpoints knows where the others are asked."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    text = "connections: {sqs: {driver: sqs, region: eu-west-1, prefix: 'http://127.0.0.1:4566/1', queues: {mail: }}}"
    assert list(sqs(text).doubts()) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("arn:aws:sqs:eu-west-1:123:q.fifo", ("eu-west-1", "123", "q.fifo")),
        ("arn:aws-cn:sqs:cn-north-1:1:q", ("cn-north-1", "1", "q")),
        ("arn:aws:sns:eu-west-1:123:q", None),
        ("q", None),
        ("", None),
    ],
)
def test_arns(text: str, parts: tuple[str, ...] | None) -> None:
    """A queue's ARN has six parts and is one of SQS."""
    found = names.arn(text)
    assert (found and tuple(found)) == parts


def test_the_secrets_of_the_environment_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the standard chain may take from the environment is kept out of every message."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "hunter3")
    assert load(f"{ONE}    queues: {{mail: }}\n").secrets() == ["hunter2", "hunter3"]


def test_two_hosts_of_one_queue() -> None:
    """AWS has many hosts for a region: the same queue by two of them is there twice, by another region's it is not."""
    one, two, far = (
        f"'https://{host}/123456789012/mail'"
        for host in ("queue.amazonaws.com", "sqs.us-east-1.amazonaws.com", "sqs.us-east-2.amazonaws.com")
    )
    said = complaint(f"connections: {{sqs: {{driver: sqs, queues: {{{one}: , {two}: }}}}}}")
    assert "expected once, but it is the same queue as" in said
    assert complaints(f"connections: {{sqs: {{driver: sqs, queues: {{{one}: , {far}: }}}}}}") == []


def test_two_queues_do_not_publish_one_number() -> None:
    """CloudWatch tells queues apart by their names: those of two accounts with one name would be told as one."""
    theirs = PREFIX.replace("123456789012", "999999999999")
    ecs = "{ecs: {cluster: c, service: s}}"
    both = f"{ONE}    queues:\n      mail: {ecs}\n      {theirs}/mail: {ecs}\n"
    assert complaints(both) == []
    said = complaint(f"{both}    publish: true\n")
    assert said.endswith("expected none with publish, as 'mail' has the same name in CloudWatch")
    elsewhere = both.replace(f"{theirs}/mail", f"{theirs.replace('eu-west-1', 'us-east-1')}/mail")
    assert complaints(f"{elsewhere}    publish: true\n") == []


@pytest.mark.parametrize(
    ("settings", "account"),
    [
        ("", "123456789012"),
        ("    role_arn: arn:aws:iam::888888888888:role/reader\n", "888888888888"),
    ],
)
def test_whose_numbers_cloudwatch_has(settings: str, account: str) -> None:
    """The role's account if one is assumed, else that of the prefix."""
    url = "https://sqs.eu-west-1.amazonaws.com/999999999999/mail"
    assert sqs(f"{ONE}{settings}    queues: {{{url}: }}\n").account == account
