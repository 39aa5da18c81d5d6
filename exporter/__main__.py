"""`python -m exporter` is `queue-exporter`."""

from .cli import main

raise SystemExit(main())
