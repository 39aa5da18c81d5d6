"""Where runbooks about SQS and Fargate are run: the demo's world, and an `aws` that finds it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exporter import app, config
from exporter.demo.fargate.aws import ACCOUNT, CREDENTIALS, REGION, Aws
from exporter.demo.fargate.incidents import INCIDENTS
from exporter.demo.fargate.plan import CLUSTER
from exporter.demo.fargate.run import connections
from exporter.demo.fargate.world import FargateWorld

from .stage import Stage, serving

DEBIAN = "/usr/bin/aws"  # version 2, which is asked as a reader would ask; the environment cannot tell it an endpoint
NEVER = 1e9  # seconds until the scaling does what the page is about to do


@contextmanager
def on_aws(name: str, tasks: int = 1, step: float = NEVER) -> Iterator[Stage]:
    """This incident of the demo, with the variables of every page that is about SQS or ECS; `tasks` help."""
    plan = INCIDENTS[name].plan
    service = plan.services[0]
    with pytest.MonkeyPatch.context() as environment, Aws() as aws, FargateWorld(plan, aws, step=step) as world:
        for variable, credential in CREDENTIALS.items():
            environment.setenv(variable, credential)
        world.fill()
        world.start()
        watching = app.build(config.parse({"connections": connections(plan, aws.url, 1)}))
        with _aws(aws.url) as tools, serving(watching) as address:
            yield Stage(
                {
                    "EXPORTER": address,
                    "AWS_REGION": REGION,
                    "QUEUE": service.queue,
                    "URL": f"{aws.prefix}/{service.queue}",
                    "DLQ": f"{aws.prefix}/{service.dead_letter_queue}",
                    "DLQ_ARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{service.dead_letter_queue}",
                    "CLUSTER": CLUSTER,
                    "SERVICE": service.name,
                    "PREVIOUS": f"{service.name}:1",
                    "TASKS": str(tasks),
                    "PATH": f"{tools}:{os.environ['PATH']}",
                    "TMPDIR": tools,  # what a page writes is gone with the stage
                },
                watching,
            )


@contextmanager
def _aws(url: str) -> Iterator[str]:
    """A folder with an `aws` that asks the services at this URL."""
    folder = Path(tempfile.mkdtemp(prefix="queue-exporter-aws-"))
    tool = folder / "aws"
    tool.write_text(f'#!/bin/sh\nexec {DEBIAN} --endpoint-url {url} --no-cli-pager "$@"\n')
    tool.chmod(0o755)
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder)
