"""Drill everything, print the table, and write it into the README if all drills went well."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ..readme.tables import README, put
from .drills import ROWS
from .table import drawn, rows

AT_ONCE = 3  # drills: they wait most of the time

with tempfile.TemporaryDirectory(prefix="queue-exporter-drills-") as folder:
    all_of_them = ["-m", "drill or not drill", "--numprocesses", str(AT_ONCE), "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", *all_of_them, "-k", "test_incident_is_told", str(Path(__file__).parent)]
    status = subprocess.run(command, env=os.environ | {ROWS: folder}, check=False).returncode
    text = drawn(rows(Path(folder)))
print(text)
if not status:
    README.write_text(put(README.read_text("utf-8"), "drills", text), "utf-8")
sys.exit(status)
