"""A running Alertmanager with the shipped configuration, and alerts posted to it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from exporter.demo.daemon import free_port

from ..patience import until
from .rules import ALERTMANAGER, ALERTS

Labels = Mapping[str, str]


def program(name: str) -> str:
    """Where a program of Debian's package is."""
    found = shutil.which(name)
    if not found:
        pytest.fail(f"{name} is missing: `make services` installs it with Debian's prometheus-alertmanager")
    return found


def labels(name: str, **others: str) -> dict[str, str]:
    """The labels of an alert as Prometheus sends them."""
    alert = ALERTS[name]
    return {"alertname": alert.full_name, "job": "laravel-queue-exporter", **alert.labels, **others}


class Alertmanager:
    """Its API."""

    def __init__(self, port: int) -> None:
        self.listen = f"127.0.0.1:{port}"
        self.url = f"http://{self.listen}/api/v2"

    def ready(self) -> bool:
        try:
            self._get("/status")
        except (URLError, ConnectionError):
            return False
        return True

    def post(self, alerts: Sequence[Labels]) -> None:
        """Let these alerts fire."""
        body = json.dumps([{"labels": each} for each in alerts]).encode()
        with urlopen(Request(f"{self.url}/alerts", body, {"Content-Type": "application/json"}), timeout=5):
            pass

    def suppressed(self) -> dict[frozenset[tuple[str, str]], bool]:
        """Of each alert, by its labels, whether another one keeps it from being told."""
        return {frozenset(a["labels"].items()): a["status"]["state"] == "suppressed" for a in self._get("/alerts")}

    def groups(self) -> list[tuple[str, frozenset[str]]]:
        """What would arrive together: the receiver, and the names of the alerts."""
        return [
            (group["receiver"]["name"], frozenset(alert["labels"]["alertname"] for alert in group["alerts"]))
            for group in self._get("/alerts/groups")
        ]

    def _get(self, path: str) -> Any:
        with urlopen(f"{self.url}{path}", timeout=5) as answer:
            return json.load(answer)


@contextmanager
def started(folder: Path, config: Path = ALERTMANAGER) -> Iterator[Alertmanager]:
    """One that runs on a free port, alone."""
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program("prometheus-alertmanager"),
                f"--config.file={config}",
                f"--storage.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        running = Alertmanager(port)
        until(running.ready)
        yield running
    finally:
        process.terminate()
        process.wait(10)
