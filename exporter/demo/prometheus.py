"""A Prometheus of our own that scrapes the exporter, if there is one on the PATH."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from .daemon import free_port

STOPPING = 5.0  # seconds
JOB = "laravel-queue-exporter"  # as in all rules and examples
CONFIG = """\
global: {{scrape_interval: {milliseconds:.0f}ms}}
scrape_configs:
  - job_name: {job}
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """
    One server, in a temporary folder. A context manager: leaves no process and no file behind.

    `more` is put under its configuration.
    """

    def __init__(self, program: str, target: str, interval: float, job: str = JOB, more: str = "") -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="queue-exporter-prometheus-", ignore_cleanup_errors=True)
        self.listen = f"127.0.0.1:{free_port()}"
        folder = Path(self.folder.name)
        config = folder / "prometheus.yml"
        config.write_text(CONFIG.format(target=target, milliseconds=1000 * interval, job=job) + more)
        command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, f"--web.listen-address={self.listen}"],
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for us, and we end it
            )

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop it, and remove its folder."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def found() -> str | None:
    """The program, if there is one."""
    return shutil.which("prometheus")
