"""
AWS in miniature on this machine: SQS, CloudWatch and STS by moto, and an ECS of our own.

moto's ECS has services, but never a running task. So what is asked and said about services and tasks is answered
here, in ECS's JSON protocol, from numbers that whoever runs it may change; the rest of ECS is moto's.
"""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any, ClassVar

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

ACCOUNT, REGION = "123456789012", "eu-west-1"
CREDENTIALS = {  # that moto takes, as it takes any
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_EC2_METADATA_DISABLED": "true",
}
ECS = "AmazonEC2ContainerServiceV20141113."  # before the operation, in X-Amz-Target

Environ = dict[str, Any]
Answer = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


@dataclass
class EcsService:
    """A service, as DescribeServices tells of it."""

    running: int = 0
    desired: int = 0
    pending: int = 0
    status: str = "ACTIVE"
    deployments: int = 1
    definition: str = "worker:1"  # family and revision of its tasks
    stopped: str = ""  # why its last tasks stopped, if they did

    @property
    def events(self) -> list[str]:
        """What ECS says that it did for the service; the newest first."""
        return (
            ["is unable to consistently start tasks successfully."] if self.stopped else ["has reached a steady state."]
        )


class RefusedError(Exception):
    """An answer that is an error: its type and message."""


@dataclass
class Ecs:
    """A web application that speaks the part of ECS's protocol that is about services and their tasks."""

    services: dict[tuple[str, str], EcsService] = field(default_factory=dict)  # by cluster and name

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        question = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        operation = environ["HTTP_X_AMZ_TARGET"].removeprefix(ECS)
        try:
            status, content = "200 OK", self.operations[operation](self, self._cluster(question), question)
        except RefusedError as error:
            status, content = "400 Bad Request", dict(zip(("__type", "message"), error.args, strict=True))
        start_response(status, [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps(content).encode()]

    def _cluster(self, question: Answer) -> str:
        cluster = str(question["cluster"])
        if not any(cluster == there for there, _ in self.services):
            raise RefusedError("ClusterNotFoundException", "Cluster not found.")
        return cluster

    def _describe_services(self, cluster: str, question: Answer) -> Answer:
        asked = [str(name) for name in question["services"]]
        if len(asked) > 10:
            raise RefusedError("InvalidParameterException", "services must have at most 10 items.")
        missing = [name for name in asked if (cluster, name) not in self.services]
        return {
            "services": [self._described(cluster, name) for name in asked if name not in missing],
            "failures": [{"arn": self._arn("service", cluster, name), "reason": "MISSING"} for name in missing],
        }

    def _update_service(self, cluster: str, question: Answer) -> Answer:
        name = str(question["service"])
        if not (service := self.services.get((cluster, name))):
            raise RefusedError("ServiceNotFoundException", "Service not found.")
        service.desired = int(question.get("desiredCount", service.desired))
        service.definition = str(question.get("taskDefinition", service.definition))
        return {"service": self._described(cluster, name)}

    def _list_tasks(self, cluster: str, question: Answer) -> Answer:
        name = str(question.get("serviceName", ""))
        service = self.services.get((cluster, name), EcsService())
        count = bool(service.stopped) if question.get("desiredStatus") == "STOPPED" else service.running
        return {"taskArns": [self._arn("task", cluster, f"{name}-{number}") for number in range(count)]}

    def _describe_tasks(self, cluster: str, question: Answer) -> Answer:
        return {"tasks": [self._task(cluster, str(arn)) for arn in question["tasks"]], "failures": []}

    def _task(self, cluster: str, arn: str) -> Answer:
        service = self.services[cluster, arn.rpartition("/")[2].rpartition("-")[0]]
        state = (
            {"lastStatus": "STOPPED", "stoppedReason": service.stopped}
            if service.stopped
            else {"lastStatus": "RUNNING"}
        )
        return {"taskArn": arn, "taskDefinitionArn": service.definition} | state

    def _described(self, cluster: str, name: str) -> dict[str, Any]:
        service = self.services[cluster, name]
        return {
            "serviceName": name,
            "serviceArn": self._arn("service", cluster, name),
            "status": service.status,
            "runningCount": service.running,
            "desiredCount": service.desired,
            "pendingCount": service.pending,
            "taskDefinition": f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{service.definition}",
            "events": [{"id": event, "message": f"(service {name}) {event}"} for event in service.events],
            "deployments": [{"status": "ACTIVE" if n else "PRIMARY"} for n in range(service.deployments)],
        }

    def _arn(self, kind: str, cluster: str, name: str) -> str:
        return f"arn:aws:ecs:{REGION}:{ACCOUNT}:{kind}/{cluster}/{name}"

    operations: ClassVar[Mapping[str, Callable[[Ecs, str, Answer], Answer]]] = {
        "DescribeServices": _describe_services,
        "UpdateService": _update_service,
        "ListTasks": _list_tasks,
        "DescribeTasks": _describe_tasks,
    }


class QuietHandler(WSGIRequestHandler):
    """Keeps connections open, as AWS does, and tells nobody about requests."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002  # werkzeug's name
        """Say nothing."""


class Aws:
    """The services on one port. A context manager; moto keeps what is in the queues, once for the whole process."""

    def __init__(self, port: int = 0) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.ecs = Ecs()
        self.services: Application = DomainDispatcherApplication(create_backend_app)
        self.one_at_a_time = Lock()
        self.front: Application = self._route  # who is asked first
        self.server = make_server("127.0.0.1", port, self._ask, threaded=True, request_handler=QuietHandler)
        self.port = int(self.server.port)
        self.url = f"http://127.0.0.1:{self.port}"
        self.prefix = f"{self.url}/{ACCOUNT}"  # of queues' URLs
        self._thread = Thread(target=self.server.serve_forever, name="aws", daemon=True)

    def __enter__(self) -> Aws:
        self._thread.start()
        self.reset()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def reset(self) -> None:
        """Remove everything."""
        request = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")  # noqa: S310  # to ourselves
        urllib.request.urlopen(request).close()  # noqa: S310  # the same
        self.ecs.services.clear()

    def _ask(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        return self.front(environ, start_response)

    def _route(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        service, _, operation = str(environ.get("HTTP_X_AMZ_TARGET", "")).rpartition(".")
        ours = f"{service}." == ECS and operation in self.ecs.operations
        return (self.ecs if ours else self.moto)(environ, start_response)

    def moto(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """All other services. moto is not made for threads: two that receive at once get the same message."""
        with self.one_at_a_time:
            return list(self.services(environ, start_response))
