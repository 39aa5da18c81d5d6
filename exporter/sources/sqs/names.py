"""Laravel's names of queues, SQS's URLs and names of them, and what a URL says. Pure functions of texts."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

FIFO = ".fifo"
REGION = re.compile(r"[a-z]{2,4}(-[a-z]+){1,2}-[0-9]+", re.ASCII)
NAME = re.compile(rf"(?=.{{1,80}}\Z)[\w-]+({re.escape(FIFO)})?", re.ASCII)  # as CreateQueue has it
PUBLIC = re.compile(r"\.(amazonaws\.com(\.cn)?|api\.aws)\Z")  # hosts of AWS itself
LOCALSTACK = ".localstack.cloud"  # whose hosts are called as AWS's
DEFAULT_PORTS = {"http": 80, "https": 443}
PRIVATE = "vpce"  # the label of a VPC endpoint's host


class Place(NamedTuple):
    """Where a queue is asked for: a region, and an endpoint if it is not the region's own."""

    region: str
    endpoint: str | None


def is_url(text: str) -> bool:
    """Whether this is the URL of a queue: a host, at least one folder (the account), and the queue's name."""
    folder, _, name = text.rstrip("/").rpartition("/")
    return is_prefix(folder) and bool(NAME.fullmatch(name))


def is_prefix(text: str) -> bool:
    """Whether queues may have such an address before their names: a host, and at least one folder, the account."""
    try:
        parts = urlsplit(text)
        reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # no host or no port can be called so
        return False
    return (
        parts.scheme in ("http", "https")
        and reachable
        and bool(parts.path.strip("/"))
        and not (parts.query or parts.fragment or "@" in parts.netloc or re.search(r"\s", text))
    )


def suffixed(queue: str, suffix: str) -> str:
    """The queue's name in SQS: the suffix goes before `.fifo`, and a name that has it already has it once."""
    kind = FIFO if queue.endswith(FIFO) else ""
    name = queue.removesuffix(FIFO)
    while suffix and name.endswith(suffix):
        name = name.removesuffix(suffix)
    return f"{name}{suffix}{kind}"


def unsuffixed(name: str, suffix: str) -> str | None:
    """The name under which Laravel knows a queue of SQS; None if it cannot reach it, as the suffix is missing."""
    kind = FIFO if name.endswith(FIFO) else ""
    plain = name.removesuffix(FIFO)
    if not plain.endswith(suffix) or plain == suffix:
        return None
    return f"{plain.removesuffix(suffix)}{kind}"


def sqs_name(url: str) -> str:
    """The queue's name in SQS, which CloudWatch calls QueueName."""
    return url.rstrip("/").rpartition("/")[2]


def account_in(url: str) -> str | None:
    """The account that a queue's URL names; None if this is none."""
    return url.rstrip("/").split("/")[-2] if is_url(url) else None


def region_in(url: str) -> str | None:
    """The region that a queue's URL names; None if it names none. A host of one's own may be called like a region."""
    host = urlsplit(url).hostname or ""
    if not (is_aws(url) or host.endswith(LOCALSTACK)):
        return None
    if host in ("queue.amazonaws.com", "sqs.amazonaws.com"):  # from before there was another one
        return "us-east-1"
    return next((label for label in host.split(".") if REGION.fullmatch(label)), None)


def is_aws(url: str) -> bool:
    """Whether this is at a host of AWS itself, a VPC endpoint included."""
    return bool(PUBLIC.search(urlsplit(url).hostname or ""))


def identity(address: str, region: str | None, *, one_endpoint: bool) -> str:
    """
    What two addresses of the same queue have in common.

    AWS has many hosts for each region, and where all is asked at one endpoint the host says nothing.
    """
    if not is_url(address):
        return address
    parts = urlsplit(address)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    return f"{region if one_endpoint or is_aws(address) else f'{parts.hostname}:{port}'}/{parts.path.strip('/')}"


def endpoint_in(url: str) -> str | None:
    """Where to ask for the queue, if that is not the public endpoint of its region: there Laravel asks, too."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_aws(url) and PRIVATE not in host.split("."):
        return None
    return f"{parts.scheme}://{parts.netloc}"


class Arn(NamedTuple):
    """What names a queue across accounts."""

    region: str
    account: str
    name: str


def arn(text: str) -> Arn | None:
    """The parts of a queue's ARN; None if it is none."""
    parts = text.split(":")
    return Arn(*parts[3:]) if len(parts) == 6 and parts[:1] == ["arn"] and parts[2] == "sqs" else None


def beside(url: str, there: Arn) -> str:
    """The URL of another queue at the same endpoint."""
    folders = url.rstrip("/").rpartition("/")[0]
    return f"{folders.rpartition('/')[0]}/{there.account}/{there.name}"
