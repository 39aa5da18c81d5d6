"""
The incidents that can be rehearsed: each is a few numbers changed in a world that is healthy.

Read when the command line is parsed, so nothing here imports a driver.
"""

from __future__ import annotations

from . import cases, horizon, traps
from .healthy import HEALTHY, Incident

__all__ = ["HEALTHY", "INCIDENTS", "Incident"]

INCIDENTS = cases.INCIDENTS | traps.INCIDENTS | horizon.INCIDENTS
