"""A PostgreSQL whose clock can be set while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from exporter.demo.postgres import Postgres

from ..conftest import debian_postgres


class Stepped:
    """The server, and the file in which libfaketime looks for its clock."""

    def __init__(self, server: Postgres, file: Path) -> None:
        self.server, self.file = server, file

    def set_clock(self, seconds: int) -> None:
        """So many seconds ahead of the real time, or behind."""
        self.file.write_text(f"{seconds:+d}\n")


@contextmanager
def stepped_postgres() -> Iterator[Stepped]:
    """Debian's PostgreSQL behind libfaketime, its clock right at first."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        os.chmod(folder, 0o755)
        file = Path(folder) / "offset"
        file.write_text("+0\n")
        for name, setting in {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }.items():
            patch.setenv(name, setting)
        with Postgres(debian_postgres()) as server:
            patch.undo()
            yield Stepped(server, file)
