"""Reads the state of Laravel's queues from outside and publishes it for Prometheus."""

__version__ = "0.1.0"
