"""AWS on this machine, in all its moods: it denies, throttles, fails, delays and answers nonsense as it is told to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import botocore.session

from exporter.demo.fargate.aws import CREDENTIALS, REGION, Application, Aws, Environ, StartResponse


@dataclass(frozen=True)
class Asked:
    """A request as the far side sees it."""

    operation: str
    body: str
    headers: dict[str, str] = field(default_factory=dict)


Answer = tuple[str, dict[str, Any] | bytes]  # status line and content
Mood = Callable[[Asked], Answer | None]  # None: as usual


def error(code: str, message: str = "no", status: str = "400 Bad Request") -> Answer:
    """An error as AWS's JSON protocols have it."""
    return status, {"__type": f"com.amazonaws#{code}", "message": message}


def about(operation: str, what: str, answer: Answer) -> Mood:
    """This answer to requests of one operation that mention something; all others are answered as usual."""
    return lambda asked: answer if asked.operation == operation and what in asked.body else None


class Cloud:
    """A web application around the services: notes each request, and may answer it in their place."""

    def __init__(self, inner: Application) -> None:
        self.inner = inner
        self.well()

    def well(self) -> None:
        """Forget everything."""
        self.mood: Mood = lambda asked: None
        self.delay: Callable[[Asked], float] = lambda asked: 0.0
        self.asked: list[Asked] = []

    def operations(self) -> list[str]:
        """What was asked for, in order."""
        return [asked.operation for asked in self.asked]

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = _Body(body)
        asked = Asked(operation(environ, body), body.decode("utf-8", "replace"), headers(environ))
        self.asked.append(asked)
        time.sleep(self.delay(asked))
        if (answer := self.mood(asked)) is None:
            return self.inner(environ, start_response)
        status, content = answer
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        start_response(status, [("Content-Type", "application/x-amz-json-1.0"), ("Content-Length", str(len(data)))])
        return [data]


class _Body:
    """A request's body that can be read once more."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, size: int = -1) -> bytes:
        """So much of it, or all."""
        size = len(self.data) if size is None or size < 0 else size
        read, self.data = self.data[:size], self.data[size:]
        return read


def headers(environ: Environ) -> dict[str, str]:
    """The request's headers."""
    return {name[5:].lower(): str(value) for name, value in environ.items() if name.startswith("HTTP_")}


def operation(environ: Environ, body: bytes) -> str:
    """The operation that a request asks for, in whichever protocol."""
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        return str(target).rpartition(".")[2]
    if "/operation/" in environ["PATH_INFO"]:
        return str(environ["PATH_INFO"]).rpartition("/")[2]
    return body.decode("utf-8", "replace").partition("Action=")[2].partition("&")[0]


class World:
    """Queues, messages and metrics, made by a client of our own that goes past the moods."""

    def __init__(self, aws: Aws, cloud: Cloud) -> None:
        self.aws, self.cloud = aws, cloud
        self.clients: dict[tuple[str, str], Any] = {}
        self.session = botocore.session.Session()
        self.session.set_credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])

    def client(self, service: str, region: str = REGION) -> Any:
        """A client of one service."""
        if (service, region) not in self.clients:
            made = self.session.create_client(service, region, endpoint_url=self.aws.url)
            self.clients[service, region] = made
        return self.clients[service, region]

    def queue(self, name: str, messages: int = 0, groups: int = 1, **attributes: Any) -> str:
        """The URL of a new queue with messages in it, in so many groups if it is a FIFO queue."""
        with self.unseen():
            sqs = self.client("sqs")
            fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
            attributes = {
                key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()
            }
            url = str(sqs.create_queue(QueueName=name, Attributes=fifo | attributes)["QueueUrl"])
            for first in range(0, messages, 10):
                sqs.send_message_batch(
                    QueueUrl=url,
                    Entries=[
                        {"Id": str(number), "MessageBody": "{}"}
                        | (
                            {"MessageGroupId": f"g{number % groups}", "MessageDeduplicationId": str(number)}
                            if fifo
                            else {}
                        )
                        for number in range(first, min(first + 10, messages))
                    ],
                )
            return url

    def receive(self, url: str) -> list[Any]:
        """What a worker gets that asks once for a message."""
        with self.unseen():
            found: list[Any] = self.client("sqs").receive_message(QueueUrl=url).get("Messages", [])
            return found

    def measured(self, queue: str, name: str, values: dict[float, float]) -> None:
        """What CloudWatch knows of a queue: Unix time → number."""
        with self.unseen():
            data = [
                {
                    "MetricName": name,
                    "Dimensions": [{"Name": "QueueName", "Value": queue}],
                    "Timestamp": datetime.fromtimestamp(at, UTC),
                    "Value": value,
                }
                for at, value in values.items()
            ]
            self.client("cloudwatch").put_metric_data(Namespace="AWS/SQS", MetricData=data)

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Requests in here are neither noted nor answered in any mood."""
        mood, delay, asked = self.cloud.mood, self.cloud.delay, self.cloud.asked
        self.cloud.well()
        try:
            yield
        finally:
            self.cloud.mood, self.cloud.delay, self.cloud.asked = mood, delay, asked

    def reset(self) -> None:
        """Remove everything."""
        self.cloud.well()
        self.aws.reset()
        self.cloud.well()


@contextmanager
def started() -> Iterator[World]:
    """The services, with nothing in them."""
    with Aws() as aws:
        aws.front = cloud = Cloud(aws.front)
        yield World(aws, cloud)
