"""What can be set for a connection of Laravel's `sqs` driver."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ...documents import Complaint
from ...queues import OTHER
from ...settings import OR_EMPTY, Name, Seconds, Settings, WholeSeconds, at_least, refuse
from . import names
from .names import Place

ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/\S+", re.ASCII)
EACH_MINUTE = 60.0  # seconds
ENDPOINTS = "AWS_ENDPOINT_URL"  # how the names of variables begin that say the same
SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")  # variables
EVERYTHING, NOTHING = {"true": ""}, ("false", None)


def region(text: str) -> str:
    """A region of AWS."""
    if not names.REGION.fullmatch(text):
        raise ValueError("expected a region such as eu-west-1")
    return text


def url(text: str) -> str:
    """An http(s) URL without a login, a query or a fragment in it."""
    if not names.is_prefix(f"{text.rstrip('/')}/x"):
        raise ValueError("expected a URL such as https://sqs.internal")
    return text.rstrip("/")


def prefix(text: str) -> str:
    """What stands before a queue's name in its URL: without the account, something else would be asked."""
    if not names.is_prefix(text):
        raise ValueError("expected a URL with the account, such as https://sqs.eu-west-1.amazonaws.com/123456789012")
    return text.rstrip("/")


def role(text: str) -> str:
    """The ARN of a role."""
    if not ROLE.fullmatch(text):
        raise ValueError("expected a role's ARN such as arn:aws:iam::123456789012:role/queue-exporter")
    return text


def suffix(text: str) -> str:
    """What may end a queue's name."""
    if not re.fullmatch(r"[\w-]{0,79}", text, re.ASCII):
        raise ValueError("expected letters, digits, - and _")
    return text


def queue(text: str) -> str:
    """A queue as Laravel may name it: by its name in SQS without the suffix, or by its URL."""
    if text == OTHER:
        raise ValueError(f"expected another name than {OTHER!r}, which means: all the rest")
    if not names.NAME.fullmatch(text) and not names.is_url(text):
        raise ValueError("expected a queue's name (letters, digits, - and _, perhaps .fifo) or its URL")
    return text


def beginning(value: object) -> object:
    """How the names of queues begin that are looked for: true for all, false for none."""
    if isinstance(value, bool):
        value = str(value).lower()
    if value in NOTHING:
        return None
    value = EVERYTHING.get(str(value), value)
    if not isinstance(value, str) or not re.fullmatch(r"[\w-]{0,80}", value, re.ASCII):
        raise ValueError("expected true, false, or how the names of queues begin")
    return value


Region = Annotated[str, AfterValidator(region)]
Url = Annotated[str, AfterValidator(url)]
Prefix = Annotated[str, AfterValidator(prefix)]
Role = Annotated[str, AfterValidator(role)]
Suffix = Annotated[str, AfterValidator(suffix)]
NamedQueue = Annotated[str, AfterValidator(queue)]
Beginning = Annotated[str | None, BeforeValidator(beginning)]


class Ecs(Settings):
    """The ECS service whose tasks work on a queue."""

    cluster: Name = Field(description="its cluster: name or ARN")
    service: Name = Field(description="the service: name or ARN")


class Queue(Settings):
    """One queue; what is not set is taken from the connection."""

    target_wait: Seconds | None = Field(default=None, description="its own")
    seconds_per_job: Seconds | None = Field(
        default=None, description="how long a job takes on average; without it, measured with the help of CloudWatch"
    )
    timeout: WholeSeconds | None = Field(
        default=None, description="the workers' `--timeout`, compared with the queue's VisibilityTimeout"
    )
    ecs: Ecs | None = Field(default=None, description="the ECS service that works on it")


class CloudWatch(Settings):
    """What CloudWatch is asked for: the oldest age, messages sent and deleted."""

    interval: Annotated[Seconds, AfterValidator(at_least(60, "as there is a number for each minute"))] = Field(
        default=120.0, description="between two polls; each number is of a minute, and each poll is paid for"
    )


class Sqs(Settings):
    """One connection of the `sqs` driver: the queues of one account."""

    driver: Literal["sqs"] = Field(description="`sqs`")
    region: Region | None = Field(default=None, description="needed where no URL says it")
    prefix: Prefix | None = Field(default=None, description="as in `config/queue.php`; without it queues are looked up")
    suffix: Suffix = Field(default="", description="as in `config/queue.php`")
    endpoint_url: Url | None = Field(
        default=None,
        description="of all services: LocalStack, moto; for single ones there is `AWS_ENDPOINT_URL_SQS` &c.",
    )
    role_arn: Role | None = Field(default=None, description="a role to assume, of this or another account")
    target_wait: Seconds | None = Field(default=None, description="how long a job may wait; without it nothing is late")
    interval: Annotated[Seconds, AfterValidator(at_least(1, "as each request is paid for"))] = Field(
        default=60.0, description="between two polls"
    )
    timeout: Annotated[Seconds, AfterValidator(at_least(0.1, "as no answer can come sooner"))] = Field(
        default=10.0, description="of one poll, all requests and their repetitions included"
    )
    discover: Beginning = Field(
        default=None, description="also watch the queues whose names in SQS begin like this; `true`: all"
    )
    cloudwatch: CloudWatch | None = Field(
        default=CloudWatch(), description="null for none: it costs more than all the rest"
    )
    publish: bool = Field(
        default=False, description="put the backlog per task into CloudWatch, as `Custom/QueueWorker BacklogPerTask`"
    )
    queues: Annotated[dict[NamedQueue, Annotated[Queue, OR_EMPTY]], OR_EMPTY] = Field(
        default_factory=dict, description="queues by name or URL"
    )

    @model_validator(mode="after")
    def can_be_asked(self) -> Sqs:
        """Each queue has a region and is there once, and there is something to watch."""
        if wrong := [*self._wrong_queues(), *self._missing()]:
            raise refuse(*wrong)
        return self

    def _wrong_queues(self) -> Iterator[Complaint]:
        seen: dict[str, str] = {}
        for name in self.queues:
            if not names.NAME.fullmatch(names.sqs_name(self.address_of(name))):
                yield Complaint(("queues", name), "expected a name of 80 characters at most, with its suffix")
            if (first := seen.setdefault(self.identity_of(self.address_of(name)), name)) != name:
                yield Complaint(("queues", name), f"expected once, but it is the same queue as {first!r}")

    def _missing(self) -> Iterator[Complaint]:
        lost = [f"the queue {name!r}" for name in self.queues if self.region_at(self.address_of(name)) is None]
        if self.discover is not None and self.region_at(self.prefix) is None:
            lost.append("what discover looks for")
        if lost:
            yield Complaint(("region",), f"expected a region such as eu-west-1, as no URL says where {lost[0]} is")
        if not self.queues and self.discover is None:
            yield Complaint(("queues",), "expected at least one queue, or discover")
        if self.publish and not any(queue.ecs for queue in self.queues.values()):
            yield Complaint(("publish",), "expected a queue with ecs: without tasks there is no backlog per task")
        yield from self._published_twice()
        if self.publish and self.interval > EACH_MINUTE:
            yield Complaint(("interval",), "expected 60s or less with publish, as a number is needed each minute")

    def _published_twice(self) -> Iterator[Complaint]:
        """CloudWatch tells queues apart by their names in SQS alone."""
        seen: dict[tuple[str | None, str], str] = {}
        for name in (name for name, queue in self.queues.items() if self.publish and queue.ecs):
            address = self.address_of(name)
            first = seen.setdefault((self.region_at(address), names.sqs_name(address)), name)
            if first != name:
                yield Complaint(
                    ("queues", name, "ecs"),
                    f"expected none with publish, as {first!r} has the same name in CloudWatch",
                )

    def connection_of(self, queue: str, default: str) -> str:
        """Laravel's name of the connection that this queue's workers use: this one."""
        return default

    def address_of(self, queue: str) -> str:
        """The queue's URL as Laravel builds it; without a prefix, its name in SQS."""
        if names.is_url(queue):
            return queue.rstrip("/")
        name = names.suffixed(queue, self.suffix)
        return f"{self.prefix}/{name}" if self.prefix else name

    def region_at(self, address: str | None) -> str | None:
        """The region that a URL names, else the one that is set."""
        return (names.region_in(address) if address else None) or self.region

    def place_of(self, address: str) -> Place:
        """Where the queue of this URL, or of this name, is asked for."""
        there = self.endpoint_url or (names.endpoint_in(address) if names.is_url(address) else None)
        return Place(self.region_at(address) or self.home, there)

    def identity_of(self, address: str) -> str:
        """What all addresses of one queue have in common."""
        return names.identity(address, self.region_at(address), one_endpoint=self.endpoint_url is not None)

    @property
    def home(self) -> str:
        """The region of what belongs to no queue."""
        addresses = (self.prefix, *map(self.address_of, self.queues))
        return next(found for address in addresses if (found := self.region_at(address)))

    @property
    def account(self) -> str | None:
        """The account of our credentials, as far as the settings tell: the role's, the prefix's, the first URL's."""
        if self.role_arn:
            return self.role_arn.split(":")[4]
        urls = (*([f"{self.prefix}/queue"] if self.prefix else []), *map(self.address_of, self.queues))
        return next(filter(None, map(names.account_in, urls)), None)

    def of(self, queue: str) -> Queue:
        """What is set for a queue; of one that was found, the defaults."""
        return self.queues.get(queue) or Queue()

    def target_wait_of(self, queue: str) -> float | None:
        """Seconds that a job of this queue may wait; None if nobody decided."""
        return self.of(queue).target_wait or self.target_wait

    def doubts(self) -> Iterator[Complaint]:
        """What is no mistake in the settings, but says that one lies in wait. What SQS has set is not known here."""
        beside = self.prefix is not None and not names.is_aws(self.prefix) and not self.endpoint_url
        asked = self.cloudwatch or self.publish or any(queue.ecs for queue in self.queues.values())
        if beside and asked and not any(name.startswith(ENDPOINTS) for name in os.environ):
            yield Complaint(
                ("endpoint_url",),
                "expected one, as the prefix is no host of AWS: ecs, cloudwatch and publish ask AWS itself without it",
            )
        for name, queue in self.queues.items():
            if queue.timeout and queue.seconds_per_job and queue.seconds_per_job >= queue.timeout:
                yield Complaint(
                    ("queues", name, "timeout"),
                    f"expected more than the {queue.seconds_per_job:g}s of seconds_per_job: "
                    "the worker kills what takes as long as usual",
                )

    def secrets(self) -> list[str]:
        """Those of the environment; what else the chain of credentials finds, no message of ours repeats."""
        return [secret for name in SECRETS if (secret := os.environ.get(name))]
