"""`queue-exporter demo` as a process, and what it leaves behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

import exporter
from exporter.demo.postgres import UNPRIVILEGED
from exporter.demo.run import LISTEN

from ..patience import until

STARTING = 60.0  # seconds; a slow machine may need them, the demo needs a few
STOPPING = 15.0
NOT_NEEDED = (
    *("include", "*.a", "config-*", "test", "idlelib", "ensurepip", "lib2to3", "tkinter", "distutils"),
    *("pip", "setuptools", "mypy*", "*mypyc*", "ruff*", "*pytest*", "hypothesis*", "pygments", "rich", "hatchling"),
)  # much of an installation, and none of it is run here


class Demo:
    """One run of the command, with temporary files in a folder that can be looked through afterwards."""

    def __init__(self, *arguments: str, folder: Path, program: list[str], **changes: object) -> None:
        self.folder, self.lines = folder, list[str]()
        self.process = subprocess.Popen(
            [*program, "demo", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that a Ctrl-C can go to its whole group, as in a terminal
            **changes,  # type: ignore[call-overload]
        )

    def read(self, words: str = "") -> str:
        """The next line with these words in it."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if words in line:
                return self.lines[-1]
        raise AssertionError(f"no {words!r} in {self.lines}")

    def interrupt(self) -> None:
        """Ctrl-C in a terminal: the whole group gets it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for the end. Returns the exit status."""
        rest, _ = self.process.communicate(timeout=STOPPING)
        self.lines += rest.splitlines()
        return int(self.process.returncode)

    def left(self) -> list[str]:
        """Files, and processes whose command line names the folder."""
        found = [str(path) for path in self.folder.iterdir()]
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = process.read_bytes()
            except OSError:  # it has just ended
                continue
            if str(self.folder).encode() in words:
                found.append(words.replace(b"\0", b" ").decode())
        return found


@contextmanager
def started(*arguments: str, program: list[str], environment: Mapping[str, str], **changes: object) -> Iterator[Demo]:
    """Run the command; whatever the test does, nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix=f"demo-{'long-' * 20}"))  # too long for the path of a socket
    folder.chmod(0o777)
    with address_of_our_own():
        demo = Demo(*arguments, folder=folder, program=program, env={**environment, "TMPDIR": str(folder)}, **changes)
        try:
            yield demo
        finally:
            if demo.process.poll() is None:
                demo.process.terminate()
                demo.end()
            shutil.rmtree(folder)


@contextmanager
def address_of_our_own() -> Iterator[None]:
    """The demo's address, which tests that run in other processes leave alone meanwhile."""
    with (Path(tempfile.gettempdir()) / "queue-exporter-demo-address").open("w") as turn:
        flock(turn, LOCK_EX)  # it ends with the file
        until(address_is_free, STARTING)
        yield


def address_is_free() -> bool:
    """Whether the demo could listen."""
    host, port = LISTEN.split(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return False
    return True


def get(url: str) -> str:
    """The page there."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def owned_by_nobody(folder: Path) -> tuple[list[str], dict[str, str]]:
    """
    The program and environment with which an unprivileged user runs the exporter.

    As root, the interpreter and the packages may lie where that user cannot look, so they are copied.
    """
    library = Path(os.__file__).parent
    version = library.name
    packages = [Path(path) for path in sys.path if path.endswith("site-packages")]
    base = Path(sys.base_prefix)
    (folder / "bin").mkdir()
    shutil.copy(base / "bin" / version, folder / "bin")
    ignored = shutil.ignore_patterns(*NOT_NEEDED, "site-packages", "dist-packages")
    shutil.copytree(library, folder / "lib" / version, ignore=ignored)
    for shared in (base / "lib").glob("libpython*.so.*"):
        shutil.copy(shared, folder / "lib")
    for path in packages:
        shutil.copytree(path, folder / "packages", ignore=shutil.ignore_patterns(*NOT_NEEDED), dirs_exist_ok=True)
    shutil.copytree(Path(exporter.__file__).parent, folder / "packages" / "exporter", dirs_exist_ok=True)
    environment = {
        "PYTHONHOME": str(folder),
        "PYTHONPATH": str(folder / "packages"),
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "HOME": "/nonexistent",
        "USER": UNPRIVILEGED,
        "PATH": "/nonexistent",
    }
    return [str(folder / "bin" / version), "-m", "exporter"], environment
