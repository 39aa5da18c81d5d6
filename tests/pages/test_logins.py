"""Basic auth, set up by a file in the format of the exporter-toolkit."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median

import bcrypt
import pytest
from pydantic import SecretStr

from exporter.server import Server
from exporter.web import REMEMBERED, Gate, WebConfig

from ..settings.complaints import ONE, complaint
from .serving import board, get, serving

PASSWORD = "a:b c é"
CHEAP, DEAR = 4, 10  # costs; the latter is what htpasswd and the toolkit's manual use


def hashed(password: str, cost: int = CHEAP) -> SecretStr:
    """As `htpasswd -B` makes it."""
    return SecretStr(bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode())


def login(user: str, password: str, scheme: str = "Basic") -> str:
    """The header that a client sends."""
    return f"{scheme} {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Two may look at its pages."""
    users = {"prometheus": hashed(PASSWORD), "é": hashed("x")}
    with serving(board(), WebConfig(basic_auth_users=users)) as running:
        yield running


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (login("prometheus", PASSWORD), 200), (login("prometheus", PASSWORD, "BASIC"), 200), (login("é", "x"), 200),
        (login("prometheus", "wrong"), 401), (login("prometheus", ""), 401), (login("prometheus", "x"), 401),
        (login("nobody", PASSWORD), 401), (login("", ""), 401), (login("prometheus", "a\0b"), 401),
        (login("prometheus", PASSWORD, "Bearer"), 401), (login("prometheus", "x" * 5000), 401),
        (None, 401), ("", 401), ("Basic", 401), ("Basic %%%", 401), ("Basic /w==", 401), ("Basic \xff", 401),
        (f"{login('prometheus', PASSWORD)}x", 401),
    ],
)  # fmt: skip
def test_who_is_let_in(server: Server, header: str | None, status: int) -> None:
    """Those whose password is right; all others are asked for a login, and shown nothing."""
    for path in ("/", "/metrics"):
        answer = get(server, path, {} if header is None else {"Authorization": header})
        assert answer.status == status
        assert (b"database" in answer.body) == (status == 200)
        assert (answer.headers["WWW-Authenticate"] == 'Basic realm="queue-exporter"') == (status == 401)


def test_probes_need_no_login(server: Server) -> None:
    """What asks whether the process lives has no password; it learns no name. Other paths are not told apart."""
    assert [get(server, path).status for path in ("/-/healthy", "/-/ready", "/nowhere")] == [200, 200, 401]


def test_a_login_that_was_right_costs_nothing_the_next_time() -> None:
    """Bcrypt is slow on purpose; a scrape is not slowed down by it, and a guess always is."""
    gate = Gate({"prometheus": hashed(PASSWORD, DEAR)})
    took = []
    for header in (login("prometheus", PASSWORD), *[login("prometheus", PASSWORD)] * 50, login("prometheus", "guess")):
        began = time.perf_counter()
        gate.opens(header)
        took.append(time.perf_counter() - began)
    assert max(took[0], took[-1]) < 5
    assert median(took[1:-1]) < min(took[0], took[-1]) / 20


def test_an_unknown_user_takes_as_long_as_a_wrong_password() -> None:
    """Nobody can find out by the clock which users there are."""
    gate = Gate({"prometheus": hashed(PASSWORD, DEAR)})

    def took(header: str) -> float:
        began = time.thread_time()
        assert not gate.opens(header)
        return time.thread_time() - began

    known = min(took(login("prometheus", f"guess {number}")) for number in range(5))
    unknown = min(took(login("nobody", f"guess {number}")) for number in range(5))
    assert 0.7 < unknown / known < 1.4


def test_few_logins_are_remembered() -> None:
    """What is remembered is bounded; a login that was forgotten is checked again."""
    gate = Gate({user: hashed("x") for user in "abc"})
    schemes = ["".join(letters) for letters in product(*zip("basic", "BASIC", strict=True))]
    headers = [login(user, "x", scheme) for user in "abc" for scheme in schemes]
    assert len(headers) > REMEMBERED
    assert all(gate.opens(header) for header in (*headers, headers[0]))
    assert len(gate.right) == REMEMBERED


@pytest.mark.parametrize(
    ("users", "path", "expected"),
    [
        ("{a: hunter2}", ".a", "expected a bcrypt hash, of cost 16 at most"),
        ("{a: '{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs='}", ".a", "expected a bcrypt hash, of cost 16 at most"),
        ("{a: '$apr1$hunter2$x'}", ".a", "expected a bcrypt hash, of cost 16 at most"),
        (f"{{a: $2y$20${'x' * 53}}}", ".a", "expected a bcrypt hash, of cost 16 at most"),
        (f"{{a: $2y$10${'x' * 52}}}", ".a", "expected a bcrypt hash, of cost 16 at most"),
        ("{a: }", ".a", "expected text"),
        ("[a]", "", "expected a mapping"),
        (f"{{a: $2y$10${'x' * 53}, a: $2y$10${'y' * 53}}}", ".a", "expected once, but given twice"),
    ],
)
def test_passwords_that_are_no_hash(tmp_path: Path, users: str, path: str, expected: str) -> None:
    """A password in the place of its hash, or a hash of another kind, is refused and not repeated."""
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {users}\n")
    problem = complaint(f"{ONE}web: {{config_file: {tmp_path}/web.yml}}\n")
    assert problem == f"web.config_file.basic_auth_users{path}: {expected}"


@pytest.mark.parametrize("prefix", ["2a", "2b", "2y"])
def test_every_kind_of_bcrypt(prefix: str) -> None:
    """Htpasswd writes 2y, others 2a or 2b: it is the same hash."""
    hash_ = hashed(PASSWORD).get_secret_value().replace("$2b$", f"${prefix}$")
    assert Gate(WebConfig.model_validate({"basic_auth_users": {"a": hash_}}).basic_auth_users).opens(
        login("a", PASSWORD)
    )
