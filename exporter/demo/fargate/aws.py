"""
AWS in miniature on this machine: SQS, CloudWatch and STS by moto, and an ECS of our own.

moto's ECS has services, but never a running task. So those requests are answered here, in
ECS's JSON protocol, from numbers that whoever runs it may change.
"""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

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


@dataclass
class Ecs:
    """A web application that speaks as much of ECS's protocol as DescribeServices needs."""

    services: dict[tuple[str, str], EcsService] = field(default_factory=dict)  # by cluster and name

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        question = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        operation = environ["HTTP_X_AMZ_TARGET"].removeprefix(ECS)
        if operation != "DescribeServices":
            return self._answer(start_response, "400 Bad Request", {"__type": "UnknownOperationException"})
        cluster, asked = str(question["cluster"]), [str(name) for name in question["services"]]
        if not any(cluster == there for there, _ in self.services):
            error = {"__type": "ClusterNotFoundException", "message": "Cluster not found."}
            return self._answer(start_response, "400 Bad Request", error)
        if len(asked) > 10:
            error = {"__type": "InvalidParameterException", "message": "services must have at most 10 items."}
            return self._answer(start_response, "400 Bad Request", error)
        services = [self._described(cluster, name) for name in asked if (cluster, name) in self.services]
        missing = [name for name in asked if (cluster, name) not in self.services]
        failures = [{"arn": self._arn(cluster, name), "reason": "MISSING"} for name in missing]
        return self._answer(start_response, "200 OK", {"services": services, "failures": failures})

    def _described(self, cluster: str, name: str) -> dict[str, Any]:
        service = self.services[cluster, name]
        return {
            "serviceName": name,
            "serviceArn": self._arn(cluster, name),
            "status": service.status,
            "runningCount": service.running,
            "desiredCount": service.desired,
            "pendingCount": service.pending,
            "deployments": [{"status": "ACTIVE" if n else "PRIMARY"} for n in range(service.deployments)],
        }

    def _arn(self, cluster: str, name: str) -> str:
        return f"arn:aws:ecs:{REGION}:{ACCOUNT}:service/{cluster}/{name}"

    def _answer(self, start_response: StartResponse, status: str, content: dict[str, Any]) -> Iterable[bytes]:
        start_response(status, [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps(content).encode()]


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
        self.moto: Application = DomainDispatcherApplication(create_backend_app)
        self.turn = Lock()  # moto's queues break if two requests remove a message from one at the same time
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
        if str(environ.get("HTTP_X_AMZ_TARGET", "")).startswith(ECS):
            return self.ecs(environ, start_response)
        with self.turn:
            return self.moto(environ, start_response)
