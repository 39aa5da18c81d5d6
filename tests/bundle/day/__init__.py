"""A healthy day of each driver, simulated, and watched by the exporter's own poller, board and exposition."""
