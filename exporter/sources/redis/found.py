"""Queues that nobody named, found by reading through the names of all keys, a bounded number at a time."""

from __future__ import annotations

import re

from ...timing import Deadline
from ..resp.replies import answered
from .session import Session

STEP = 1000  # keys that Redis looks at in one go: a quarter of a millisecond in which it does nothing else
STEPS = 4  # in one poll
STEPS_ONCE = 400  # where nobody will ask again
MOST = 1000  # found queues that are asked for
PARTS = re.compile(r":(delayed|reserved|notify)$")


class Found:
    """The queues found so far. One whose keys are gone is dropped when all keys have been read once more."""

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.pattern = f"{escaped(self.settings.prefix)}queues:*"
        self.cursor = 0
        self.queues: dict[str, None] = {}  # in the order in which they were found
        self.this_round: set[str] = set()
        self.too_many = 0  # keys of other queues, in the last round through all keys
        self.left_out = 0  # in this one, so far

    @property
    def unseen(self) -> int:
        """Keys of queues that are too many to be asked for."""
        return max(self.too_many, self.left_out)

    def look_on(self, deadline: Deadline) -> None:
        """Read on where the last poll stopped. Raises `SourceError`."""
        for _ in range(STEPS_ONCE if self.session.once else STEPS):
            scan = ("SCAN", self.cursor, "MATCH", self.pattern, "COUNT", STEP)
            cursor, keys = answered(self.session.link.ask([scan], deadline)[0])
            self.cursor = int(cursor)
            self._add(keys)
            if self.cursor == 0:
                self.queues = {queue: None for queue in self.queues if queue in self.this_round}
                self.this_round, self.too_many, self.left_out = set(), self.left_out, 0
                return

    def _add(self, keys: list[bytes]) -> None:
        begin = len(self.settings.prefix) + len("queues:")
        for key in keys:
            queue = PARTS.sub("", key.decode(errors="surrogateescape")[begin:])
            if not 0 < len(queue) <= 255 or queue in self.settings.queues:
                continue
            if queue in self.queues or len(self.queues) < MOST:
                self.queues[queue] = None
                self.this_round.add(queue)
            else:
                self.left_out += 1


def escaped(text: str) -> str:
    """A text as a pattern that matches nothing else."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)
