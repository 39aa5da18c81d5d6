"""Being let in, and not: passwords in every form, refusals in every way, and no secret in anything that is said."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from exporter import app, config
from exporter.demo.daemon import free_port
from exporter.demo.postgres import Postgres
from exporter.errors import ConfigError, Reason

from ..conftest import debian_postgres
from ..world import HandClock, create_jobs, poll, state, value, watched
from .onlooker import Db, terminate

PASSWORD = "a#b@c:d/e%f=g{h}&i j'k\"l\\m é"
WRONG = "o#p@q:r/s%t=u{v}&w x'y\"z\\z è"
LIMITS = {"max_connections": "8", "superuser_reserved_connections": "3", "listen_addresses": "127.0.0.1,::1"}
HBA = "host all postgres 127.0.0.1/32 trust\nhost all watcher 127.0.0.1/32 {0}\nhost all watcher ::1/128 {0}\n"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Postgres]:
    """A server with few connections that asks everybody but its owner for a password."""
    with Postgres(debian_postgres(), LIMITS) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as owner:
            create_jobs(owner)
            owner.execute(sql.SQL("CREATE ROLE watcher LOGIN PASSWORD {}").format(PASSWORD))
            owner.execute("GRANT SELECT ON jobs TO watcher")
            admit(server, owner, "scram-sha-256")
        yield server


@pytest.fixture
def owner(guarded: Postgres) -> Iterator[Db]:
    """Its owner's connection."""
    with psycopg.connect(guarded.dsn(), autocommit=True) as connection:
        yield connection


def admit(server: Postgres, owner: Db, how: str) -> None:
    """Let the role `watcher` in this way from now on."""
    (server.data / "pg_hba.conf").write_text(HBA.format(how))
    owner.execute("SELECT pg_reload_conf()")


def keywords(port: int, password: str) -> str:
    """The keyword form of the DSN."""
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"host=127.0.0.1 port={port} dbname=postgres user=watcher password='{escaped}'"


def in_every_form(folder: Path, port: int, password: str) -> tuple[Path, dict[str, str]]:
    """A settings file with a connection for every form in which a password may be given, and its environment."""
    plain = f"postgresql://watcher@127.0.0.1:{port}/postgres"
    secret = folder / "secret"
    secret.write_text(f"{password}\n", "utf-8")
    connections = {
        "keywords": {"dsn": keywords(port, password)},
        "url": {"dsn": plain.replace("@", f":{quote(password, safe='')}@")},
        "parameter": {"dsn": f"{plain}?password={quote(password, safe='')}"},
        "file": {"dsn": plain, "password_file": str(secret)},
        "setting": {"dsn": plain, "password": "${SECRET}"},
        "environment": {"dsn": "${DSN}"},
        "PGPASSWORD": {"dsn": plain},
    }
    driver = {"driver": "database", "timeout": "1s"}
    settings = {
        "web": {"listen": "127.0.0.1:0"},
        "connections": {form: driver | connection for form, connection in connections.items()},
    }
    file = folder / "settings.yml"
    file.write_text(json.dumps(settings), "utf-8")
    return file, {"SECRET": password, "DSN": keywords(port, password), "PGPASSWORD": password}


def test_ipv6_literal(guarded: Postgres) -> None:
    """A host may be given as an IPv6 address, in brackets in a URL and bare in the other form."""
    for dsn in (
        f"postgresql://watcher@[::1]:{guarded.port}/postgres",
        f"host=::1 port={guarded.port} user=watcher dbname=postgres",
    ):
        with watched(dsn, password=PASSWORD) as watching:
            poll(watching, "jobs")
            assert state(watching, "jobs").error == ""


def test_case_17_passwords(tmp_path: Path, guarded: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 17. A password of special characters works from a file, the environment, a DSN and an encoded URL."""
    file, env = in_every_form(tmp_path, guarded.port, PASSWORD)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    watching = app.build(config.load(file, env))
    watching.poll_once()
    errors = {key.source: state.error for key, state in watching.board.read().items() if key.collector == "jobs"}
    assert errors == dict.fromkeys(json.loads(file.read_text())["connections"], "")


@pytest.mark.parametrize("form", ["postgresql://watcher:{}@127.0.0.1/postgres", "host=127.0.0.1 password={}"])
def test_case_17_a_raw_password_is_refused(form: str) -> None:
    """Case 17. Unencoded in a URL, or unquoted, it is refused with what to do instead, and not repeated."""
    with pytest.raises(ConfigError) as refusal:
        config.parse({"connections": {"database": {"driver": "database", "dsn": form.format(PASSWORD)}}})
    assert "percent-encode" in str(refusal.value)
    assert not any(part in str(refusal.value) for part in ("a#b", "f=g", "j'k", "l\\m"))


@pytest.mark.parametrize("command", ["once", "status"])
@pytest.mark.parametrize("fault", ["wrong password", "refused"])
def test_case_19_no_secret_is_told(tmp_path: Path, guarded: Postgres, command: str, fault: str) -> None:
    """Case 19. Whatever form the password came in, a failure at debug level prints no spelling of it."""
    port = guarded.port if fault == "wrong password" else free_port()
    file, env = in_every_form(tmp_path, port, WRONG)
    asked = [sys.executable, "-m", "exporter", command, "--config", str(file), "--log-level", "debug"]
    done = subprocess.run(asked, env=env, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    assert told.count("password authentication failed" if fault == "wrong password" else "Connection refused") >= 7
    assert "Traceback" not in told
    for part in ("o#p", "o%23p", "s%t", "s%25t", "w x", "w%20x", "z è", "z%20%C3%A8"):
        assert part not in told


def stopped(server: Postgres, owner: Db) -> None:
    """The server is shut down."""
    server.stop()


def rejected(server: Postgres, owner: Db) -> None:
    """Its pg_hba.conf turns us away."""
    admit(server, owner, "reject")
    terminate(owner)


def not_permitted(server: Postgres, owner: Db) -> None:
    """Our role may not log in any more."""
    owner.execute("ALTER ROLE watcher NOLOGIN")
    terminate(owner)


@pytest.mark.parametrize(("lock_out", "reason"), [(stopped, "refused"), (rejected, "auth"), (not_permitted, "auth")])
def test_case_5_locked_out(guarded: Postgres, lock_out: Callable[[Postgres, Db], None], reason: str) -> None:
    """Case 5. Gone, rejected or not permitted to log in: `up` is 0 at the next poll, values go with the one after."""
    with (
        psycopg.connect(guarded.dsn(), autocommit=True) as owner,
        watched(keywords(guarded.port, PASSWORD), HandClock().clock, queues={"default": None}) as watching,
    ):
        poll(watching, "jobs")
        assert value(watching, "jobs", state="ready") == 0
        lock_out(guarded, owner)
        poll(watching, "jobs")
        assert value(watching, "source_up", collector="jobs") == 0
        assert state(watching, "jobs").reason == reason
        poll(watching, "jobs")
        assert value(watching, "jobs", state="ready") is None
        if guarded.process is None:
            guarded.start()
        with psycopg.connect(guarded.dsn(), autocommit=True) as again:
            again.execute("ALTER ROLE watcher LOGIN")
            admit(guarded, again, "scram-sha-256")
        poll(watching, "jobs")
        assert value(watching, "source_up", collector="jobs") == 1


def test_case_4_no_connection_left(guarded: Postgres) -> None:
    """Case 4. Without a free connection each poll is one login in vain, `too_many_connections`; it heals by itself."""
    dsn = keywords(guarded.port, PASSWORD)
    before = guarded.log.read_text().count("remaining connection slots")
    with watched(dsn.replace("127.0.0.1", "127.0.0.1,127.0.0.1"), queues={"default": None}) as watching:
        with ExitStack() as everybody:
            for _ in range(5):
                everybody.enter_context(psycopg.connect(dsn))
            for _ in range(10):
                poll(watching, "jobs")
            assert state(watching, "jobs").errors == {"too_many_connections": 10}
            assert value(watching, "source_up", collector="jobs") == 0
            assert guarded.log.read_text().count("remaining connection slots") - before == 10
        poll(watching, "jobs")
        assert value(watching, "source_up", collector="jobs") == 1
        assert value(watching, "jobs", state="ready") == 0


REFUSALS: tuple[tuple[str, str, Reason], ...] = (
    ("ALTER ROLE watcher CONNECTION LIMIT 0", "ALTER ROLE watcher CONNECTION LIMIT -1", "too_many_connections"),
    ("REVOKE CONNECT ON DATABASE app FROM public", "GRANT CONNECT ON DATABASE app TO public", "permission"),
    ("ALTER DATABASE app ALLOW_CONNECTIONS false", "ALTER DATABASE app ALLOW_CONNECTIONS true", "auth"),
    ("ALTER DATABASE app RENAME TO gone", "ALTER DATABASE gone RENAME TO app", "not_found"),
    ("ALTER ROLE watcher RENAME TO gone", "ALTER ROLE gone RENAME TO watcher", "auth"),
    ("ALTER ROLE watcher VALID UNTIL '2020-01-01'", "ALTER ROLE watcher VALID UNTIL 'infinity'", "auth"),
)


def refused(port: int, user: str, database: str) -> tuple[str | None, str]:
    """The reason and the words with which this login fails at the first poll."""
    dsn = keywords(port, PASSWORD).replace("dbname=postgres", f"dbname='{database}'").replace("=watcher", f"={user}")
    with watched(dsn) as watching:
        poll(watching, "jobs")
        return state(watching, "jobs").reason, state(watching, "jobs").error


def test_every_refusal_has_its_reason(guarded: Postgres, owner: Db) -> None:
    """Each way in which a server may refuse a login has its reason, and is told in one line."""
    owner.execute("CREATE DATABASE app")
    for refuse, undo, expected in REFUSALS:
        owner.execute(refuse.encode())
        reason, told = refused(guarded.port, "watcher", "app")
        owner.execute(undo.encode())
        assert (refuse, reason) == (refuse, expected)
        assert told.isprintable()
    owner.execute("DROP DATABASE app")


def test_names_do_not_make_the_reason(guarded: Postgres) -> None:
    """Words in the names of roles and databases are not taken for the server's."""
    assert refused(guarded.port, "certificate", "postgres")[0] == "auth"
    assert refused(guarded.port, "watcher", "starting up")[0] == "not_found"
    assert refused(guarded.port, "postgres", "SSL timeout")[0] == "not_found"


def test_a_server_in_another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that speaks German: a failed login is `connect`, in its words; a failed question has its reason."""
    monkeypatch.setenv("LANGUAGE", "de")
    with Postgres(debian_postgres(), {"lc_messages": "C.UTF-8"}) as server:
        reason, told = refused(server.port, "nobody", "postgres")
        assert reason == "connect"
        assert told.endswith("FATAL: Rolle »nobody« existiert nicht")
        with psycopg.connect(server.dsn(), autocommit=True) as owner:
            owner.execute("CREATE TABLE jobs (word text)")
        with watched(server.dsn()) as watching:
            poll(watching, "jobs")
            assert state(watching, "jobs").reason == "malformed"
            assert state(watching, "jobs").error == "Spalte »queue« existiert nicht"
