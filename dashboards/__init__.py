"""
The dashboards, as code: `python -m dashboards` writes the JSON beside this file that people import.

`grafana` has the nouns, `promql` puts a board's variables into its queries, and each board is a file that reads like
its table of contents.
"""

from __future__ import annotations

from . import exporter, overview, postgresql, redis, sqs

BOARDS = (overview.BOARD, postgresql.BOARD, redis.BOARD, sqs.BOARD, exporter.BOARD)
