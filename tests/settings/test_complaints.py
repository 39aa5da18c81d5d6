"""Complaints: all at once, each once, each with the path of its setting and what is expected there."""

from __future__ import annotations

import pytest

from exporter import config

from .complaints import ONE, complaint, complaints

DRIVER = f"expected one of: {', '.join(config.DRIVERS)}"
DURATION = "expected a duration above zero, and of a year at most, such as 90, 90s, 2m or 1.5h"


def test_all_complaints_come_at_once() -> None:
    """Who has made ten mistakes starts the exporter twice, not eleven times."""
    problems = complaints(
        """
        web: {listen: here, config_file: nowhere.yml, port: 1}
        connections:
          database: {driver: database, dsn: "mysql://h/d", interval: 0, tabel: jobs,
            queues: {"": , a: {retry_after: x}}}
          clock: {driver: database}
          shop: {driver: beanstalkd, host: h}
          gone: {driver: database, dsn: "${NOWHERE}"}
        clock: {ntp: [a, a], interval: 10s}
        stray: 1
        """
    )
    assert problems == [
        "connections.gone.dsn: expected the environment variable NOWHERE, which is not set",
        "web.listen: expected host:port such as 0.0.0.0:10087 or [::1]:10087",
        "web.config_file: expected a readable file: No such file or directory",
        "web.port: is not a known setting",
        "connections.database.dsn: expected a postgresql:// URL, not mysql://; only PostgreSQL is supported",
        f"connections.database.interval: {DURATION}",
        "connections.database.queues.'': expected a queue's name of 1 to 255 characters",
        f"connections.database.queues.a.retry_after: {DURATION}",
        "connections.database.tabel: is not a known setting",
        "connections.clock: expected another name than 'clock', which is taken by the clocks",
        f"connections.shop.driver: {DRIVER}",
        "clock.ntp: expected each name once, but one is given twice",
        "clock.interval: expected 64s or more, so that no NTP server is asked too often",
        "stray: is not a known setting",
    ]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("colour: red", "connections.database.colour"),
        ("queues: {mail: {colour: red}}", "connections.database.queues.mail.colour"),
        ("pools: {web: {role: a, colour: red}}", "connections.database.pools.web.colour"),
        ("cache: {colour: red}", "connections.database.cache.colour"),
    ],
)
def test_unknown_keys_of_a_connection(line: str, path: str) -> None:
    """A misspelt setting is named, however deep it lies; it is never silently ignored."""
    assert complaint(f"{ONE}    {line}\n") == f"{path}: is not a known setting"


@pytest.mark.parametrize("place", ["web", "clock"])
def test_unknown_keys_elsewhere(place: str) -> None:
    """The same holds beside the connections."""
    assert complaint(f"{ONE}{place}: {{colour: red}}\n") == f"{place}.colour: is not a known setting"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("queues: [mail]", "queues: expected a mapping"),
        ("queues: mail", "queues: expected a mapping"),
        ("queues: {mail: 60s}", "queues.mail: expected a mapping"),
        ("pools: {web: app}", "pools.web: expected a mapping"),
        ("pools: {web: }", "pools.web: expected a mapping"),
        ("pools: {web: {role: a, queues: mail}}", "pools.web.queues: expected a list"),
        ("pools: {web: {role: [a]}}", "pools.web.role: expected text"),
        ("pools: {web: {role: a, pooled: perhaps}}", "pools.web.pooled: expected true or false"),
        ("table: [jobs]", "table: expected text"),
        ("table:", "table: expected text"),
        ("schema: {public: }", "schema: expected text"),
        ("dsn: {host: h}", "dsn: expected text"),
        ("password: [x]", "password: expected text"),
        ("password_file: [x]", "password_file: expected the path of a file"),
        ("discover: sometimes", "discover: expected true or false"),
        ("discover:", "discover: expected true or false"),
        ("interval:", f"interval: {DURATION}"),
        ("interval: [15s]", f"interval: {DURATION}"),
        ("cache: cache", "cache: expected a mapping"),
    ],
)
def test_wrong_types(line: str, problem: str) -> None:
    """A list where a mapping belongs, a mapping where text belongs, nothing where something belongs."""
    assert complaint(f"{ONE}    {line}\n") == f"connections.database.{problem}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("web: {}", "connections: is missing"),
        ("connections:", "connections: expected a mapping"),
        ("connections: {}", "connections: expected at least one connection of config/queue.php"),
        ("connections: [database]", "connections: expected a mapping"),
        ("connections: {database: }", "connections.database: expected a mapping"),
        ("connections: {database: {}}", f"connections.database.driver: {DRIVER}"),
        ("connections: {database: {driver: }}", f"connections.database.driver: {DRIVER}"),
        ("connections: {database: {driver: [database]}}", f"connections.database.driver: {DRIVER}"),
        ("connections: {c: {driver: beanstalkd, host: x}}", f"connections.c.driver: {DRIVER}"),
        (f"{ONE}web: 10087", "web: expected a mapping"),
        (f"{ONE}web: {{config_file: {{tls_server_config: }}}}", "web.config_file: expected the path of a file"),
        (f"{ONE}clock: time.internal", "clock: expected a mapping"),
        (f"{ONE}clock: {{ntp: time.internal}}", "clock.ntp: expected a list"),
        (f"{ONE}clock: {{ntp: ['']}}", "clock.ntp.0: expected a name of 1 to 255 printable characters"),
    ],
)
def test_wrong_shapes(content: str, problem: str) -> None:
    """What a file may be made of, and which drivers there are."""
    assert complaint(content) == problem


@pytest.mark.parametrize("section", ["web", "clock"])
def test_an_empty_section_means_its_defaults(section: str) -> None:
    """All that was in it is commented out."""
    assert complaints(f"{ONE}{section}:\n") == []
    assert complaints(f"{ONE}    queues:\n    pools:\n") == []
