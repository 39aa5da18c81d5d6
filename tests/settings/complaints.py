"""Settings as people write them, and what the exporter has to say about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from exporter import config
from exporter.errors import ConfigError

ONE = "connections:\n  database:\n    driver: database\n"  # all that is needed; more of it is indented by four


def load(text: str | bytes, env: Mapping[str, str] | None = None) -> config.Config:
    """A settings file with this content. Raises `ConfigError`."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "settings.yml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return config.load(file, env or {})


def complaints(text: str | bytes, env: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong with a file of this content, a line for each; the file's own path is left out."""
    try:
        load(text, env)
    except ConfigError as error:
        problems = error.problems
    else:
        problems = ()
    assert all(problem.isprintable() for problem in problems), "each is one line"
    return [problem.partition("settings.yml: ")[2] or problem for problem in problems]


def complaint(text: str | bytes, env: Mapping[str, str] | None = None) -> str:
    """The one complaint about this content."""
    (problem,) = complaints(text, env)
    return problem
