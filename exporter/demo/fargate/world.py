"""A world on SQS brought to life: an application that sends, tasks that work, and what AWS itself does beside them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from threading import Event, Lock, Thread
from typing import Any

import botocore.session

from ..payload import payload
from ..plan import Job
from .account import Account
from .aws import ACCOUNT, CREDENTIALS, REGION, Aws, EcsService
from .plan import CLUSTER, Fargate, Service

JOB = Job("App\\Notifications\\OrderShipped")
POLL = 0.5  # seconds between two looks of an idle task
TELL = 5.0  # seconds between two numbers for CloudWatch; AWS takes a minute
LATE = 2.0  # seconds that they are about the past, as moto shows none of this second; AWS's are minutes late
SCALE = 10.0  # seconds between two steps of the scaling; AWS takes a minute
PULL = "CannotPullContainerError: failed to resolve ref registry.internal/worker:1.8.0: not found"
ENDING = 3.0  # seconds that a thread may take to end
SENT, DELETED = "NumberOfMessagesSent", "NumberOfMessagesDeleted"
TRIES = "ApproximateReceiveCount"


class FargateWorld:
    """Threads that talk to the services of `Aws`. `fill` and `start` it; leaving the context ends all of it."""

    def __init__(self, plan: Fargate, aws: Aws, wall: Callable[[], float] = time.time, step: float = SCALE) -> None:
        self.plan, self.aws, self.wall, self.step = plan, aws, wall, step
        self.chance = Random()  # noqa: S311  # luck, not secrets
        session = botocore.session.Session()
        session.set_credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
        self.sqs, self.cloudwatch = (
            session.create_client(service, REGION, endpoint_url=aws.url) for service in ("sqs", "cloudwatch")
        )
        self.account = Account(session, aws.url)
        self.stopping = Event()
        self.threads: list[Thread] = []
        self.lock = Lock()
        self.waiting: dict[str, dict[str, float]] = {}  # queue → message → when it was sent: Unix time
        self.counted = Counter[tuple[str, str]]()  # by queue and name in CloudWatch, since that was told

    def __enter__(self) -> FargateWorld:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(ENDING)

    def fill(self) -> None:
        """Queues, services, and the past that the plan begins with."""
        for service in self.plan.services:
            self.create(service)
            now = self.wall()
            for number in range(service.backlog):
                self.send(service, now - service.oldest * (1 - number / service.backlog))
            self.tell(service)

    def create(self, service: Service) -> None:
        """A queue with its dead-letter queue, and the service that works on it."""
        fifo = {"FifoQueue": "true"} if service.fifo else {}
        self.sqs.create_queue(QueueName=service.dead_letter_queue, Attributes=fifo)
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{service.dead_letter_queue}"
        redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": service.max_receives}
        settings = {"VisibilityTimeout": str(service.visibility_timeout), "RedrivePolicy": json.dumps(redrive)}
        self.sqs.create_queue(QueueName=service.queue, Attributes=fifo | settings)
        self.account.deploy(service)
        self.aws.ecs.services[CLUSTER, service.name] = EcsService(
            service.tasks, service.tasks + service.missing, definition=service.deployed
        )
        self.waiting[service.queue] = {}

    def start(self) -> None:
        """The application, the tasks, CloudWatch's numbers and the scaling, a thread each."""
        for service in self.plan.services:
            for number in range(service.tasks):
                self.run(self.work, service, number)
            for what in (self.keep, self.arrive, self.burst, self.observe, self.scale):
                self.run(what, service)

    def run(self, what: Callable[..., None], *about: object) -> None:
        """Do this in a thread of its own."""
        thread = Thread(target=what, args=about, daemon=True)
        self.threads.append(thread)
        thread.start()

    def url(self, queue: str) -> str:
        """The queue's URL."""
        return f"{self.aws.prefix}/{queue}"

    def send(self, service: Service, at: float) -> None:
        """Send one job, that counts as sent at this time."""
        one: dict[str, Any] = {}
        if service.fifo:
            number = self.chance.randrange(1 << 60)
            group = f"customer-{self.chance.randrange(service.groups)}"
            one = {"MessageGroupId": group, "MessageDeduplicationId": str(number)}
        body = payload(JOB, service.queue, self.chance, int(at))
        sent = self.sqs.send_message(QueueUrl=self.url(service.queue), MessageBody=body, **one)
        with self.lock:
            self.waiting[service.queue][sent["MessageId"]] = at
            self.counted[service.queue, SENT] += 1

    def arrive(self, service: Service) -> None:
        """The application: jobs at random moments."""
        while service.per_second and not self.stopping.wait(self.chance.expovariate(service.per_second)):
            self.send(service, self.wall())

    def burst(self, service: Service) -> None:
        """The application once more: many jobs at once, when all others are done."""
        while service.bursts and not self.stopping.wait(1.5 * self.step):
            left = 0 if self.waiting[service.queue] else service.bursts
            while left and not self.stopping.is_set():
                self.send(service, self.wall())
                left -= 1

    def keep(self, service: Service) -> None:
        """ECS: as many tasks as are desired. One that is too many ends after its job."""
        ecs = self.aws.ecs.services[CLUSTER, service.name]
        while not self.stopping.wait(POLL):
            ecs.stopped = PULL if service.missing and ecs.definition == service.deployed else ""
            while ecs.running < ecs.desired and not ecs.stopped:
                ecs.running += 1
                self.run(self.work, service, ecs.running - 1)
            ecs.running = min(ecs.running, ecs.desired)

    def work(self, service: Service, number: int) -> None:
        """One task: a job after the other."""
        url, ecs = self.url(service.queue), self.aws.ecs.services[CLUSTER, service.name]
        while not self.stopping.is_set() and number < ecs.running:
            found = self.sqs.receive_message(QueueUrl=url, AttributeNames=[TRIES]).get("Messages", [])
            if not found:
                self.stopping.wait(POLL)
            for message in found:
                self.stopping.wait(service.seconds)
                receipt = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}
                if self.chance.random() < service.fails and ecs.definition == service.deployed:
                    if int(message["Attributes"][TRIES]) >= service.max_receives:  # SQS puts it aside now
                        self.forget(service, message)
                    self.sqs.change_message_visibility(**receipt, VisibilityTimeout=0)
                    continue
                self.sqs.delete_message(**receipt)
                self.forget(service, message)
                with self.lock:
                    self.counted[service.queue, DELETED] += 1

    def forget(self, service: Service, message: dict[str, Any]) -> None:
        """This message is not in the queue any more."""
        with self.lock:
            self.waiting[service.queue].pop(message["MessageId"], None)

    def observe(self, service: Service) -> None:
        """What AWS does by itself: numbers for CloudWatch."""
        while not self.stopping.wait(TELL):
            self.tell(service)

    def tell(self, service: Service) -> None:
        """One number of each kind for CloudWatch."""
        now = self.wall()
        with self.lock:
            oldest = min(self.waiting[service.queue].values(), default=now)
            counted = {name: self.counted.pop((service.queue, name), 0) for name in (SENT, DELETED)}
        about = {
            "Dimensions": [{"Name": "QueueName", "Value": service.queue}],
            "Timestamp": datetime.fromtimestamp(now - LATE, UTC),
        }
        numbers = {"ApproximateAgeOfOldestMessage": now - oldest} | counted
        data = [about | {"MetricName": name, "Value": value} for name, value in numbers.items()]
        self.cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=data)

    def scale(self, service: Service) -> None:
        """Target tracking in small: one task more while the backlog per task is above what is acceptable."""
        ecs = self.aws.ecs.services[CLUSTER, service.name]
        while service.most_tasks and not self.stopping.wait(self.step):
            ready = int(
                self.sqs.get_queue_attributes(
                    QueueUrl=self.url(service.queue), AttributeNames=["ApproximateNumberOfMessages"]
                )["Attributes"]["ApproximateNumberOfMessages"]
            )
            if ready / max(ecs.running, 1) > service.acceptable and ecs.desired < service.most_tasks:
                ecs.desired += 1
            elif service.scales_in and not ready and not self.account.scale_in_suspended(service):
                ecs.desired = 1
