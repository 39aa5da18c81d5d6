"""The incidents that can be rehearsed."""

INCIDENTS: dict[str, str] = {}
