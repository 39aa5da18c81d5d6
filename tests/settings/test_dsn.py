"""DSNs: a URL means what it says or is refused, a raw password is never cut in silence, and nothing is printed."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter import config
from exporter.errors import ConfigError

from ..world import database_of

NASTY = "a#b@c:d/e%f=g{h}&i j'k\"l\\m é"  # of case 17
FORM = "expected postgresql://user@host:5432/database or host=… dbname=… user=…"


def parameters(dsn: str) -> dict[str, Any]:
    """What libpq is given for this DSN. Raises `ConfigError`."""
    settings = config.parse({"connections": {"database": {"driver": "database", "dsn": dsn}}})
    return database_of(settings).parameters()


def refused(dsn: str) -> str:
    """What is said of a DSN that is refused."""
    with pytest.raises(ConfigError) as refusal:
        parameters(dsn)
    (problem,) = refusal.value.problems
    assert problem.startswith("connections.database.dsn: expected ")
    return problem.removeprefix("connections.database.dsn: ")


@pytest.mark.parametrize("character", '#@:/%{?"\\[]^`<>| é\t\n')
def test_case_17_a_raw_special_character_is_refused(character: str) -> None:
    """Case 17. Each character that a password in a URL must not hold raw is refused, with what to do, and not shown."""
    problem = refused(f"postgresql://watcher:hun{character}ter@db.internal/app")
    assert problem.startswith(FORM)
    assert "percent-encode what is special in the password" in problem
    assert "password_file" in problem
    assert "hun" not in problem


@pytest.mark.parametrize("character", "=&'!$()*+,;~-._")
def test_case_17_what_needs_no_encoding_is_taken_as_it_is(character: str) -> None:
    """Case 17. RFC 3986 allows these in a password, and libpq reads them so."""
    assert parameters(f"postgresql://watcher:hun{character}ter@db/app")["password"] == f"hun{character}ter"


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20))
def test_case_17_an_encoded_password_is_taken(password: str) -> None:
    """Case 17. Percent-encoded, any password arrives as it was."""
    found = parameters(f"postgresql://watcher:{quote(password, safe='')}@db.internal:5432/app")
    assert found == {"user": "watcher", "password": password, "host": "db.internal", "port": "5432", "dbname": "app"}


@settings(deadline=None)
@given(st.text(st.sampled_from("#@:/%={&?'\" \\é[],1a"), min_size=1, max_size=8))
def test_case_17_no_raw_password_is_cut_in_silence(password: str) -> None:
    """Case 17. Whatever is written raw: it is refused, or the password is the one that was written."""
    try:
        found = parameters(f"postgresql://watcher:{password}@db.internal/app")
    except ConfigError:
        return
    meant = re.sub("%([0-9a-f]{2})", lambda match: bytes.fromhex(match[1]).decode(errors="replace"), password)
    assert found == {"user": "watcher", "password": meant, "host": "db.internal", "dbname": "app"}


def test_case_17_the_password_of_the_case() -> None:
    """Case 17. The password with all of them, raw, is refused and stays unsaid."""
    problem = refused(f"postgresql://watcher:{NASTY}@db/app")
    assert not any(piece in problem for piece in ("a#b", "c:d", "g{h", "j'k", "l\\m"))


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("postgresql://", {}),
        ("postgres://db", {"host": "db"}),
        ("postgresql://watcher@db", {"user": "watcher", "host": "db"}),
        ("postgresql:///app?host=/run/postgresql", {"dbname": "app", "host": "/run/postgresql"}),
        ("postgresql://%2Frun%2Fpostgresql/app", {"dbname": "app", "host": "/run/postgresql"}),
        ("postgresql://a:1,b:2/app", {"host": "a,b", "port": "1,2", "dbname": "app"}),
        ("postgresql://a,b/app?target_session_attrs=standby",
         {"host": "a,b", "port": ",", "dbname": "app", "target_session_attrs": "standby"}),
        ("postgresql://u@[2001:db8::1]:6432", {"user": "u", "host": "2001:db8::1", "port": "6432"}),
        ("postgresql://[fe80::1%25eth0]/app", {"host": "fe80::1%eth0", "dbname": "app"}),
        ("postgresql://my_db.internal/my-app", {"host": "my_db.internal", "dbname": "my-app"}),
        ("postgresql://db/app?sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem",
         {"host": "db", "dbname": "app", "sslmode": "verify-full", "sslrootcert": "/etc/ssl/ca.pem"}),
        ("postgresql://db/app?user=watcher@server&password=a%40b",
         {"host": "db", "dbname": "app", "user": "watcher@server", "password": "a@b"}),
        ("postgresql://db?options=-c%20search_path%3Dx", {"host": "db", "options": "-c search_path=x"}),
        ("  postgresql://db/app\n", {"host": "db", "dbname": "app"}),
    ],
)  # fmt: skip
def test_urls(url: str, meant: dict[str, str]) -> None:
    """Several hosts, IPv6, sockets, parameters: every URL of libpq's manual is taken."""
    found = parameters(url)
    assert {key: value for key, value in found.items() if value not in (None, "")} == meant


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://::1/app", "postgresql://u:hunter2/app", "postgresql://u@db@db2/app", "postgresql://u:1/2@db/app",
        "postgresql://u:12?sslmode=x@db/app", "postgresql://db/app#fragment", "postgresql://db/app/", "postgresql://db/app?",
        "postgresql://db/app?sslmode", "postgresql://db/app?application_name=a@b",
    ],
)  # fmt: skip
def test_urls_that_are_none(url: str) -> None:
    """What could be read in two ways, or in none."""
    assert refused(url).startswith(FORM)


@pytest.mark.parametrize(
    "scheme", ["mysql", "mariadb", "sqlite", "sqlsrv", "redis", "pgsql", "postgresql+psycopg", "http"]
)
def test_only_postgresql(scheme: str) -> None:
    """Another database is told so in one line, without its password."""
    problem = refused(f"{scheme}://app:hunter2@db/app")
    assert problem == f"expected a postgresql:// URL, not {scheme}://; only PostgreSQL is supported"


def test_parameters_that_libpq_does_not_know() -> None:
    """Other tools put their own ones into a URL."""
    problem = "expected only parameters that libpq knows, after the ?"
    assert refused("postgresql://db/app?schema=public") == problem


@pytest.mark.parametrize(
    "dsn", ["postgresql://db:99999/app", "postgresql://db:0/app", "host=db port=x", "host=a,b port=1,-2"]
)
def test_ports(dsn: str) -> None:
    """A port that is none is told at the start, not by each connection."""
    assert refused(dsn) == "expected a port from 1 to 65535"


@pytest.mark.parametrize(
    ("dsn", "meant"),
    [
        ("host=db dbname=app", {"host": "db", "dbname": "app"}),
        ("host=db\n  user=watcher\n", {"host": "db", "user": "watcher"}),
        (r"password='it\'s a \\ b' host=db", {"password": r"it's a \ b", "host": "db"}),
        ("password=a#b@c:d/e%f=g{h}&i host=db", {"password": "a#b@c:d/e%f=g{h}&i", "host": "db"}),
        ("service=app", {"service": "app"}),
        ("host=a,b port=5432, ", {"host": "a,b", "port": "5432,"}),
    ],
)
def test_keywords(dsn: str, meant: dict[str, str]) -> None:
    """In the keyword form a value with spaces is quoted, and nothing else is special."""
    assert parameters(dsn) == meant


@pytest.mark.parametrize(
    "dsn",
    ["db.internal/app", "host", "host=db password=hunter 2", "host=db password='hunter2", "host=db passwort=hunter2",
     "mysql:host=db;dbname=app;password=hunter2", "jdbc:postgresql://db/app?password=hunter2"],
)  # fmt: skip
def test_keywords_that_are_none(dsn: str) -> None:
    """What libpq cannot read is refused at once; its own words would repeat the password."""
    problem = refused(dsn)
    assert problem.startswith(FORM)
    assert "hunter" not in problem


def test_a_nul_does_not_cut_a_dsn() -> None:
    """Libpq, which is written in C, would stop reading there."""
    assert refused("host=db\0.evil") == "expected a secret, but it is empty or binary"
