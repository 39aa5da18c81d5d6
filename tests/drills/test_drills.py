"""Each incident, brought about; `make drill` runs all of them, `make test` those that tell most."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from exporter.demo.postgres import Postgres

from .conducted import conduct
from .drills import DRILLS, TELLING

ROWS = "DRILL_ROWS"  # the folder in which the rows of the table are left


@pytest.mark.parametrize(
    "incident", [pytest.param(name, marks=[] if name in TELLING else pytest.mark.drill) for name in DRILLS]
)
def test_incident_is_told(postgres18: Postgres, incident: str) -> None:
    """The alert meant for it fires in time, nobody is paged for anything else, and its runbook ends it."""
    outcome = conduct(incident, DRILLS[incident], postgres18)
    if folder := os.environ.get(ROWS):
        (Path(folder) / f"{incident}.json").write_text(json.dumps(outcome.as_dict()), "utf-8")
