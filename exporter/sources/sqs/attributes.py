"""What GetQueueAttributes says of one queue, read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from ...errors import SourceError
from . import errors, names

COUNTS = (*(f"ApproximateNumberOfMessages{state}" for state in ("", "Delayed", "NotVisible")), "VisibilityTimeout")


class Queue(NamedTuple):
    """A queue as SQS describes it."""

    ready: int
    delayed: int
    reserved: int
    visibility_timeout: int  # seconds
    arn: str
    deduplication_scope: str  # both are empty for a queue that is not FIFO
    throughput_limit: str
    dead_letter_arn: str  # empty if it has no dead-letter queue

    @property
    def messages(self) -> int:
        """All that are in it."""
        return self.ready + self.delayed + self.reserved

    @property
    def fifo(self) -> bool:
        """Whether it keeps the order of each message group."""
        return self.arn.endswith(names.FIFO)

    @property
    def dead_letters(self) -> names.Arn | None:
        """The dead-letter queue, if there is one."""
        return names.arn(self.dead_letter_arn)

    @property
    def foreign(self) -> bool:
        """Whether the dead-letter queue is in another account."""
        own, other = names.arn(self.arn), self.dead_letters
        return own is not None and other is not None and own.account != other.account


MOST = 10**15  # of anything that is counted


def read(attributes: Mapping[str, str]) -> Queue:
    """The attributes as a queue. One that is missing is no zero: raises `SourceError`."""
    with errors.reading("GetQueueAttributes"):
        for name in (*COUNTS, "QueueArn"):
            if name not in attributes:
                raise SourceError("malformed", f"the answer has no attribute {name!r}")
        if not all(isinstance(said, str) for said in attributes.values()):
            raise TypeError
        ready, delayed, reserved, visibility = (count(attributes[name]) for name in COUNTS)
        return Queue(
            ready=ready,
            delayed=delayed,
            reserved=reserved,
            visibility_timeout=visibility,
            arn=attributes["QueueArn"],
            deduplication_scope=attributes.get("DeduplicationScope", ""),
            throughput_limit=attributes.get("FifoThroughputLimit", ""),
            dead_letter_arn=str(json.loads(attributes.get("RedrivePolicy") or "{}").get("deadLetterTargetArn", "")),
        )


def count(said: object) -> int:
    """A number of things. Raises `ValueError` or `TypeError` if it cannot be."""
    if isinstance(said, bool) or not isinstance(said, (int, str)) or not 0 <= (number := int(said)) <= MOST:
        raise ValueError
    return number
