"""
Pictures of the dashboards: Grafana's own components over a Prometheus that holds a recorded incident.

`python -m tools.picture BOARD RECORDING PICTURE`, after `npm ci && npm run build` in tools/render. Exit status 1: a
query failed or found nothing without a reason, or a panel names something that Grafana does not know.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from dashboards import BOARDS
from dashboards.grafana import LETTERS
from exporter.demo.daemon import free_port

from .record import ROOT

RENDER = Path(__file__).parent / "render"
STARTING = 60.0


def may_be_empty(uid: str) -> list[str]:
    """The queries of a board that name a reason why they may find nothing."""
    (board,) = [board for board in BOARDS if board.uid == uid]
    return [
        f"{panel.title}/{letter}"
        for panel in board.panels
        for letter, query in zip(LETTERS, panel.queries, strict=False)
        if query.empty
    ]


def ready(address: str) -> bool:
    """Whether the server there has read its storage."""
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def picture(uid: str, recording: Path, to: Path) -> int:
    """Draw a board as it was at the end of a recording. Returns the exit status."""
    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        config, empty = Path(folder) / "prometheus.yml", Path(folder) / "empty.json"
        config.write_text("global: {}\n")
        empty.write_text(json.dumps(may_be_empty(uid)))
        program = shutil.which("prometheus") or "prometheus"
        options = [
            f"--config.file={config}",
            f"--storage.tsdb.path={recording}/data",
            f"--web.listen-address={address}",
        ]
        server = subprocess.Popen([program, *options, "--log.level=error"])
        try:
            until = time.monotonic() + STARTING
            while not ready(address):
                if time.monotonic() > until:
                    raise TimeoutError(f"Prometheus has not read {recording}/data within {STARTING:.0f} s")
                time.sleep(0.2)
            times = json.loads((recording / "times.json").read_text())
            board = ROOT / "dashboards" / f"{uid}.json"
            command = [
                "node",
                "shoot.mjs",
                str(board),
                str(to.resolve()),
                f"http://{address}",
                f"{times['ended']:.0f}",
                f"{times['ended'] - times['began']:.0f}s",
                str(empty),
            ]
            return subprocess.run(command, cwd=RENDER, check=False).returncode
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(picture(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
