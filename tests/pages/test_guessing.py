"""Somebody who guesses passwords."""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import bcrypt
from pydantic import SecretStr

from exporter.web import MOST_WAITING, Gate


def login(password: str) -> str:
    """The header of a login as `prometheus`."""
    return f"Basic {b64encode(f'prometheus:{password}'.encode()).decode()}"


def test_a_flood_of_guesses_waits_in_no_line() -> None:
    """However many guess at once, only some of them are checked, and who was let in before still is at once."""
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(8))
    gate = Gate({"prometheus": SecretStr(hashed.decode())})
    assert gate.opens(login("right"))
    with ThreadPoolExecutor(4 * MOST_WAITING) as crowd:
        guesses = [crowd.submit(gate.opens, login(f"wrong {n}")) for n in range(40 * MOST_WAITING)]
        assert gate.opens(login("right"))
        assert not any(guess.result() for guess in guesses)
    assert gate.opens(login("right"))
