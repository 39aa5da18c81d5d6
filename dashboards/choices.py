"""What one can choose on a board, and which labels are held to it."""

from __future__ import annotations

from .board import Variable

TARGETS = (
    Variable("job", "laravel_queue_source_up"),
    Variable("instance", "laravel_queue_source_up"),
    Variable("exporter", "laravel_queue_exporter_build_info", hidden=True),  # one of them, for links to its runbooks
)
QUEUE = Variable("queue", "laravel_queue_jobs", every=".*")  # a queue may have the empty name: then there is no label
MATCHED = {
    "job": "job",
    "instance": "instance",
    "connection": "connection",
    "source": "connection",  # a source is called as its connection
    "queue": "queue",
}


def connections(driver: str = "") -> tuple[Variable, ...]:
    """Exporters, connections (of one driver) and their queues."""
    of = f'laravel_queue_connection_info{{driver="{driver}"}}' if driver else "laravel_queue_connection_info"
    return (*TARGETS, Variable("connection", of, every="" if driver else ".+"), QUEUE)
