"""The rules and alerts, held to what the exporter emits and proved with promtool and a running Alertmanager."""
