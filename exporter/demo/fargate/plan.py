"""
The nouns of a world on SQS and Fargate. Plain frozen data, as those of the plan beside it.

Imports nothing but the standard library. Seconds everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

CLUSTER = "queue-workers"


@dataclass(frozen=True, slots=True)
class Service:
    """A queue, the ECS service whose tasks work on it, and the application that fills it."""

    queue: str
    tasks: int  # running at the start
    seconds: float = 0.5  # that a job takes
    per_second: float = 0.0  # jobs that arrive
    groups: int = 8  # message groups that they are spread over, of a FIFO queue
    backlog: int = 0  # jobs that are there at the start
    oldest: float = 0.0  # how long the first of them has been waiting, as CloudWatch tells
    fails: float = 0.0  # the chance that a job throws; then it is handed out again at once
    max_receives: int = 3  # after which a message goes to the dead-letter queue
    target_wait: int = 30
    timeout: int = 60  # --timeout
    visibility_timeout: int = 90
    most_tasks: int = 0  # up to so many are added where the backlog per task asks for it; 0 for no scaling
    scales_in: bool = False  # whether all tasks but one are taken away as soon as nothing waits
    bursts: int = 0  # jobs that arrive together, some time after all others are done
    missing: int = 0  # tasks that ECS should run as well, and cannot start

    @property
    def fifo(self) -> bool:
        """Whether it is a FIFO queue."""
        return self.queue.endswith(".fifo")

    @property
    def dead_letter_queue(self) -> str:
        """The queue for what failed too often; FIFO if the queue is."""
        name, dot, kind = self.queue.partition(".")
        return f"{name}-failed{dot}{kind}"

    @property
    def name(self) -> str:
        """The ECS service's."""
        return f"{self.queue.partition('.')[0]}-worker"

    @property
    def deployed(self) -> str:
        """The task definition that was deployed last. What came before it (`:1`) neither fails nor is missing."""
        return f"{self.name}:2"

    @property
    def acceptable(self) -> float:
        """Jobs that one task can do in the target wait."""
        return self.target_wait / self.seconds


@dataclass(frozen=True, slots=True)
class Fargate:
    """A whole world."""

    services: tuple[Service, ...]
