"""What is over its limit now: which series, in which order, in which words, and the verdict for a script."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import app, config
from exporter.amounts import printable
from exporter.board import Board, Key, State
from exporter.browser import status_page
from exporter.findings import Finding, path
from exporter.model import Limit, Metric, Note, Sample
from exporter.queues import JOBS as QUEUE_JOBS
from exporter.status import Verdict, report
from exporter.terminal import text

from ..world import HandClock
from .reports import board, reported

QUEUE = ("connection", "queue")
TARGET = Metric("laravel_queue_target_seconds", "Its own limit.", QUEUE)
AGE = Metric("laravel_queue_age_seconds", "An age.", QUEUE, limit=Limit(TARGET, "waits {value} of {bound}", "TooLong"))
JOBS = Metric(
    "laravel_queue_some_jobs",
    "Jobs.",
    (*QUEUE, "state"),
    limit=Limit(0, "{value} expired", "Expired", where=("state", "expired")),
)
USE = Metric(
    "laravel_queue_use_ratio", "Use.", ("connection",), limit=Limit(0.8, "{value} of {bound}", "High", soon=0.9)
)


def findings(*samples: Sample, constants: tuple[Sample, ...] = ()) -> list[tuple[str, str, bool]]:
    """What was found: where, what it says, whether it is over."""
    return [(f.where, f.says, f.over) for f in reported(*samples, constants=constants).findings]


def test_a_series_is_compared_with_its_own_limit() -> None:
    """Each queue has its own target; one without a target is never over it."""
    ages = [AGE(90, "database", name) for name in ("slow", "fast", "free")]
    targets = (TARGET(900, "database", "slow"), TARGET(60, "database", "fast"))
    assert findings(*ages, constants=targets) == [("database/fast", "waits 1m 30s of 1m", True)]


def test_a_limit_that_is_a_constant() -> None:
    """Only what is above the limit is over it; at the limit nothing is wrong yet."""
    assert findings(USE(0.81, "database")) == [("database", "81 % of 80 %", True)]
    assert [over for _, _, over in findings(USE(0.8, "database"))] == [False]


def test_close_to_the_limit_is_said_apart() -> None:
    """From nine tenths of this limit on, somebody should know; nothing is over it."""
    assert findings(USE(0.73, "database")) == [("database", "73 % of 80 % (soon)", False)]
    assert findings(USE(0.71, "database")) == []
    assert reported(USE(0.73, "database")).verdict is Verdict.FINE


def test_a_limit_of_one_state_leaves_the_others_alone() -> None:
    """A thousand ready jobs are no finding where the limit is about expired ones; none expired is none either."""
    jobs = [JOBS(1000, "database", "default", "ready"), JOBS(2, "database", "default", "expired")]
    assert findings(*jobs, JOBS(0, "database", "mail", "expired")) == [("database/default", "2 expired", True)]


def test_a_limit_that_may_not_be_reached() -> None:
    """A timeout as long as retry_after is too long; one that never ends is, too, and is called so."""
    limit = Limit(TARGET, "timeout {value}, not below {bound}", "TooLong", reached=True)
    timeout = Metric("laravel_queue_timeout_seconds", "Timeout.", (*QUEUE, "job_class"), limit=limit)
    found = findings(
        *(timeout(value, "a", "x", job_class) for value, job_class in ((89, "A"), (90, "B"), (inf, "C"))),
        timeout(inf, "a", "y", "D"),
        constants=(TARGET(90, "a", "x"),),
    )
    assert found == [
        ("a/x/C", "timeout none, not below 1m 30s", True),
        ("a/x/B", "timeout 1m 30s, not below 1m 30s", True),
    ]


def test_a_limit_either_way() -> None:
    """A clock may be off in both directions; at the limit nothing is wrong yet, and the worst comes first."""
    limit = Limit(2, "off by {value}", "Clock", either_way=True, soon=0.5)
    lead = Metric("laravel_queue_lead_seconds", "Lead.", QUEUE, limit=limit)
    found = findings(*(lead(off, "a", str(off)) for off in (-40, -2, -1, 0, 1, 2, 3)))
    assert found == [
        ("a/-40", "off by -40s", True),
        ("a/3", "off by 3s", True),
        ("a/-2", "off by -2s (soon)", False),
        ("a/2", "off by 2s (soon)", False),
    ]


def test_a_sentence_may_count_and_may_name_what_stands_beside() -> None:
    """One job is a job, two are jobs, and another number of the same queue stands where the sentence wants it."""
    limit = Limit(0, "{value:job} past {beside}", "Expired", beside=TARGET)
    late = Metric("laravel_queue_late_jobs", "Late.", QUEUE, limit=limit)
    found = findings(late(1, "a", "x"), late(2, "a", "y"), late(3, "a", "z"), constants=(TARGET(90, "a", "x"),))
    assert [says for _, says, _ in found] == ["1 job past 1m 30s", "2 jobs past -", "3 jobs past -"]


def test_the_worst_comes_first() -> None:
    """Over comes before soon, then how many times the limit; a limit of zero is exceeded most of all."""
    targets = tuple(TARGET(60, "database", name) for name in "ab")
    found = findings(
        AGE(90, "database", "a"), AGE(600, "database", "b"), USE(0.75, "database"), JOBS(1, "x", "y", "expired"),
        constants=targets,
    )  # fmt: skip
    assert [where for where, _, _ in found] == ["x/y", "database/b", "database/a", "database"]


def test_an_alert_is_named_only_where_its_runbook_exists() -> None:
    """Nobody is sent to a page that is not there."""
    with_runbook = reported(USE(0.9, "database"), runbooks=("High",)).findings
    without = reported(USE(0.9, "database"), runbooks=("TooLong",)).findings
    assert [f.alert for f in (*with_runbook, *without)] == ["High", ""]


def test_verdict() -> None:
    """Fine is 0, over a limit 1, and blind 3, whatever was over its limit before the silence."""
    hand = HandClock()
    silent = board(USE(0.9, "database"), hand=hand)
    hand.pass_(51)
    told = (reported(USE(0.5, "database")), reported(USE(0.9, "database")), report(silent, clock=hand.clock))
    assert [int(each.verdict) for each in told] == [0, 1, 3]


def test_blind_is_about_the_most_important_question() -> None:
    """A source whose jobs answer is not silent, though its sizes are denied."""
    hand = HandClock()
    made = board(USE(0.5, "database"), hand=hand)
    made.publish({Key("database", "sizes"): State(60, 60, polls=9, streak=9, reason="permission", error="denied")})
    assert report(made, clock=hand.clock).verdict is Verdict.FINE
    made.publish({Key("other", "jobs"): State(15, 15)})
    assert report(made, clock=hand.clock).verdict is Verdict.BLIND


@pytest.mark.parametrize(("of", "blind"), [("mail", ()), ("other", ("database/mail",))])
def test_a_named_queue_without_numbers_leaves_us_blind(of: str, blind: tuple[str, ...]) -> None:
    """Its source answers, but not for it: nobody may call that fine, and it keeps its line among the queues."""
    hand = HandClock()
    made = Board(named={"database": [("database", "mail")]})
    said = (QUEUE_JOBS(0, "database", of, "ready"),)
    made.publish({Key("database", "jobs"): State(15, 15, said, polls=1, taken_at=0, good_until=hand.mono + 50)})
    found = report(made, clock=hand.clock)
    assert found.blind == blind
    assert found.verdict is (Verdict.BLIND if blind else Verdict.FINE)
    assert ("NOTHING IS OVER" in text(found)) is not bool(blind)
    assert "  database/mail" in text(found)
    assert ('<h1 class="over">Blind: 1</h1>' in status_page(found)) is bool(blind)
    hand.pass_(51)
    assert report(made, clock=hand.clock).blind == ("database/jobs",)


def test_what_is_not_believed_is_not_compared() -> None:
    """An old value is over no limit: nobody knows."""
    hand = HandClock()
    made = board(USE(0.9, "database"), hand=hand, streak=2, reason="timeout", error="no answer")
    found = report(made, clock=hand.clock)
    assert found.findings == ()
    assert "no answer" in text(found)


def lines(name: str) -> list[str]:
    """A report in which this name stands wherever a text from outside can stand."""
    hand = HandClock()
    made = board(AGE(90, "database", name), hand=hand, constants=(TARGET(60, "database", name),), notes=(name,))
    made.publish(
        {Key(f"source {name}", "jobs"): State(15, 15, polls=1, streak=1, reason="connect", error=f"no {name}")}
    )
    return text(report(made, clock=hand.clock)).removesuffix("\n").split("\n")


def test_a_long_name_keeps_the_columns() -> None:
    """A queue that is named by its URL has a line for its whole name, and its numbers are under the others'."""
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/mail"
    samples = [QUEUE_JOBS(count, "sqs", queue, "ready") for queue, count in ((url, 12), ("exports", 3))]
    page = text(reported(*samples)).splitlines()
    head, own = (next(line for line in page if start in line) for start in ("QUEUES", "exports"))
    below = page[page.index(f"  sqs/{url}") + 1]
    assert [line.split()[-6] for line in (own, below)] == ["3", "12"]
    assert head.index("ready") + 5 == own.index("3") + 1 == below.index("12") + 2


@given(st.text(max_size=20))
def test_hostile_names_cannot_move_the_cursor(name: str) -> None:
    """Whatever stands in a name, an error or a note: as many lines as for one of letters, of printable characters."""
    assert all(line.isprintable() for line in lines(name))
    if path([name]) == name:  # else it is quoted where it stands alone, and so longer there than elsewhere
        assert len(lines(name)) == len(lines("a" * len(printable(name))))


def test_a_note_is_told_and_is_no_finding() -> None:
    """What a collector could not see is said, and the verdict stays fine."""
    hand = HandClock()
    found = report(board(USE(0.5, "database"), hand=hand, notes=(Note("half is hidden").text,)), clock=hand.clock)
    assert "half is hidden" in text(found)
    assert found.verdict is Verdict.FINE
    assert not [f for f in found.findings if isinstance(f, Finding)]


def test_withheld_numbers_are_no_good_news() -> None:
    """A standby that is far behind leaves us blind, and the report says why instead of "nothing is over its limit"."""
    hand = HandClock()
    made = Board()
    note = "the standby is ten hours behind"
    made.publish({Key("database", "jobs"): State(15, 15, notes=(note,), polls=1, taken_at=hand.wall)})
    found = report(made, clock=hand.clock)
    assert found.verdict is Verdict.BLIND
    assert note in text(found)
    assert "NOTHING IS OVER" not in text(found)


def test_a_named_queue_is_there_while_nobody_knows_anything_of_it() -> None:
    """Each driver's named queues have a row before the first answer, also those for which nothing else is set."""
    redis = {"driver": "redis", "prefix": "", "retry_after": None, "queues": {"mail": {"connection": "second"}}}
    connections = {
        "database": {"driver": "database", "dsn": "host=nowhere.invalid", "queues": {"default": None}},
        "redis": redis,
        "sqs": {"driver": "sqs", "region": "eu-west-1", "queues": {"images": None}},
    }
    said = text(report(app.build(config.parse({"connections": connections})).board))
    rows = [line.split() for line in said.splitlines()]
    for name in ("database/default", "second/mail", "sqs/images"):
        assert [name, *"------"] in rows


def test_age_is_that_of_the_numbers_that_are_looked_at() -> None:
    """A source is as old as the answer to its most important question, and a stretched pause is told."""
    hand = HandClock()
    made = Board()
    old = State(15, 223, taken_at=hand.wall - 200, good_until=hand.mono + 1, polls=1, duration=1.9)
    new = State(15, 15, taken_at=hand.wall - 3, good_until=hand.mono + 1, polls=1)
    made.publish({Key("database", "jobs"): old, Key("database", "activity"): new})
    said = text(report(made, clock=hand.clock))
    assert "database 3m 20s ago" in said
    assert "asked every 3m 43s instead of 15s" in said


def test_small_values_are_not_worth_a_word() -> None:
    """A table with a hundred dead tuples is over its trigger of fifty all day long, and healthy."""
    limit = Limit(50, "{value} dead", "Dead", soon=0.8, least=10_000)
    dead = Metric("laravel_queue_dead_tuples", "Dead.", ("table",), limit=limit)
    assert findings(dead(9_999, "jobs")) == []
    assert findings(dead(10_001, "jobs")) == [("jobs", "10,001 dead", True)]


def test_names_that_one_could_not_see_are_quoted() -> None:
    """A queue without a name, or with spaces at its end, is told apart from the one that it looks like."""
    assert path(("database", "default")) == "database/default"
    assert path(("database", "")) == "database/''"
    assert path(("database", "default  ")) == "database/'default  '"


def test_what_is_in_doubt_is_not_called_well() -> None:
    """An answer that may not be about what was meant is no reason for an alarm, and none to say that all is well."""
    hand = HandClock()
    said = text(report(board(hand=hand, doubted=True), clock=hand.clock))
    assert said.startswith("NOTHING IS OVER ITS LIMIT (but what does database/jobs look at?)\n")
    assert report(board(hand=hand, doubted=True), clock=hand.clock).verdict is Verdict.FINE


def test_what_was_asked_for_and_is_not_there_makes_blind() -> None:
    """Whichever question it is: who named it relies on it."""
    hand = HandClock()
    made = board(hand=hand)
    for reason, verdict in (("not_found", Verdict.BLIND), ("timeout", Verdict.FINE)):
        failed = State(15, 15, polls=1, streak=1, reason=reason, error="no")  # type: ignore[arg-type]
        made.publish({Key("database", "horizon"): failed})
        assert report(made, clock=hand.clock).verdict is verdict


def test_a_note_hides_no_silence() -> None:
    """A collector that said something with its last answer, and has been silent since, is told to be silent."""
    hand = HandClock()
    made = board(hand=hand)
    old = State(15, 15, notes=("a right is missing",), polls=1, taken_at=hand.wall - 900, good_until=hand.mono - 1)
    made.publish({Key("database", "locks"): old})
    said = text(report(made, clock=hand.clock))
    assert "a right is missing" in said
    assert "silent for 15m; nothing of it is shown" in said
