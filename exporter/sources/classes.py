"""Which job classes are shown under their own names."""

from __future__ import annotations

from ..queues import OTHER

MOST = 100  # of one source; what comes later is `other`


class JobClasses:
    """The first hundred classes that were seen in a source. They are the labels of counters, so none is forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._shown: set[str] = set()

    def shown(self, job_class: str | None) -> str:
        """The name it is shown under; a job whose class is not known is `other`."""
        if job_class in (None, OTHER):
            return OTHER
        if len(self._shown) < self.most:
            self._shown.add(job_class)
        return job_class if job_class in self._shown else OTHER
