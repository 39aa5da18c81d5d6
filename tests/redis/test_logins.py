"""Getting in: passwords, users who may only look, unix sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
import redis
from pydantic import SecretStr

from exporter import config
from exporter.demo.daemon import free_port
from exporter.demo.redis import Redis
from exporter.errors import SourceError
from exporter.sources.redis.settings import Redis as RedisSettings
from exporter.sources.resp.link import Link
from exporter.sources.resp.target import parse
from exporter.timing import Deadline

from ..database.proxies import Peer, Stranger
from ..readme.blocks import block
from ..world import states, value
from .dumps import put_back
from .world import PREFIX, behind, counts, errors, look, payload, push, state_of, watched

PASSWORD = "a#b@c:d/e%f=g{h}&i j'k\"l\\m é"


@pytest.fixture(scope="module")
def locked() -> Iterator[Redis]:
    """A Redis with a password that has every special character in it."""
    with Redis({"requirepass": "change-me"}) as server, redis.Redis(port=server.port, password="change-me") as client:
        client.config_set("requirepass", PASSWORD)
        with redis.Redis(port=server.port, password=PASSWORD) as again:
            push(again, payload())
        yield server


@pytest.mark.parametrize("form", ["in the URL", "setting", "file"])
def test_case_17_any_password_gets_in(locked: Redis, form: str, tmp_path: Path) -> None:
    """Case 17: whatever is in a password, it can be given percent-encoded in the URL, as a setting or in a file."""
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    login = f":{quote(PASSWORD, safe='')}" if form == "in the URL" else ""
    rest: dict[str, Any] = {
        "setting": {"password": PASSWORD},
        "file": {"password_file": str(tmp_path / "password")},
    }.get(form, {})
    with watched(locked.url(login=login), **rest) as app:
        assert counts(app) == {"ready": 1}


@pytest.mark.parametrize("login", ["", ":wrong", "nobody:wrong"])
def test_who_is_not_let_in_is_told_so(locked: Redis, login: str) -> None:
    """NOAUTH and WRONGPASS are both `auth`, for all collectors at once, and no password is in the message."""
    with watched(locked.url(login=login)) as app:
        look(app)
        assert errors(app, "queues") == {"auth": 1 + 2}
        assert "wrong" not in state_of(app, "queues").error
        assert value(app, "jobs", queue="default", state="ready") is None


class Echo(Peer):
    """Refuses the first words that it is told, and repeats them; no login of ours gets in."""

    def __init__(self, begin: bytes) -> None:
        super().__init__()
        self.begin = begin
        Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with client:
                    said = client.recv(4096).replace(b"\r\n", b" ")
                    client.sendall(self.begin + said + b"\r\n")

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        super().close()


@pytest.mark.parametrize("begin", [b"-ERR " + 290 * b"x", b"-", b"$", b"?", b"-NOAUTH ", b"-LOADING "])
def test_case_17_no_answer_to_a_login_is_repeated(begin: bytes) -> None:
    """Case 17: whatever a far side makes of a password, its answer is told in our words."""
    with Echo(begin) as far, watched(behind(far), password=PASSWORD) as app:
        look(app, "queues")
        assert state_of(app, "queues").reason in ("auth", "malformed", "loading", "connect")
        assert not any(part in state_of(app, "queues").error for part in ("AUTH ", "a#b@c", "xxx"))


def test_case_17_a_login_that_is_cut_by_the_server(tmp_path: Path) -> None:
    """Case 17: a Redis that does not know AUTH repeats the first 128 characters of what it was told; we do not."""
    (tmp_path / "token").write_text("TOKEN-" * 40)
    with (
        Redis({"rename-command": "AUTH zzz"}) as server,
        watched(server.url(), password_file=str(tmp_path / "token")) as app,
    ):
        look(app, "queues")
        assert state_of(app, "queues").reason == "auth"
        assert state_of(app, "queues").error == "login refused: AUTH is not known here (renamed?)"


def test_a_password_where_none_is_needed(server: Redis) -> None:
    """A Redis without a password says so, which is not the same as a wrong one."""
    with watched(server.url(), password="secret") as app:
        look(app, "queues")
        assert state_of(app, "queues").error == "login refused: a password is set here, and none in this Redis"


def test_a_user_without_a_password(server: Redis, client: redis.Redis) -> None:
    """A user who needs no password gets in by the name alone."""
    client.execute_command("ACL", "SETUSER", "open", "ON", "nopass", "~*", "+@all")
    with watched(server.url(login="open")) as app:
        assert counts(app) == {}
        assert state_of(app, "queues").up
    client.execute_command("ACL", "DELUSER", "open")


def test_our_connections_can_be_told_by_their_name(server: Redis, client: redis.Redis) -> None:
    """In CLIENT LIST each connection of ours is called `queue-exporter`; who may not name itself still looks."""
    with watched(server.url()) as app:
        look(app, "queues")
        assert "queue-exporter" in [each["name"] for each in client.client_list()]
    client.execute_command("ACL", "SETUSER", "some", "ON", ">pw", "~*", "+@all", "-client")
    with watched(server.url(login="some:pw")) as app:
        assert counts(app) == {}
        assert state_of(app, "queues").up
    client.execute_command("ACL", "DELUSER", "some")


def test_a_command_that_was_renamed_is_permission() -> None:
    """Before there were users, a command was taken away by another name: that is `permission`, and the command told."""
    for command in ("ZCOUNT", "INFO", "TIME"):
        with Redis({"rename-command": f"{command} zzz"}) as server, watched(server.url()) as app:
            look(app, "queues")
            assert state_of(app, "queues").reason == "permission"
            assert f"unknown command '{command}'" in state_of(app, "queues").error


@pytest.mark.parametrize("password", [None, "secret"])
def test_a_redis_in_protected_mode(password: str | None) -> None:
    """One that lets in its own machine alone says so at once and hangs up: that is `permission`, and its words."""
    said = b"-DENIED Redis is running in protected mode because protected mode is enabled\r\n"
    with Stranger(said) as far, watched(behind(far), password=password) as app:
        look(app, "queues")
        assert state_of(app, "queues").reason == "permission"
        assert "protected mode" in state_of(app, "queues").error


def test_the_next_address_is_tried(server: Redis) -> None:
    """A name with several addresses leads to the first that lets us in; where none does, all are told."""
    link = Link(parse(SecretStr(f"redis://several:{server.port}")), lambda host, deadline: ["127.0.0.2", "127.0.0.1"])
    assert link.ask([("LLEN", "nothing")], Deadline(time.monotonic() + 2, time.monotonic)) == [0]
    link.close()
    closed = Link(parse(SecretStr(f"redis://several:{free_port()}")), lambda host, deadline: ["127.0.0.2", "127.0.0.1"])
    with pytest.raises(SourceError, match="refused"):
        closed.ask([("LLEN", "nothing")], Deadline(time.monotonic() + 2, time.monotonic))


def test_who_is_let_in_again_is_seen_at_once(locked: Redis) -> None:
    """When the password is as it was, the next poll is good: nobody has to restart anything."""
    with (
        redis.Redis(port=locked.port, password=PASSWORD) as client,
        watched(locked.url(), password=PASSWORD) as app,
    ):
        client.config_set("requirepass", "another")
        look(app, "queues")
        assert state_of(app, "queues").reason == "auth"
        client.config_set("requirepass", PASSWORD)
        assert counts(app) == {"ready": 1}


def acl() -> str:
    """The line in the README that makes our user."""
    return block("text", "ACL SETUSER queue_exporter")


def test_the_settings_of_the_readme_are_accepted(tmp_path: Path) -> None:
    """The README's settings file is one, and says of the second connection and of the user what it means."""
    (tmp_path / "secret").write_text("change-me\n")
    text = block("yaml", "driver: redis").replace("/run/secrets/queue-exporter", str(tmp_path / "secret"))
    (tmp_path / "file.yml").write_text(text)
    connection = config.load(tmp_path / "file.yml", {}).connections["redis"]
    assert isinstance(connection, RedisSettings)
    assert connection.connection_of("exports", "redis") == "redis-long"
    target = connection.target()
    assert (target.host, target.username, target.password) == ("cache.internal", "queue_exporter", "change-me")
    cache = connection.cache_target()
    assert cache is not None
    assert (cache.host, cache.database, cache.password) == ("cache.internal", 1, "change-me")


@pytest.fixture
def allowed(server: Redis, client: redis.Redis) -> Iterator[str]:
    """The URL of a user who may do what the README says, and nothing else."""
    client.execute_command(*acl().split())
    yield server.url(login="queue_exporter:change-me")
    client.execute_command("ACL", "DELUSER", "queue_exporter")


def test_the_acl_line_of_the_readme_is_enough(allowed: str, client: redis.Redis) -> None:
    """With the user that the README makes, every collector works, and nobody else's keys can be read."""
    put_back(12, "A", client)
    client.select(1)
    client.set(f"{PREFIX}laravel_cache:illuminate:queue:restart", "1796057703")
    horizon = {"prefix": "laravel_horizon:"}
    with watched(allowed, horizon=horizon, cache={}, discover=True) as app:
        look(app)
        known = states(app, "redis")
        assert {name: (state.up, dict(state.errors)) for name, state in known.items()} == dict.fromkeys(
            ("queues", "reservations", "signals", "server", "horizon"), (True, {})
        )
    with redis.Redis.from_url(allowed) as ours:
        for command in (("SET", f"{PREFIX}queues:default", "1"), ("GET", "session:1"), ("FLUSHALL",), ("KEYS", "*")):
            with pytest.raises(redis.exceptions.NoPermissionError):
                ours.execute_command(*command)


def test_who_may_not_look_is_told_so(server: Redis, client: redis.Redis) -> None:
    """NOPERM is `permission`: of one queue alone, where the user's keys do not cover it; else of the collector."""
    client.execute_command(*["ACL", "SETUSER", "some", "ON", ">pw", "~laravel_database_queues:mail*", "+@all"])
    client.execute_command(*["ACL", "SETUSER", "none", "ON", ">pw", "~*", "+llen"])
    push(client, payload(), queue="mail")
    with watched(server.url(login="some:pw"), queues={"default": None, "mail": None}) as app:
        assert counts(app, "mail") == {"ready": 1}
        assert errors(app, "queues") == {"permission": 1}
        assert value(app, "jobs", queue="default", state="ready") is None
    with watched(server.url(login="none:pw")) as app:
        look(app, "queues")
        assert state_of(app, "queues").reason == "permission"
    client.execute_command(*["ACL", "SETUSER", "other", "ON", ">pw", "~laravel-database-*", "+@all"])
    with watched(server.url(login="other:pw"), cache={}) as app:
        look(app)
        for collector in ("queues", "reservations"):
            assert state_of(app, collector).reason == "permission"
            assert "keys that begin with laravel_database_queues:" in state_of(app, collector).error
        assert state_of(app, "signals").error.startswith("the cache: ")
        assert "keys such as laravel_database_laravel_cache:" in state_of(app, "signals").error
    client.execute_command("ACL", "DELUSER", "some", "none", "other")


def test_unix_socket(tmp_path: Path) -> None:
    """A Redis on the same machine may be reached by its socket; one that is not there is `refused`."""
    path = tmp_path / "redis.sock"
    with Redis({"unixsocket": str(path)}) as server, redis.Redis(port=server.port, db=3) as client:
        push(client, payload())
        with watched(f"unix://{path}?db=3") as app:
            assert counts(app) == {"ready": 1}
    with watched(f"unix://{path}.gone") as app:
        look(app)
        assert state_of(app, "queues").reason == "refused"


def test_another_database_number(server: Redis, client: redis.Redis) -> None:
    """The number behind the slash is the database; one that is not there is `not_found`."""
    client.select(5)
    push(client, payload())
    with watched(server.url(5)) as app:
        assert counts(app) == {"ready": 1}
    with watched(server.url(99)) as app:
        look(app, "queues")
        assert state_of(app, "queues").reason == "not_found"
