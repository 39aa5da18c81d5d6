"""Incidents of the demo's world on PostgreSQL."""

from __future__ import annotations

import pytest

from exporter.demo.postgres import Postgres

from .drills import POSTGRES, drill, in_


@pytest.mark.parametrize("incident", in_(POSTGRES))
def test_incident_is_told(postgres: Postgres, incident: str) -> None:
    """The alert meant for it fires in time, nobody is paged for anything else, and its runbook ends it."""
    drill(incident, postgres)
