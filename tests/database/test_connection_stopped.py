"""What the server is left with when our process stands still, is killed, or runs for long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from exporter.demo.daemon import free_port

from ..patience import until
from ..world import HandClock, add_jobs, poll, state, watched
from .onlooker import Db, Seen, ours
from .proxies import Absent, Deaf, Proxy


@contextmanager
def serving(folder: Path, **connection: str) -> Iterator[subprocess.Popen[bytes]]:
    """The exporter as a process of its own, watching one database."""
    settings = {"web": {"listen": "127.0.0.1:0"}, "connections": {"database": {"driver": "database", **connection}}}
    file = folder / "settings.yml"
    file.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "exporter", "--config", str(file), "--log-level", "error"]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("sleep", [0.6, 60.0], ids=["answered", "timed out"])
def test_a_stopped_process_leaves_no_transaction(tmp_path: Path, dsn18: str, db18: Db, sleep: float) -> None:
    """Stopped in the middle of a question we leave an idle session, whether the question ends well or not."""
    add_jobs(db18, ("default", None, 0))
    db18.execute(f"CREATE VIEW slow AS SELECT * FROM jobs WHERE pg_sleep({sleep}) IS NOT NULL".encode())
    with serving(tmp_path, dsn=dsn18, table="slow", timeout="1s") as process:
        until(lambda: [session.waits_for for session in ours(db18)] == ["PgSleep"])
        process.send_signal(signal.SIGSTOP)
        seen: list[Seen] = ours(db18)
        while seen[-1].state == "active":  # ends by the question's own timeout
            seen += ours(db18)
        assert (seen[-1].state, seen[-1].in_transaction) == ("idle", False)
        process.kill()
        until(lambda: not ours(db18))


def test_an_interrupt_is_heeded_at_once(db18: Db) -> None:
    """Ctrl-C ends a wait for a deaf server at once; the connection is given up, and the next poll has another."""
    who = f"dbname={db18.info.dbname} user={db18.info.user}"
    with Proxy(("127.0.0.1", db18.info.port)) as proxy, watched(proxy.dsn(who), timeout="3s") as watching:
        poll(watching, "jobs")
        proxy.swallow()
        Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            poll(watching, "jobs")
        assert 0.1 < time.monotonic() - began < 1
        proxy.heal()
        poll(watching, "jobs")
        assert state(watching, "jobs").up
        until(lambda: len(ours(db18)) == 1)


def descriptors_and_threads() -> tuple[int, int]:
    """How many of each our own process has."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def resident_bytes() -> int:
    """Our own process's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_polls_leave_everything_where_it_was(dsn18: str, db18: Db) -> None:
    """After 1,000 polls there are as many sessions, descriptors and threads as after a few, and as much memory."""
    clock = HandClock()
    with watched(dsn18, clock.clock) as watching:
        polls = len(watching.pollers[0].turns)
        for _ in range(10):
            poll(watching)
        before, memory = descriptors_and_threads(), resident_bytes()
        gone = range(0, 1000 // polls, 20)  # now and then a poll fails
        for number in range(1000 // polls):
            clock.pass_(15)
            db18.execute("ALTER TABLE jobs RENAME TO gone" if number in gone else "SELECT")
            poll(watching)
            db18.execute("ALTER TABLE IF EXISTS gone RENAME TO jobs")
        assert descriptors_and_threads() == before
        assert resident_bytes() - memory < 2**20
        assert len(ours(db18)) == 1
        assert state(watching, "jobs").errors == {"undefined_table": len(gone)}


def test_faults_leave_no_descriptor_and_no_thread(db18: Db) -> None:
    """Connections that cannot be made, or break, leave nothing behind in our process."""
    who = f"dbname={db18.info.dbname} user={db18.info.user}"
    with Deaf() as deaf, Absent() as absent, Proxy(("127.0.0.1", db18.info.port)) as proxy:
        proxy.answers = 500
        dsns = (
            deaf.dsn(who),
            deaf.dsn(f"{who} sslmode=disable"),
            absent.dsn(who),
            proxy.dsn(who),
            f"host=127.0.0.1 port={free_port()} {who}",
        )
        threads = threading.active_count()
        for dsn in dsns:
            with watched(dsn, timeout="100ms") as watching:
                poll(watching, "jobs")
                proxy.cut()
                until(lambda: threading.active_count() == threads)  # the proxy's end a little later
                before = descriptors_and_threads()
                for _ in range(5):
                    poll(watching, "jobs")
                    proxy.cut()
                until(lambda: threading.active_count() == threads)
                assert descriptors_and_threads() == before
