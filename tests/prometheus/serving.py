"""The exporter as users run it: a process with a settings file, asked over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from exporter.demo.daemon import free_port

from ..patience import until
from ..world import Series

TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def series(page: bytes) -> Series:
    """What is on a page in OpenMetrics: (name, sorted labels) → value."""
    families = text_string_to_metric_families(page.decode())  # type: ignore[no-untyped-call]  # has no types here
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


class Serving:
    """`queue-exporter serve`, watching one database. A context manager."""

    def __init__(self, folder: Path, dsn: str, **changes: Any) -> None:
        self.target = f"127.0.0.1:{free_port()}"
        self.log = folder / "exporter.log"
        settings = folder / "settings.yml"
        connection = {"driver": "database", "dsn": dsn} | changes
        settings.write_text(
            yaml.safe_dump(
                {"web": {"listen": self.target}, "connections": {"database": connection}}, allow_unicode=True
            )
        )
        with self.log.open("wb") as log:
            command = [sys.executable, "-m", "exporter", "serve", "--config", str(settings)]
            self.process = subprocess.Popen(command, stderr=log, env=os.environ | {"PYTHONWARNINGS": "error"})

    def __enter__(self) -> Serving:
        until(self.answers)
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        finally:
            self.process.kill()
            self.process.wait()

    def answers(self) -> bool:
        """Whether its pages can be read yet."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.get("/-/healthy") == b"ok\n"
        except OSError:
            return False

    def get(self, path: str = "/metrics", accept: str = TEXT) -> bytes:
        """One of its pages."""
        request = urllib.request.Request(f"http://{self.target}{path}", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=5) as answer:
            body: bytes = answer.read()
        return body

    def series(self) -> Series:
        """What is on the page now."""
        return series(self.get(accept=OPENMETRICS))

    def value(self, name: str, **labels: str) -> float | None:
        """The value of one series on the page now; None if absent."""
        return self.series().get((f"laravel_queue_{name}", tuple(sorted(labels.items()))))
