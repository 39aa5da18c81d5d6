"""A real Prometheus, and the questions that tests have for it."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from exporter.demo import prometheus

SCRAPE_INTERVAL = 1  # second; also the scrape timeout
STARTING = 503  # HTTP status while it reads its storage
TARGET = ("job", "instance")  # the labels that Prometheus adds


class Found(NamedTuple):
    """A series, without the labels that Prometheus adds, and its samples: (Unix time, value)."""

    labels: Mapping[str, str]
    samples: list[tuple[float, float]]

    @property
    def name(self) -> str:
        return self.labels["__name__"]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Its labels but the name, as `tests.world.series` has them."""
        return tuple(sorted((label, value) for label, value in self.labels.items() if label != "__name__"))

    @property
    def value(self) -> float:
        """The newest value."""
        return self.samples[-1][1]


class Prometheus(prometheus.Prometheus):
    """Debian's Prometheus, scraping one target each second if not told otherwise."""

    def __init__(
        self,
        target: str,
        job: str = prometheus.JOB,
        interval: float = SCRAPE_INTERVAL,
        more: str = "",
    ) -> None:
        program = prometheus.found()
        if program is None:
            pytest.fail("Debian's prometheus is missing: `make services` installs it")
        super().__init__(program, target, interval, job, more)

    def __enter__(self) -> Prometheus:
        return self

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its HTTP API; None while it is not up yet."""
        url = f"http://{self.listen}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code != STARTING:
                raise AssertionError(error.read()) from error
        except OSError:
            pass
        return None

    def query(self, promql: str) -> list[Found]:
        """The series that answer a query now, each with one sample or, for a range, with all of them."""
        answer = self.ask("query", query=promql)
        return [
            Found(
                {label: value for label, value in series["metric"].items() if label not in TARGET},
                [(float(at), float(value)) for at, value in series.get("values") or [series["value"]]],
            )
            for series in (answer["result"] if answer else ())
        ]

    def value(self, promql: str) -> float | None:
        """The value of the one series that answers; None if there is none."""
        found = self.query(promql)
        assert len(found) <= 1, found
        return found[0].value if found else None
