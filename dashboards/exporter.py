"""The exporter itself: what is shown, how old it is, what failed and why, what it costs."""

from __future__ import annotations

from .board import Board, Variable
from .choices import TARGETS
from .grafana import Column, Limit, Query, Row
from .panels import label, lines, stat, table

COLLECTOR = "{{source}}/{{collector}}"
BY = "source, collector"
MATCHED = {"job": "job", "instance": "instance", "source": "source"}
AGE = "time() - laravel_queue_source_last_success_timestamp_seconds"

FIRST = Row(
    "Can it see?",
    (
        stat(
            "Exporters down",
            "Exporters that Prometheus cannot scrape. Their own runbooks are not to be had then: the alert says"
            " the first steps.",
            "0.",
            Query("sum(up == bool 0)"),
            limits=(Limit("LaravelQueueExporterDown", 0),),
        ),
        stat(
            "Blind sources",
            "Sources whose jobs cannot be seen: all alerts on them are blind.",
            "0.",
            Query('sum(max by (instance, source) (laravel_queue_source_fresh{collector=~"jobs|queues"} == bool 0))'),
            limits=(Limit("LaravelQueueSourceDown", 0),),
        ),
        stat(
            "Blind collectors",
            "Other collectors whose numbers are withdrawn.",
            "0.",
            Query(
                "sum(max by (instance, source, collector)"
                ' (laravel_queue_source_fresh{collector!~"jobs|queues"} == bool 0))'
            ),
            limits=(Limit("LaravelQueueCollectorDown", 0),),
        ),
        stat(
            "Failed, 15 min",
            "Polls that failed within 15 minutes, of all sources.",
            "0.",
            Query(
                "sum(max by (instance, source, collector, reason) (increase(laravel_queue_source_errors_total[15m])))",
                empty="none ever failed",
            ),
            defaults={"decimals": 0},
            alerts=("LaravelQueueSourceDown",),
        ),
        stat(
            "Slowed down",
            "Collectors that ask less than half as often as configured, because each answer costs the source so much.",
            "0.",
            Query(
                f"sum(max by (instance, {BY}) ((laravel_queue_source_poll_interval_seconds"
                " > bool 2 * laravel_queue_source_configured_interval_seconds) * laravel_queue_source_up))",
            ),
            alerts=("LaravelQueuePollSlow",),
        ),
        stat(
            "Clock off by",
            "The largest offset of a reference clock, its error taken off.",
            "below a second.",
            Query(
                "max(clamp_min(abs(laravel_queue_clock_offset_seconds) - laravel_queue_clock_offset_error_seconds, 0))",
                empty="no clock was read",
            ),
            unit="s",
            limits=(Limit("LaravelQueueClockOffset", 1),),
        ),
        stat(
            "Series",
            "Series that a scrape brings.",
            "it grows with queues and classes, not with time.",
            Query("sum(scrape_samples_scraped)"),
        ),
        stat(
            "Dropped, 1 h",
            "How often something was counted under `other`, as its label had too many values.",
            "0.",
            Query(
                "sum(max by (instance, source, collector, label) (increase(laravel_queue_labels_dropped_total[1h])))",
                empty="none ever was",
            ),
            defaults={"decimals": 0},
        ),
    ),
)

SOURCES = Row(
    "Which source, and why?",
    (
        table(
            "Collectors",
            "Each question that is asked of a source: whether the last answer came, whether what is shown may be"
            " believed, and how old it is. The worst are first.",
            "all up and shown, and younger than the pause between two polls.",
            ("source", "collector"),
            Column(
                f"min by ({BY}) (laravel_queue_source_fresh)",
                "numbers",
                says=(("0", "WITHDRAWN", "red"), ("1", "shown", "text")),
                width=110,
            ),
            Column(
                f"min by ({BY}) (laravel_queue_source_up)",
                "last poll",
                says=(("0", "FAILED", "orange"), ("1", "ok", "text")),
                width=90,
            ),
            Column(f"max by ({BY}) ({AGE})", "last success", unit="s", empty="none has succeeded yet"),
            Column(f"max by ({BY}) (laravel_queue_source_poll_interval_seconds)", "every", unit="s"),
            Column(f"max by ({BY}) (laravel_queue_source_configured_interval_seconds)", "configured", unit="s"),
            Column(f"max by ({BY}) (laravel_queue_source_poll_duration_seconds)", "took", unit="s"),
            worst="numbers",
            rising=True,
            width=14,
            height=12,
            alerts=("LaravelQueueSourceDown", "LaravelQueueCollectorDown"),
        ),
        lines(
            "Why polls failed",
            "Failed polls per minute, by source and reason.",
            "none.",
            Query(
                "60 * sum by (instance, source, reason)"
                " (rate(laravel_queue_source_errors_total[$__rate_interval])) > 0",
                "{{source}} {{reason}}",
                empty="none failed",
            ),
            defaults={"decimals": 1},
            width=10,
            height=12,
            alerts=("LaravelQueueSourceDown", "LaravelQueueCollectorDown"),
        ),
        lines(
            "Age of what is shown",
            "Time since the last answer of each source's slowest collector of jobs.",
            "a saw of the height of the pause between polls.",
            Query(
                f'max by (instance, source) ({AGE}{{collector=~"jobs|queues"}})',
                "{{source}} ({{instance}})",
            ),
            unit="s",
            alerts=("LaravelQueueSourceDown",),
        ),
        lines(
            "Fresh collectors",
            "Share of each source's collectors whose numbers may be believed.",
            "100 %.",
            Query("avg by (instance, source) (laravel_queue_source_fresh)", "{{source}} ({{instance}})"),
            unit="percentunit",
            defaults={"max": 1},
            alerts=("LaravelQueueSourceDown", "LaravelQueueCollectorDown"),
        ),
        lines(
            "Polls",
            "Polls per minute, failed ones included. A source that fails is asked less often.",
            "a straight line.",
            Query(
                "60 * sum by (instance, source) (rate(laravel_queue_source_polls_total[$__rate_interval]))",
                "{{source}} ({{instance}})",
            ),
            alerts=("LaravelQueuePollSlow",),
        ),
    ),
)

COST = Row(
    "What it costs",
    (
        lines(
            "Share of the source's time",
            "Time spent waiting for each source, as a share of all time.",
            "below 1 % of a database's.",
            Query(
                "sum by (instance, source) (rate(laravel_queue_source_busy_seconds_total[$__rate_interval]))",
                "{{source}} ({{instance}})",
            ),
            unit="percentunit",
            alerts=("LaravelQueuePollSlow",),
        ),
        lines(
            "Length of a poll",
            "How long the last poll of each source's slowest collector took.",
            "far below the timeout of 2 s.",
            Query(
                "max by (instance, source) (laravel_queue_source_poll_duration_seconds)", "{{source}} ({{instance}})"
            ),
            unit="s",
            alerts=("LaravelQueueSourceDown",),
        ),
        lines(
            "A scrape",
            "How long Prometheus waits for a page. Nothing is polled for it.",
            "below 20 ms.",
            Query("max by (instance) (scrape_duration_seconds)", "{{instance}}"),
            unit="s",
            alerts=("LaravelQueueExporterDown",),
        ),
        lines(
            "Processor",
            "Processor time of the exporter, as a share of one core.",
            "a few percent.",
            Query("max by (instance) (rate(process_cpu_seconds_total[$__rate_interval]))", "{{instance}}"),
            unit="percentunit",
        ),
        lines(
            "Memory",
            "Memory of the exporter.",
            "it stays where it is after the first minutes.",
            Query("max by (instance) (process_resident_memory_bytes)", "{{instance}}"),
            unit="bytes",
        ),
        lines(
            "Open files",
            "Files and sockets that the exporter has open.",
            "some dozens at most.",
            Query("max by (instance) (process_open_fds)", "{{instance}}"),
        ),
    ),
)

CLOCKS = Row(
    "Clocks, and what is watched",
    (
        lines(
            "Clock offsets",
            "Each reference clock minus the exporter's: NTP servers, databases, Redis.",
            "within a second. The alert takes off what the reading may be wrong by.",
            Query("max by (instance, reference) (laravel_queue_clock_offset_seconds)", "{{reference}}"),
            unit="s",
            limits=(Limit("LaravelQueueClockOffset", 1, either_way=True),),
            signed=True,
        ),
        lines(
            "Queues watched",
            "Queues of each connection, named and found.",
            "as many as your application has.",
            Query("max by (instance, connection) (laravel_queue_queues)", "{{connection}} ({{instance}})"),
        ),
        table(
            "Exporters",
            "Version and start of each exporter, and whether the last scrape brought anything.",
            "all have the same version.",
            ("instance", "version"),
            Column(
                "min by (instance) (up)",
                "scrape",
                says=(("0", "FAILED", "red"), ("1", "ok", "text")),
                width=80,
            ),
            Column(
                "max by (instance, version) (process_start_time_seconds"
                " * ignoring (version) group_left (version) laravel_queue_exporter_build_info) * 1000",
                "runs since",
                unit="dateTimeFromNow",
                width=130,
            ),
            worst="scrape",
            rising=True,
            columns_of=(label("instance", width=190),),
            alerts=("LaravelQueueExporterDown", "LaravelQueueExporterAbsent"),
        ),
    ),
)

BOARD = Board(
    "laravel-queue-exporter",
    "Laravel queues / Exporter",
    (*TARGETS, Variable("source", "laravel_queue_source_up")),
    MATCHED,
    (FIRST, SOURCES, COST, CLOCKS),
)
