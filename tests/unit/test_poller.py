"""The loop: who is asked when, what becomes of an answer, and what is logged."""

from __future__ import annotations

import logging

import pytest

from exporter.errors import SourceError
from exporter.model import Note

from ..world import HandClock
from .scripted import THINGS, Act, Scripted, Stage, fails


@pytest.fixture
def hand() -> HandClock:
    """A clock that only the test moves."""
    return HandClock()


def test_the_first_poll_comes_at_once_and_then_at_the_interval(hand: HandClock) -> None:
    """A value is there as soon as the far side answers, and from then on every 15 s, whatever a poll takes."""
    jobs = Scripted(hand, (Act(cost=0.5),))
    stage = Stage(hand, jobs)
    assert stage.play(40) == [0, 14.5, 14.5]
    assert jobs.asked == [1000, 1015, 1030]


def test_the_most_important_of_those_due_goes_first(hand: HandClock) -> None:
    """At the start, and whenever several are due together, the order of the source is kept."""
    acts = (Act(cost=0.001),)
    jobs, sizes, pop = Scripted(hand, acts), Scripted(hand, acts, "sizes", 30), Scripted(hand, acts, "pop")
    Stage(hand, jobs, sizes, pop).play(31)
    asked = sorted((at, collector.name) for collector in (jobs, sizes, pop) for at in collector.asked)
    assert [name for _, name in asked] == ["jobs", "sizes", "pop", "jobs", "pop", "jobs", "sizes", "pop"]


def test_an_answer_is_on_the_board_with_its_numbers(hand: HandClock) -> None:
    """Samples, their time, what the poll took, and how long they are believed are published together."""
    stage = Stage(hand, Scripted(hand, (Act(0.25, (THINGS(7, "a"), Note("half of it is hidden"))),)))
    stage.play(1)
    state = stage.state()
    assert state.samples == (THINGS(7, "a"),)
    assert state.notes == ("half of it is hidden",)
    assert (state.polls, state.up, state.duration, state.busy) == (1, True, 0.25, 0.25)
    assert state.taken_at == 1_800_000_000.25
    assert state.good_until == 1000 + 3.5 * 15


def test_a_part_that_failed_fails_alone(hand: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    """One queue of many that is refused is counted and told, a warning when it is new; the others are shown."""
    refused = SourceError("permission", "queue mail: access denied")
    stage = Stage(hand, Scripted(hand, (Act(), Act(answer=(THINGS(7, "a"), refused)))))
    with caplog.at_level(logging.DEBUG):
        stage.play(31)
    state = stage.state()
    assert state.up
    assert state.samples == (THINGS(7, "a"),)
    assert state.notes == ("permission: queue mail: access denied",)
    assert state.errors == {"permission": 2}
    assert [record.levelname for record in caplog.records] == ["DEBUG", "WARNING", "DEBUG"]


def test_a_series_that_is_gone_from_the_answer_is_gone(hand: HandClock) -> None:
    """An answer replaces the one before it whole: nothing of the old one stays."""
    stage = Stage(hand, Scripted(hand, (Act(answer=(THINGS(1, "a"), THINGS(2, "b"))), Act(answer=(THINGS(1, "a"),)))))
    stage.play(16)
    assert stage.state().samples == (THINGS(1, "a"),)


def test_failures_make_the_pause_longer_up_to_a_minute(hand: HandClock) -> None:
    """30 s, 60 s, 60 s; and the first success brings the configured pace back."""
    acts = (Act(), fails("refused"), fails("refused"), fails("refused"), Act())
    stage = Stage(hand, Scripted(hand, acts))
    assert stage.play(200) == [0, 15, 30, 60, 60, 15, 15]
    assert stage.state().up


def test_jitter_takes_off_up_to_a_tenth(hand: HandClock) -> None:
    """Exporters that lost the same database do not come back in step, and none comes back later."""
    stage = Stage(hand, Scripted(hand, (fails("refused"),)), roll=0.5)
    assert stage.play(100) == [0, pytest.approx(28.5), pytest.approx(57)]


def test_the_interval_in_force_is_published(hand: HandClock) -> None:
    """The board tells the configured pause apart from the one in force, stretched by duty or by failure."""
    stage = Stage(hand, Scripted(hand, (Act(1), fails("refused"))), duty=0.01)
    stage.play(1)
    assert (stage.state().configured_interval, stage.state().interval) == (15, 100)
    stage.play(100)
    assert (stage.state().configured_interval, stage.state().interval) == (15, 30)


def test_an_unreachable_source_fails_all_its_collectors_by_one_attempt(hand: HandClock) -> None:
    """When the server is gone, nobody knocks once per question."""
    jobs = Scripted(hand, (fails("refused", unreachable=True),))
    sizes = Scripted(hand, name="sizes", interval=60)
    stage = Stage(hand, jobs, sizes)
    stage.play(1)
    assert (len(jobs.asked), len(sizes.asked)) == (1, 0)
    for name in ("jobs", "sizes"):
        state = stage.state(name)
        assert (state.up, state.reason, state.polls, state.errors) == (False, "refused", 1, {"refused": 1})
    assert stage.state("sizes").busy == 0


def test_a_collector_that_fails_alone_leaves_the_others_up(hand: HandClock) -> None:
    """A missing right on one table costs one collector."""
    stage = Stage(hand, Scripted(hand, (fails("permission"),)), Scripted(hand, name="sizes"))
    stage.play(60)
    assert not stage.state().up
    assert stage.state("sizes").up
    assert stage.state("sizes").polls == 4


def test_polling_once_asks_everybody_once(hand: HandClock) -> None:
    """`once` asks each collector, but an unreachable source only once for all."""
    reached, gone = Scripted(hand), Scripted(hand, (fails("dns", unreachable=True),))
    others = [Scripted(hand, name="sizes"), Scripted(hand, name="sizes")]
    Stage(hand, reached, others[0]).poller.poll_all()
    Stage(hand, gone, others[1]).poller.poll_all()
    assert [len(c.asked) for c in (reached, others[0], gone, others[1])] == [1, 1, 1, 0]


def test_a_bug_of_ours_is_unexpected_and_the_loop_goes_on(hand: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    """An exception that nobody foresaw costs one poll, is logged with its traceback, and counts as `unexpected`."""
    stage = Stage(hand, Scripted(hand, (Act(failure=ZeroDivisionError("division by zero")), Act())))
    with caplog.at_level(logging.ERROR):
        stage.play(1)
    assert (stage.state().reason, stage.state().errors) == ("unexpected", {"unexpected": 1})
    assert "ZeroDivisionError" in caplog.text
    stage.play(31)
    assert stage.state().up


def test_a_secret_in_a_message_does_not_reach_the_board(hand: HandClock) -> None:
    """What a far side says may repeat a password; the board has it already taken out."""
    stage = Stage(hand, Scripted(hand, (fails("auth", message="login with s3cret refused"),)))
    stage.poller.hide = lambda text: text.replace("s3cret", "***")
    stage.play(1)
    assert stage.state().error == "login with *** refused"


def test_a_message_is_cut_after_its_secrets_are_hidden(hand: HandClock) -> None:
    """Of a message without end five hundred characters are kept, and no part of a secret that stood at their end."""
    long = f"{'x' * 494} s3cret {'y' * 100_000}"
    part = SourceError("permission", long)
    stage = Stage(hand, Scripted(hand, (fails("auth", message=long), Act(answer=(part,)))))
    stage.poller.hide = lambda text: text.replace("s3cret", "***")
    stage.play(1)
    assert stage.state().error == f"{'x' * 494} *** y…"
    stage.play(60)
    (note,) = stage.state().notes
    assert len(note) == 501
    assert "s3" not in note


def test_one_log_line_a_poll(hand: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    """A failure is a warning, healing and a change of notes are news, and all the rest is for debugging."""
    acts = (
        Act(),
        fails("timeout"),
        fails("timeout"),
        Act(),
        Act(answer=(Note("hidden"),)),
        Act(answer=(Note("hidden"),)),
    )
    stage = Stage(hand, Scripted(hand, acts))
    with caplog.at_level(logging.DEBUG):
        stage.play(140)
    lines = [(record.levelname, record.outcome) for record in caplog.records]  # type: ignore[attr-defined]
    assert lines == [
        ("DEBUG", "ok"),
        ("WARNING", "timeout"),
        ("WARNING", "timeout"),
        ("INFO", "ok"),
        ("INFO", "ok"),
        ("DEBUG", "ok"),
    ]
    assert caplog.records[2].__dict__.items() >= {"failures_in_a_row": 2, "error": "no", "next_in": 60.0}.items()
    assert caplog.records[4].__dict__["note"] == "hidden"


def test_a_reader_that_breaks_does_not_end_the_loop(hand: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    """A bug in the rendering of a page is logged, and polling goes on."""
    stage = Stage(hand, Scripted(hand))

    def reader() -> None:
        raise RuntimeError("no page today")

    stage.board.subscribe(reader)
    stage.play(31)
    assert stage.state().polls == 3
    assert "no page today" in caplog.text


def test_an_answer_after_its_deadline_is_about_the_past(hand: HandClock) -> None:
    """A process that was stopped in the middle of a question for an hour believes nothing of the answer."""
    stage = Stage(hand, Scripted(hand, (Act(), Act(3600), Act())), duty=0.01)
    stage.play(16)
    assert not stage.state().up
    assert stage.state().reason == "timeout"
    assert not stage.fresh()
    stage.play(61)
    assert stage.state().up
    assert stage.state().interval == 15


def test_a_stop_in_a_failing_poll_is_not_charged(hand: HandClock) -> None:
    """After a freeze of an hour in a poll that fails, the next attempt still comes within a minute."""
    stage = Stage(hand, Scripted(hand, (Act(), fails("connect", 3600, unreachable=True), Act())))
    stage.play(16)
    stage.play(61)
    assert stage.state().up
