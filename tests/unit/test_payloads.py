"""What is read from a payload, whole or cut, real or made up to confuse us."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exporter.sources.payloads import LONGEST, READ, READ_REORDERED, Payload, read

ROWS = [json.loads(line) for line in (Path(__file__).parent / "payloads.jsonl").read_text().splitlines() if line]
REAL = [str(row["payload"]) for row in ROWS]  # written by Laravel 8.83, 11.29, 12.67 and 13.26
NOBODY = Payload(None, None)
JOBS = "App\\Jobs\\"
CLOSURE = "Illuminate\\Queue\\CallQueuedClosure"
COMMAND = "Illuminate\\Foundation\\Console\\QueuedCommand"
TRUTH = {
    "ImportCsv": Payload(f"{JOBS}ImportCsv", 120),  # the one that has a timeout of its own
    **{
        name: Payload(f"{JOBS}{name}", None)
        for name in ("SendInvoice", "SyncInventory", "SecretJob", "UniqueJob", "BatchJob", "StringJob")
    },
}


def truth(payload: str) -> Payload:
    """What a person would say of a real payload."""
    if '"displayName":"Closure (' in payload:
        return Payload(CLOSURE, None)
    return next((said for name, said in TRUTH.items() if f'"displayName":"App\\\\Jobs\\\\{name}"' in payload), NOBODY)


def payload(**members: Any) -> str:
    """A payload with these members, in this order, as PHP writes it."""
    return json.dumps({"uuid": "6120087c-0ffb-4898-a9aa-31bdd83a3065", **members}, separators=(",", ":"))


def named(display_name: str, command_name: str = CLOSURE) -> str | None:
    """The class of a job that calls itself so."""
    return read(payload(displayName=display_name, data={"commandName": command_name, "command": ""})).job_class


def test_there_are_forty_two_real_payloads() -> None:
    """They come from four versions of Laravel, and all but the broken ones are a job of some class."""
    assert len(REAL) == 42
    assert {row["fw"].split(".")[0] for row in ROWS} == {"8", "11", "12", "13"}
    assert [truth(text) for text in REAL].count(NOBODY) == 6


@pytest.mark.parametrize("text", REAL, ids=range(42))
def test_a_real_payload_is_read_right(text: str) -> None:
    """Class and timeout are right from the beginning that is asked for, and wherever else the text breaks off."""
    assert read(text) == read(text[:READ]) == truth(text)
    known = text.find('"commandName"')
    enough = text.find(",", known) + 1 if known > 0 else len(text)
    assert all(read(text[:cut]) == truth(text) for cut in range(enough, len(text)))
    agree(text)


def agree(text: str) -> None:
    """Fails if some beginning of the text says anything else than all of it."""
    whole = read(text)
    for cut in range(len(text)):
        for said, true in zip(read(text[:cut]), whole, strict=True):
            assert said in (None, true), text[:cut]


@pytest.mark.parametrize("text", REAL, ids=range(42))
def test_redis_writes_the_members_in_another_order(text: str) -> None:
    """In whatever order the members come, the whole payload says the same, and a cut one nothing else."""
    try:
        members = list(json.loads(text).items())
    except ValueError:
        return
    chance = random.Random(text)
    for _ in range(5):
        chance.shuffle(members)
        again = json.dumps(dict(members)).replace("/", "\\/")
        assert read(again[:READ_REORDERED]) == truth(text)
        agree(again)


@pytest.mark.parametrize(
    ("display_name", "command_name", "job_class"),
    [
        ("App\\Listeners\\Notify", "Illuminate\\Events\\CallQueuedListener", "App\\Listeners\\Notify"),
        ("Closure (console.php:15)", CLOSURE, CLOSURE),
        ("report 42 - Closure (x.php:1)", CLOSURE, CLOSURE),
        ("report42", CLOSURE, CLOSURE),
        ("mail:send", COMMAND, COMMAND),
        ("inspire", COMMAND, COMMAND),
        ("App\\Jobs\\Sync:42", "App\\Jobs\\Sync", "App\\Jobs\\Sync"),
        ("App\\Jobs\\42", "App\\Jobs\\Sync", "App\\Jobs\\Sync"),
        ("SendInvoice", "SendInvoice", "SendInvoice"),
        ("App\\Tâches\\Été", "App\\Tâches\\Été", "App\\Tâches\\Été"),
        ("Задача 7", "App\\Задачи\\Счёт_2", "App\\Задачи\\Счёт_2"),
        ("", "App\\Jobs\\Sync", "App\\Jobs\\Sync"),
    ],
)  # fmt: skip
def test_a_name_that_is_no_class_folds_to_the_command(display_name: str, command_name: str, job_class: str) -> None:
    """A listener has its own name; a closure, a command or a text with an id in it has that of what runs it."""
    assert named(display_name, command_name) == job_class


@pytest.mark.parametrize(
    "name",
    [
        "App\\Jobs\\\ud800", "App\\Jobs\\\udc00x", "App\\Jobs\\A\0b", "App\\Jobs\\A\n", " App\\Jobs\\A", "App\\\\A",
        "App\\Jobs\\", "App\\Jobs\\A B", "App\\" + "x" * LONGEST,
        "App\\Jobs\\\N{ROCKET}", "\\", 7, None, True, [], {},
    ],
)  # fmt: skip
def test_what_could_break_a_label_is_no_class(name: object) -> None:
    """Half of a surrogate pair, a NUL, a line break, a space or something endless is never a name that we show."""
    assert read(payload(displayName=name, data={"commandName": name})).job_class is None
    assert read(payload(displayName=name, data={"commandName": "App\\Jobs\\A"})).job_class == "App\\Jobs\\A"


def test_the_longest_name() -> None:
    """A class of 255 characters is shown, and found although it is not near the beginning."""
    name = "App\\" + "x" * (LONGEST - 4)
    assert named(name) == name
    assert read(payload(displayName="Closure", timeout=None, data={"commandName": name})[:READ]).job_class == name


def test_one_who_does_not_say_its_name_has_none() -> None:
    """Without `displayName` it may have been cut off, and the command's name would be another one."""
    assert read(payload(data={"commandName": "App\\Jobs\\A"})) == NOBODY


TIMEOUTS = [0, 1, 60, 1.5, -1, -1.5, "90", "0", 2**63 - 1, None]
IN_PHP = """
foreach (json_decode(stream_get_contents(STDIN)) as $timeout) {
    $alarms[] = is_null($timeout) ? null : (float) max($timeout, 0);
}
echo json_encode($alarms);
"""


def test_timeouts_mean_what_they_mean_to_a_worker() -> None:
    """A worker hands `max($timeout, 0)` to its alarm: a number in a text counts, and less than nothing is none."""
    php = subprocess.run(["php", "-r", IN_PHP], input=json.dumps(TIMEOUTS), capture_output=True, text=True, check=True)
    assert [read(payload(timeout=timeout)).timeout for timeout in TIMEOUTS] == json.loads(php.stdout)


@pytest.mark.parametrize(
    "written", ["1e999", "-1e999", "NaN", "Infinity", "-Infinity", "9" * 400, "true", "false", '"1e3"', '""', '"-1"',
                '"soon"', '"9999999999999999999"', '"٣"', "[60]", '{"s":60}', "0x10", "+5", "1_000"],
)  # fmt: skip
def test_a_timeout_that_is_no_number_is_none(written: str) -> None:
    """What no worker could take for seconds is not shown, and takes nothing else with it."""
    said = read(f'{{"displayName":"App\\\\Jobs\\\\A","timeout":{written},"data":{{}}}}')
    assert said == Payload("App\\Jobs\\A", None)


@pytest.mark.parametrize("number", ["120", "1.25", "1e2", "1.5e1", "12e+1", "120  "])
def test_a_number_that_breaks_off_is_not_a_smaller_one(number: str) -> None:
    """Of a number whose end is missing nobody knows how long it is, so it is not there."""
    text = f'{{"displayName":"App\\\\Jobs\\\\A","timeout":{number}'
    start = text.index(number)
    assert {read(text[:cut]).timeout for cut in range(start, len(text) + 1)} == {None}
    assert read(f"{text},").timeout == read(f"{text}}}").timeout == float(number)


@pytest.mark.parametrize("deep", ['{"a":', "[", '{"data":', '{"a":[{"data":'])
def test_deep_nesting_is_survived(deep: str) -> None:
    """What is nested more deeply than anybody can follow ends the reading; what came before it stands."""
    start = '{"displayName":"App\\\\Jobs\\\\A","timeout":5,"data":'
    for times in (10, 300, 5_000):
        assert read(deep * times) == NOBODY
        assert read(start + deep * times) == Payload("App\\Jobs\\A", 5)


def test_of_two_members_the_first_counts() -> None:
    """A name that is given twice means the same in a short beginning and in a long one."""
    agree(
        '{"timeout":5,"displayName":"A\\\\B","displayName":"C\\\\D","timeout":6,"data":{},"data":{"commandName":"X"}}'
    )


@pytest.mark.parametrize(
    "text", ["", " ", "[]", "null", "{", "{}", '{"', "{1:2}", '{"a"}', '{"a":}', "{,}", "\ufeff{}"]
)
def test_what_is_not_json_says_nothing(text: str) -> None:
    """A text that is no object, or hardly begins, is none of Laravel's payloads."""
    assert read(text) == NOBODY


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()))
TELLING = st.sampled_from(["displayName", "timeout", "data", "commandName", "App\\Jobs\\A", "Sync", "60"])
VALUES = st.recursive(LEAVES | TELLING, lambda inner: st.lists(inner) | st.dictionaries(TELLING, inner), max_leaves=12)
OBJECTS = st.dictionaries(TELLING | st.text(), VALUES, max_size=6)
PIECES = st.lists(st.sampled_from([*'{}[]:,"\\ue-1.0', '"displayName":', '"timeout":', '"data":{', '"A\\\\B",', "60"]))


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=())) | PIECES.map("".join).map('{"timeout":6,'.__add__))
@example('{"timeout":1.')
@example('{"timeout":1e')
def test_no_text_is_too_odd(text: str) -> None:
    """Whatever the text, nothing is raised; wherever it is cut, a beginning says nothing else than the whole."""
    agree(text)


@settings(deadline=None, max_examples=50)
@given(OBJECTS, st.sampled_from([None, 1]), st.booleans())
def test_no_payload_is_too_odd(members: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    """The same for whatever is JSON; and what is read of the whole is what its members say."""
    text = json.dumps(members, ensure_ascii=ascii_only, indent=indent)
    agree(text)
    said = read(text)
    data = members.get("data")
    assert said.job_class in (None, members.get("displayName"), isinstance(data, dict) and data.get("commandName"))
    assert said.timeout is None or said.timeout == max(0, float(members["timeout"]))
