"""Payloads, names, roles and encodings as they come: nothing of a payload but its class is ever seen."""

from __future__ import annotations

import json
import logging

import psycopg
import pytest

from exporter.demo.postgres import Postgres
from exporter.logs import Line, Secrets
from exporter.status import report
from exporter.terminal import text

from ..world import create_jobs, poll, state, value, watched
from .holding import SLOW, Db, hand_out_again, hold, long, payload, repeated
from .test_jobs_names import encoded

SECRET = "hunter2"
CLOSURE = json.dumps("Illuminate\\Queue\\CallQueuedClosure")[1:-1]  # as it stands in JSON
PAYLOADS = {
    "Laravel's": payload(),
    "in the middle of a secret": payload().replace('"data"', f'"tags":["{SECRET}{"x" * 2000}"],"data"'),
    "none": "",
    "no JSON": f"{SECRET} {{",
    "a list": f'["{SECRET}"]',
    "huge": payload()[:-1] + f',"more":"{SECRET * 500_000}"}}',
    "nested": '{"displayName":' + "[" * 900,
    "NULs": '{"displayName":"\\u0000","data":{"commandName":"\\u0000*\\u0000secret"}}',
    "a number too large": '{"timeout":1' + "0" * 900 + f',"displayName":"{SECRET}"}}',
    "text for a timeout": f'{{"displayName":"App\\\\Jobs\\\\Slow","timeout":"{SECRET}"}}',
    "a name with an id": '{"displayName":"Invoice 4711 for hunter2@example.com"}',
    "a closure": payload("Illuminate\\Queue\\CallQueuedClosure").replace(CLOSURE, "Closure (web.php:12)", 1),
    "null": "null",
}


@pytest.mark.parametrize("of", PAYLOADS.values(), ids=PAYLOADS)
def test_case_19_no_payload_is_ever_told(dsn18: str, db18: Db, of: str, caplog: pytest.LogCaptureFixture) -> None:
    """Case 19: whatever a payload is, it breaks nothing, and its text is in no log, page, note or report."""
    line = Line("logfmt", Secrets(()))
    id_ = hold(db18, 60, of=of)
    with watched(dsn18) as app, caplog.at_level(logging.DEBUG):
        poll(app)
        hand_out_again(db18, id_)
        poll(app)
        assert state(app, "reservations").error == ""
        assert repeated(app) == 1
        said = [line.format(record) for record in caplog.records]
        said += [app.exposition.page("text").decode(), text(report(app.board)), *state(app, "reservations").notes]
    assert any("was handed out again" in each for each in said)
    assert not [each for each in said if SECRET in each]


def test_case_19_an_error_quotes_no_payload(dsn18: str, db18: Db, caplog: pytest.LogCaptureFixture) -> None:
    """Case 19: also where the server itself complains about one, as in a table of somebody's own."""
    db18.execute(
        "CREATE VIEW odd AS SELECT id, queue, (payload || pg_client_encoding())::int::text AS payload,"
        " attempts, reserved_at, available_at FROM jobs"
    )
    hold(db18, 5, of=f'{{"displayName":"{SECRET}"}}')
    with watched(dsn18, table="odd") as app, caplog.at_level(logging.DEBUG):
        poll(app, "jobs", "reservations")
        assert state(app, "reservations").reason == "malformed"
        assert state(app, "jobs").up
        assert state(app, "reservations").error == "invalid input syntax for type integer"
        assert SECRET not in repr([vars(record) for record in caplog.records])


def test_what_a_class_is_called(dsn18: str, db18: Db) -> None:
    """A class by its name; a closure, a text with an id in it and what nobody can read as few names as there are."""
    for of in PAYLOADS.values():
        hold(db18, 5, of=of)
    with watched(dsn18) as app:
        poll(app)
        told = {s.labelled["job_class"] for s in state(app, "reservations").samples if "job_class" in s.labelled}
        assert told == {SLOW, "Illuminate\\Queue\\CallQueuedClosure", "other"}
        assert value(app, "labels_dropped_total", collector="reservations", label="job_class") == 0


def test_case_20_without_pg_monitor_nothing_is_missing(dsn: str, db: Db) -> None:
    """Case 20: single jobs need SELECT on their table, and no other right."""
    role = f"watcher_of_{db.info.dbname}"
    db.execute(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON jobs TO {role}".encode())
    id_ = hold(db, 60, of=payload(timeout=20))
    with watched(dsn.replace("postgres@", f"{role}@")) as app:
        poll(app)
        hand_out_again(db, id_)
        poll(app)
        assert repeated(app) == 1
        assert "was handed out again" in state(app, "reservations").notes[0]
        db.execute(f"REVOKE SELECT ON jobs FROM {role}".encode())
        poll(app, "reservations")
        assert state(app, "reservations").reason == "permission"
    db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_case_24_the_schema_in_the_settings(dsn: str, db: Db) -> None:
    """Case 24: single jobs are those of the configured schema, whatever the search_path would put in front."""
    db.execute("CREATE SCHEMA tenant_a; CREATE SCHEMA evil")
    create_jobs(db, "tenant_a.jobs")
    hold(db, 60)
    db.execute("INSERT INTO tenant_a.jobs SELECT id, 'tenant', payload, 7, reserved_at, 0, 0 FROM jobs")
    db.execute("CREATE VIEW evil.jobs AS SELECT * FROM public.jobs")
    db.execute('CREATE FUNCTION evil."left"(text, int) RETURNS text LANGUAGE sql AS $$ SELECT $1 $$')
    db.execute(f"ALTER DATABASE {db.info.dbname} SET search_path = evil, pg_catalog, public")
    with watched(dsn, schema="tenant_a") as app:
        poll(app)
        poll(app)
        assert long(app, "tenant") == 1
        assert repeated(app, "default") is None


def test_case_25_a_table_that_comes_later(dsn: str, db: Db) -> None:
    """Case 25: without its table it is undefined_table, and it heals when the table comes."""
    with watched(dsn, table="app_jobs", queues={"default": None}) as app:
        poll(app, "jobs", "reservations")
        assert state(app, "reservations").reason == "undefined_table"
        assert repeated(app) is None
        create_jobs(db, "app_jobs")
        poll(app, "jobs", "reservations")
        assert repeated(app) == 0


def test_case_27_bytes_that_are_no_text(server: Postgres) -> None:
    """Case 27: in SQL_ASCII a queue and a payload may hold any bytes; queues that look alike are one, classes go on."""
    with encoded(server, "SQL_ASCII") as (dsn, db):
        readable = payload().encode()
        for queue, of in (
            (b"\xff\xfeA", readable.replace(b"Slow", b"Sl\xffw")),
            (b"\xfe\xffA", b"\xff\xfe{"),
            ("очередь-🚀".encode(), readable.replace(b"{", b'{"tags":["\xff"],', 1)),
        ):
            db.execute(
                "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)"
                " SELECT convert_from(%s, 'SQL_ASCII'), convert_from(%s, 'SQL_ASCII'), 1,"
                " extract(epoch FROM now())::int - 60, 0, 0",
                (queue, of),
            )
        with watched(dsn) as app:
            poll(app, "jobs", "reservations")
            db.execute("UPDATE jobs SET attempts = 2, reserved_at = reserved_at + 50")
            poll(app, "jobs", "reservations")
            assert state(app, "reservations").error == ""
            assert repeated(app, "\ufffd\ufffdA") == 2
            assert repeated(app, "очередь-🚀") == 1
            assert long(app, "очередь-🚀") == 1
            assert long(app, "\ufffd\ufffdA", "other") == 2


def test_case_29_quotes_backslashes_and_line_breaks(dsn: str, db: Db) -> None:
    """Case 29: a queue's name comes back from Prometheus's parser as it is, and stands in a note in one line."""
    name = 'a"b\\c\nd\\ne'
    id_ = hold(db, 60, name)
    with watched(dsn) as app:
        poll(app)
        hand_out_again(db, id_)
        poll(app)
        assert repeated(app, name) == 1
        (note,) = state(app, "reservations").notes
        assert note.isprintable()


def test_a_second_exporter_holds_nothing_up(dsn: str, db: Db) -> None:
    """Reading single jobs waits for no worker that has one locked, and no worker waits for us."""
    hold(db, 60)
    with psycopg.connect(dsn) as worker, watched(dsn, timeout="1s") as app:
        worker.execute("SELECT * FROM jobs FOR UPDATE")
        poll(app)
        assert state(app, "reservations").error == ""
        worker.execute("SET lock_timeout = '100ms'")
        worker.execute("UPDATE jobs SET attempts = attempts + 1")
