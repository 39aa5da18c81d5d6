"""What is taken from the environment: variables in a file, or a DSN alone."""

from __future__ import annotations

import pytest

from exporter import config
from exporter.errors import ConfigError

from ..world import database_of
from .complaints import ONE, complaint, complaints, load


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${TABLE}", "from_env"),
        ("${TABLE:-jobs}", "from_env"),
        ("${NOWHERE:-jobs}", "jobs"),
        ("${EMPTY:-jobs}", "jobs"),
        ("a${TABLE}b${NOWHERE:-}c", "afrom_envbc"),
        ("$TABLE", "$TABLE"),
        ("$$", "$$"),
        ("${NOWHERE:-a:-b c}", "a:-b c"),
    ],
)
def test_variables(written: str, meant: str) -> None:
    """`${NAME}` is replaced, `${NAME:-default}` has a default that also stands for an empty variable, as in a shell."""
    settings = load(f'{ONE}    table: "{written}"\n', {"TABLE": "from_env", "EMPTY": ""})
    assert database_of(settings).table == meant


def test_a_variable_stays_one_value() -> None:
    """What is in a variable is not read as YAML again, nor as a variable."""
    hostile = "jobs\n    target_wait: 1s #{[*x ${OTHER}"
    settings = load(f"{ONE}    password: ${{SECRET}}\n", {"SECRET": hostile})
    password = settings.connections["database"].password
    assert password is not None
    assert password.get_secret_value() == hostile


def test_every_kind_of_setting_may_be_a_variable() -> None:
    """Durations and switches, too."""
    settings = load(f"{ONE}    interval: ${{EVERY}}\n    discover: ${{ALL}}\n", {"EVERY": "30s", "ALL": "no"})
    assert (settings.connections["database"].interval, settings.connections["database"].discover) == (30, False)


def test_an_unset_variable_is_named_with_the_setting() -> None:
    """One line for each, even where two are missing in one value, and nothing more about that value."""
    assert complaints(f"{ONE}    dsn: postgresql://${{USER_}}:${{WORD_}}@db/app\n    interval: ${{EVERY}}\n") == [
        "connections.database.dsn: expected the environment variable USER_, which is not set",
        "connections.database.dsn: expected the environment variable WORD_, which is not set",
        "connections.database.interval: expected the environment variable EVERY, which is not set",
    ]


def test_a_complaint_is_made_once() -> None:
    """A variable that is missing twice in one value is one mistake."""
    said = "connections.database.table: expected the environment variable A, which is not set"
    assert complaint(f"{ONE}    table: ${{A}}_${{A}}\n") == said


@pytest.mark.parametrize("written", ["${DB-HOST}", "${", "${}", "${A:?b}", "${A:-${B}}", "${A", "${ A }"])
def test_what_looks_like_a_variable_and_is_none(written: str) -> None:
    """It is not taken for a name of that look: something else was meant."""
    problem = complaint(f'{ONE}    table: "{written}"\n', {"A": "x", "B": "y"})
    assert problem.startswith("connections.database.table: expected ${NAME} or ${NAME:-default}")


def test_bytes_in_a_variable_that_are_no_text() -> None:
    """A variable that is not UTF-8 is refused where it is used."""
    assert complaint(f"{ONE}    table: ${{TABLE}}\n", {"TABLE": "caf\udce9"}).startswith(
        "connections.database.table: expected "
    )
    assert complaint(f"{ONE}    schema: ${{TABLE}}\n", {"TABLE": "caf\udce9"}).startswith(
        "connections.database.schema: "
    )


def test_a_dsn_alone_is_enough() -> None:
    """With no file, the table `jobs` of that database is watched with Laravel's defaults."""
    settings = config.load(None, {"QUEUE_EXPORTER_DSN": "postgresql://db.internal/app"})
    database = database_of(settings)
    assert [*settings.connections] == ["database"]
    assert (database.table, database.schema_, database.retry_after) == ("jobs", "public", 90)
    assert database.parameters() == {"host": "db.internal", "dbname": "app"}
    assert (settings.web.listen, settings.clock.ntp) == ("0.0.0.0:10087", ())


@pytest.mark.parametrize("env", [{}, {"QUEUE_EXPORTER_DSN": ""}])
def test_neither_file_nor_dsn(env: dict[str, str]) -> None:
    """Both ways to start are named."""
    with pytest.raises(
        ConfigError, match=r"expected --config FILE, or the DSN .* in the environment variable QUEUE_EXPORTER_DSN"
    ):
        config.load(None, env)


def test_a_bad_dsn_in_the_environment_is_called_by_its_variable() -> None:
    """Who has no file is not told of a path in one."""
    with pytest.raises(ConfigError) as refusal:
        config.load(None, {"QUEUE_EXPORTER_DSN": "mysql://app:hunter2@db/app"})
    assert refusal.value.problems == (
        "QUEUE_EXPORTER_DSN: expected a postgresql:// URL, not mysql://; only PostgreSQL is supported",
    )


def test_without_a_dsn_the_variables_of_libpq_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is handed to libpq that would stand before PGHOST and the others; PGPASSWORD is a secret like any."""
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    settings = load(ONE)
    assert database_of(settings).parameters() == {}
    assert "hunter2" in settings.secrets()
