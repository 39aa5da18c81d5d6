"""What is set for queues by their names, in every driver that names them as Laravel does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from .. import queues
from ..model import Sample
from ..queues import OTHER
from ..settings import Name, QueueName, Seconds, Settings, WholeSeconds


def not_other(name: str) -> str:
    """What has no name of its own, and what there is too much of, is counted under this name."""
    if name == OTHER:
        raise ValueError(f"expected another name than {OTHER!r}, which means: all the rest")
    return name


NamedQueue = Annotated[QueueName, AfterValidator(not_other)]


class Queue(Settings):
    """One queue; what is not set is taken from the connection."""

    connection: Name | None = Field(
        default=None, description="Laravel's name of a second connection to the same table or Redis"
    )
    retry_after: WholeSeconds | None = Field(
        default=None, description="its own, if that connection has one; without it, that of this connection"
    )
    target_wait: Seconds | None = Field(default=None, description="its own")


class WithQueues:
    """Settings of a connection on which queues have names."""

    if TYPE_CHECKING:  # at run time these would be fields, and come before those that it is reached by
        queues: Mapping[str, Queue]
        retry_after: int | None
        target_wait: float | None

    def own(self, queue: str) -> Queue:
        """What is set for this queue alone; nothing for one that is not named."""
        return self.queues.get(queue, Queue())

    def connection_of(self, queue: str, default: str) -> str:
        """Laravel's name of the connection that this queue's workers use; `default` is this connection's."""
        return self.own(queue).connection or default

    def retry_after_of(self, queue: str) -> int | None:
        """Seconds that a job of this queue may be held; None where it is never handed out again."""
        return self.own(queue).retry_after or self.retry_after

    def target_wait_of(self, queue: str) -> float | None:
        """Seconds that a job of this queue may wait; None if nobody decided."""
        return self.own(queue).target_wait or self.target_wait


def of_queue(settings: WithQueues, source: str, queue: str) -> Iterator[Sample]:
    """What is set for one queue, as metrics to compare with."""
    connection = settings.connection_of(queue, source)
    if (retry_after := settings.retry_after_of(queue)) is not None:
        yield queues.RETRY_AFTER(retry_after, connection, queue)
    if (target := settings.target_wait_of(queue)) is not None:
        yield queues.TARGET_WAIT(target, connection, queue)


def of_shown(settings: WithQueues, source: str, shown: Collection[str]) -> Iterator[Sample]:
    """How many queues are shown, by connection; and what is set for those that are not named: the others' is known."""
    watched = Counter(settings.connection_of(queue, source) for queue in shown)
    for connection in {source, *watched}:
        yield queues.QUEUES(watched[connection], connection)
    for queue in shown:
        if queue not in settings.queues:
            yield from of_queue(settings, source, queue)
