"""Incidents of the demo's world on SQS and Fargate."""

from __future__ import annotations

import pytest

from exporter.demo.postgres import Postgres

from .drills import AWS, drill, in_


@pytest.mark.parametrize("incident", in_(AWS))
def test_incident_is_told(postgres: Postgres, incident: str) -> None:
    """The alert meant for it fires in time, nobody is paged for anything else, and its runbook ends it."""
    drill(incident, postgres)
