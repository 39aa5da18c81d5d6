"""The databases' clocks, read on the way by their own sources."""

from __future__ import annotations

from typing import Any

import psycopg

from exporter.sources.readings import Reading, Readings

from ..world import HandClock, poll, value, watched

Db = psycopg.Connection[Any]


def reading(offset: float, error: float, reference: str = "database:a") -> Reading:
    """A clock that is ahead of ours by `offset`, known within `error`."""
    return Reading(reference, offset, error)


def test_offset_is_as_if_read_halfway_and_error_half_the_round_trip() -> None:
    """A clock that says 105 between 100 and 102 is 4 s ahead, give or take one."""
    between = Reading.between("database:a", 105, 100, 102)
    assert (between.offset, between.error) == (4, 1)


def test_the_smallest_error_wins() -> None:
    """Of all that was read since somebody looked, the most exact one is shown."""
    readings = Readings(HandClock().clock)
    for error in (0.5, 0.1, 0.3):
        readings.put(reading(error, error))
    readings.put(reading(7, 0.2, "database:b"))
    assert readings.look() == [reading(0.1, 0.1), reading(7, 0.2, "database:b")]


def test_what_was_seen_gives_way_to_what_is_new() -> None:
    """An exact reading does not hide a later one, and stays while there is none."""
    readings = Readings(HandClock().clock)
    readings.put(reading(1, 0.1))
    assert readings.look() == readings.look() == [reading(1, 0.1)]
    readings.put(reading(2, 0.9))
    assert readings.look() == [reading(2, 0.9)]


def test_a_reading_has_its_time() -> None:
    """A database that has not answered for long has no offset, however exact the last one was."""
    hand = HandClock()
    readings = Readings(hand.clock)
    readings.put(reading(1, 0.1), good_for=50)
    hand.pass_(50)
    assert len(readings.look()) == 1
    hand.pass_(0.1)
    assert readings.look() == []
    readings.put(reading(2, 0.9), good_for=50)
    assert readings.look() == [reading(2, 0.9)]


def test_an_old_exact_reading_does_not_keep_a_new_one_out() -> None:
    """Nobody looked for long; the exact reading of that time is no better than none."""
    hand = HandClock()
    readings = Readings(hand.clock)
    readings.put(reading(1, 0.1), good_for=50)
    hand.pass_(51)
    readings.put(reading(2, 0.9), good_for=50)
    assert readings.look() == [reading(2, 0.9)]


def test_an_answer_before_the_question_is_no_reading() -> None:
    """Our clock was set back in between; its negative error would win against every other."""
    readings = Readings(HandClock().clock)
    readings.put(reading(1, -5))
    assert readings.look() == []


def test_a_real_databases_clock(dsn18: str, db18: Db) -> None:
    """A database on this machine has our clock, within the error that is shown beside the offset."""
    with watched(dsn18) as app:
        poll(app)
        poll(app, source="clock")
        offset = value(app, "clock_offset_seconds", reference="database:database")
        error = value(app, "clock_offset_error_seconds", reference="database:database")
    assert offset is not None
    assert error is not None
    assert 0 < error < 1
    assert abs(offset) <= error + 1e-6


def test_a_real_databases_clock_is_compared_with_ours(dsn18: str, db18: Db) -> None:
    """If our clock is years off, that is the offset; and it is gone when the database has not answered for long."""
    hand = HandClock()
    with watched(dsn18, hand.clock) as app:
        poll(app, "jobs")
        poll(app, source="clock")
        (now,) = db18.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone() or (0.0,)
        offset = value(app, "clock_offset_seconds", reference="database:database")
        assert offset is not None
        assert abs(offset - (now - hand.wall)) < 5
        hand.pass_(3.5 * 15 + 1)
        poll(app, source="clock")
        assert value(app, "clock_offset_seconds", reference="database:database") is None


def test_an_offset_does_not_flicker_when_the_database_is_asked_seldom(dsn18: str, db18: Db) -> None:
    """With an interval of five minutes the offset is there all the time, not once in twenty looks."""
    hand = HandClock()
    with watched(dsn18, hand.clock, interval="5m") as app:
        poll(app, "jobs")
        for _ in range(20):
            poll(app, source="clock")
            assert value(app, "clock_offset_seconds", reference="database:database") is not None
            hand.pass_(15)
