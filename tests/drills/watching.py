"""What watches a stage: a Prometheus with the shipped rules and an Alertmanager with the shipped routes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..bundle import alertmanager
from ..bundle.alertmanager import Alertmanager
from ..patience import until
from ..prometheus.prometheus import Prometheus
from ..runbooks.stage import STARTING, Stage
from . import shortened
from .receiver import PREFIX, Receiver, receiving

LOOK = 0.5  # seconds between two looks
MORE = """\
rule_files: [{rules}]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{alertmanager}"]}}]}}]}}
"""
FIRED = 'max without (alertstate) (max_over_time(ALERTS{alertstate="firing"}[1h]))'


@dataclass(slots=True)
class Watch:
    """What is known of the alerts of one stage."""

    prometheus: Prometheus
    manager: Alertmanager
    receiver: Receiver
    began: float = 0.0  # when the stage was scraped first: monotonic
    hidden: set[str] = field(default_factory=set)  # alerts that Alertmanager has held back behind others

    @property
    def poll(self) -> float:
        """Seconds between two polls of the jobs, as the exporter was told."""
        asked = 'max(laravel_queue_source_configured_interval_seconds{collector=~"jobs|queues"})'
        return self.prometheus.value(asked) or 0.0

    @property
    def state(self) -> str:
        """The alerts now, fired or pending."""
        return ", ".join(
            f"{found.labels['alertname']} {found.labels['alertstate']}" for found in self.prometheus.query("ALERTS")
        )

    def firing(self, name: str) -> bool:
        """Whether this alert fires now. Notes what is held back."""
        suppressed = self.manager.suppressed()
        self.hidden |= {dict(labels)["alertname"].removeprefix(PREFIX) for labels, held in suppressed.items() if held}
        return bool(self.prometheus.query(f'ALERTS{{alertname="{PREFIX}{name}",alertstate="firing"}}'))

    def fired(self) -> set[str]:
        """All alerts that have fired until now."""
        return {found.labels["alertname"].removeprefix(PREFIX) for found in self.prometheus.query(FIRED)}


@contextmanager
def watched(stage: Stage) -> Iterator[Watch]:
    """The stage is scraped; what is found is told to a receiver."""
    target = stage.variables["EXPORTER"].removeprefix("http://")
    with tempfile.TemporaryDirectory(prefix="queue-exporter-drill-") as name, receiving() as receiver:
        folder = Path(name)
        rules, routes = shortened.rules(folder), shortened.routes(folder, receiver.url)
        with alertmanager.started(folder, routes) as manager:
            more = MORE.format(rules=rules, alertmanager=manager.listen)
            with Prometheus(target, interval=shortened.INTERVAL, more=more) as prometheus:
                until(lambda: prometheus.value("up") == 1, STARTING, LOOK)
                yield Watch(prometheus, manager, receiver, time.monotonic())
