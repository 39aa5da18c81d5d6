"""
How fast a scrape is answered: `python -m benchmarks.scrape [SCRAPES]`.

The exporter runs as a process of its own and polls each second, much more often than it would.
Each scrape follows the one before at once; it begins with connecting, since the exporter ends a
connection with its page, and ends when the page is read. `cpu` is what the whole exporter took
in the meantime, its polls included, per scrape.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import psycopg

from exporter.demo.postgres import Postgres
from tests.conftest import debian_postgres
from tests.patience import until
from tests.prometheus.latency import SETTINGS, Scrapes, in_trouble, scrape
from tests.prometheus.serving import Serving
from tests.prometheus.troubles import ROLE, TROUBLES, create_role, healthy
from tests.world import create_jobs

SCRAPES = 2000
CPU = ("process_cpu_seconds_total", ())


def main() -> None:
    """Print one line for each trouble that the database can be in."""
    scrapes = int(sys.argv[1]) if len(sys.argv) > 1 else SCRAPES
    print(f"{'database':<10}{'series':>7}{'p50':>8}{'p90':>8}{'p99':>8}{'max':>8}{'cpu':>8}   (ms)")
    with Postgres(debian_postgres()) as server, tempfile.TemporaryDirectory() as folder:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            create_jobs(connection)
            create_role(connection)
        for trouble in (healthy, *TROUBLES):
            with Serving(Path(folder), server.dsn(user=ROLE), **SETTINGS) as exporter:
                until(lambda: exporter.value("source_up", source="database", collector="sizes"))
                with trouble(server):
                    if trouble is not healthy:
                        until(lambda: in_trouble(exporter.series()), within=60)
                    show(trouble.__name__, scrape(exporter.target, scrapes))


def show(name: str, scrapes: Scrapes) -> None:
    """One line of the table."""
    times = [1000 * scrapes.quantile(share) for share in (0.5, 0.9, 0.99, 1)]
    cpu = 1000 * (scrapes.last[CPU] - scrapes.first[CPU]) / len(scrapes.seconds)
    print(f"{name:<10}{len(scrapes.last):>7}" + "".join(f"{time:>8.2f}" for time in (*times, cpu)), flush=True)


if __name__ == "__main__":
    main()
