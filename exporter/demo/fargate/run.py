"""The demonstration on SQS: AWS in miniature, and a world in it. What it imports is in the extra."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from ..daemon import free_port
from .aws import ACCOUNT, CREDENTIALS, REGION, Aws
from .plan import CLUSTER, Fargate
from .world import FargateWorld

Say = Callable[[str], None]


def prepare(plan: Fargate, interval: float) -> tuple[dict[str, Any], Callable[[ExitStack, Say], None]]:
    """The connections to watch each `interval`, and how to begin."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]  # nobody's own account is asked
    os.environ.update(CREDENTIALS)
    port = free_port()

    def begin(ended: ExitStack, say: Say) -> None:
        say("starting SQS, CloudWatch and ECS in miniature")
        world = ended.enter_context(FargateWorld(plan, ended.enter_context(Aws(port))))
        say(f"sending {sum(service.backlog for service in plan.services)} jobs")
        world.fill()
        tasks = ", ".join(f"{service.tasks} for {service.queue}" for service in plan.services)
        say(f"starting tasks ({tasks})")
        world.start()

    return connections(plan, f"http://127.0.0.1:{port}", interval), begin


def connections(plan: Fargate, url: str, interval: float) -> dict[str, Any]:
    """The connections of an exporter that knows this world."""
    queues = {
        service.queue: {
            "target_wait": service.target_wait,
            "seconds_per_job": service.seconds,
            "timeout": service.timeout,
            "ecs": {"cluster": CLUSTER, "service": service.name},
        }
        for service in plan.services
    }
    sqs = {
        "driver": "sqs",
        "region": REGION,
        "prefix": f"{url}/{ACCOUNT}",
        "endpoint_url": url,
        "interval": interval,
        "cloudwatch": {"interval": 60},
        "publish": True,
        "queues": queues,
    }
    return {"sqs": sqs}
