"""What the status page shows of a database besides its queues. Imports no driver."""

from __future__ import annotations

from ...model import Limit, Metric

CONNECTIONS = Metric(
    "laravel_queue_database_connections",
    "Client connections of the whole server by pool (other: of none) and state.",
    ("connection", "pool", "state"),
)
CONNECTIONS_MAX = Metric("laravel_queue_database_connections_max", "The server's max_connections.", ("connection",))
CONNECTIONS_RESERVED = Metric(
    "laravel_queue_database_connections_reserved", "Connections kept for superusers and maintenance.", ("connection",)
)
IN_USE = "{value} of the connections in use, limit {bound}"
USAGE = Metric(
    "laravel_queue_database_connection_usage_ratio",
    "Client connections in use, as a share of those that an application can get.",
    ("connection",),
    limit=(
        Limit(0.8, IN_USE, "LaravelQueueConnectionsHigh", soon=0.9),
        Limit(0.95, IN_USE, "LaravelQueueConnectionsExhausted", page=True),
    ),
)
OUTDATED = Metric(
    "laravel_queue_workers_outdated",
    "Workers connected since before the restart signal. Until we see it change, that is by the clock that wrote it.",
    ("connection", "pool"),
    column="outdated",
    limit=Limit(0, "{value:worker} begun before the restart signal", "LaravelQueueWorkersOutdated"),
)
