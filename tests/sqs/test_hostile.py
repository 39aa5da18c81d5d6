"""What an account, a network or an environment can do to us, beyond failing."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Event, Thread, active_count
from threading import enumerate as threads

import pytest

from exporter.errors import SourceError
from exporter.sources.sqs import errors, names
from exporter.sources.sqs.aws import LARGEST, Aws, Request, Service
from exporter.sources.sqs.names import Place
from exporter.sources.sqs.parts import LANES, Asker
from exporter.sources.sqs.queues import Queues
from exporter.sources.sqs.settings import Queue, Sqs
from exporter.timing import Deadline

from ..patience import until
from ..world import poll, state, value
from .cloud import World, about, error
from .watching import watch


def within(seconds: float) -> Deadline:
    """A deadline on the real clock."""
    return Deadline(time.monotonic() + seconds)


def test_many_parts_are_asked_at_once() -> None:
    """As many as there are lanes are under way together, or a thousand queues would take a thousand round trips."""
    together = Barrier(LANES)
    answers, failures = Asker[int]().each(range(LANES), lambda part, _: together.wait(5) >= 0, within(20))
    assert (len(answers), failures) == (LANES, {})


def test_a_lane_that_breaks_off_hides_no_part() -> None:
    """A bug of ours in one answer is that part's failure, and is in the log; the others are asked."""

    def ask(part: str, deadline: Deadline) -> str:
        if part == "b":
            raise SourceError("throttled", part)
        return part

    answers, failures = Asker[str](lambda: 0).each("abc", ask, within(5))
    assert (list(answers), [*failures]) == (["a", "c"], ["b"])


def test_no_part_at_all_asks_for_no_time() -> None:
    """There are often no dead-letter queues, and the time may be used up by then: what was answered stands."""
    assert Asker[str]().each((), lambda part, _: part, within(-1)) == ({}, {})
    answers, failures = Asker[str]().each("ab", lambda part, _: part, within(-1))
    assert (answers, [failure.reason for failure in failures.values()]) == ({}, ["timeout", "timeout"])


def test_case_59_more_queues_than_there_is_time_for(world: World) -> None:
    """Case 59: where the time ends before the last of many queues, those that answered are shown; all are counted."""
    for number in range(40):
        world.queue(f"q{number:02}", 1)
    world.cloud.delay = lambda asked: 0.5 if asked.operation == "GetQueueAttributes" else 0.0
    with watch(world, discover=True, timeout="5s") as app:
        poll(app, "queues", source="sqs")
        assert value(app, "queues", connection="sqs") == 40
        assert state(app, "queues", "sqs").up
        page = app.exposition.page("text").decode()
        assert 8 <= page.count('state="ready"') < 40


class Endless(Thread):
    """A server that answers with a body that has no end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.sent, self.hung_up = 0, Event()
        self.start()

    def run(self) -> None:
        """Send until the client hangs up."""
        client, _ = self.listener.accept()
        client.recv(65536)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n\r\n")
        with client, self.listener, suppress(OSError):
            while True:
                self.sent += client.send(b" " * 65536)
        self.hung_up.set()


def test_an_answer_without_an_end_is_cut_off() -> None:
    """It is read up to a size, and then the connection is closed: memory and threads stay bounded."""
    far = Endless()
    aws = Aws(settings_at(far.url))
    with pytest.raises(SourceError, match="cannot be read"):
        aws.ask(Service("sqs", Place("eu-west-1", far.url)), "ListQueues", within(20))
    assert far.hung_up.wait(10)
    assert far.sent < 2 * LARGEST
    assert not [thread for thread in threads() if isinstance(thread, Request)]


def settings_at(url: str) -> Sqs:
    """Settings of a connection at this endpoint."""
    return Sqs(driver="sqs", region="eu-west-1", endpoint_url=url, timeout=30.0, queues={"mail": Queue()})


def test_a_search_for_credentials_that_hangs_holds_nobody(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails in time, and whoever closes the source afterwards does not wait for it either."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = cat {gate}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    began = time.monotonic()
    with watch(world, queues={"mail": {}}, timeout="1s") as app:
        poll(app, "queues", source="sqs")
        said = state(app, "queues", "sqs")
        assert (said.reason, said.error) == ("timeout", "credentials: no answer in time")  # once, not for each queue
    assert time.monotonic() - began < 5
    with gate.open("w"):
        pass  # so that `cat` ends
    until(lambda: not [thread for thread in threads() if isinstance(thread, Request)])


@pytest.mark.parametrize(
    "url", ["socks5h://me:s3cret@127.0.0.1:9", "HTTP://me:s3cret@127.0.0.1:9", "http://me:s3c/ret@127.0.0.1:9"]
)
def test_a_proxys_password_is_repeated_nowhere(world: World, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the reason, whatever botocore and urllib3 make of the address."""
    monkeypatch.setenv("http_proxy", url)
    monkeypatch.setenv("no_proxy", "")
    with watch(world, queues={"mail": {}}, timeout="2s") as app:
        poll(app, "queues", source="sqs")
        said = state(app, "queues", "sqs")
        assert not said.up
        assert "s3c" not in said.error
    assert "s3c" not in errors.short(f"Failed to connect to proxy URL: {url}")


@pytest.mark.parametrize(
    "text", ["http://[::1/1/mail", "http://a\u2100b/1/mail", "http://h:99999/1/mail", "http://h:x/1/m", "http://h/mail"]
)
def test_what_is_no_url_of_a_queue(text: str) -> None:
    """Nothing that cannot be asked is taken for an address, and nothing breaks on it."""
    assert not names.is_url(text)


@pytest.mark.parametrize(
    "said",
    [{"QueueArn": 5}, {"QueueArn": []}, {"DeduplicationScope": 5}, {"ApproximateNumberOfMessages": True}],
)
def test_attributes_of_the_wrong_kind(world: World, said: dict[str, object]) -> None:
    """They are that queue's `malformed`, not a bug of ours, and hide no other queue."""
    url, _ = world.queue("mail", 1), world.queue("exports", 2)
    with world.unseen():
        usual = world.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    world.cloud.mood = about("GetQueueAttributes", "/mail", ("200 OK", {"Attributes": usual | said}))
    with watch(world, queues={"mail": {}, "exports": {}}) as app:
        poll(app, "queues", source="sqs")
        assert value(app, "jobs", queue="exports", state="ready") == 2
        assert value(app, "source_errors_total", collector="queues", reason="malformed") == 1
        assert value(app, "source_errors_total", collector="queues", reason="unexpected") == 0


def test_a_found_dead_letter_queue_stays_one_while_its_source_is_silent(world: World) -> None:
    """It does not turn into a queue that is late, for what its source said before is remembered."""
    dead = world.queue("mail-dead", 3)
    arn = f"arn:aws:sqs:eu-west-1:123456789012:{names.sqs_name(dead)}"
    world.queue("mail", 1, RedrivePolicy={"deadLetterTargetArn": arn, "maxReceiveCount": "3"})
    world.queue("exports", 1)
    with watch(world, discover=True, target_wait="30s") as app:
        poll(app, "queues", source="sqs")
        assert value(app, "queues", connection="sqs") == 2
        world.cloud.mood = about("GetQueueAttributes", '/mail"', error("ThrottlingException"))
        poll(app, "queues", source="sqs")
        assert value(app, "jobs", queue="mail", state="ready") is None
        assert value(app, "queues", connection="sqs") == 2
        assert value(app, "jobs", queue="mail-dead", state="ready") is None


def test_case_58_no_found_queue_has_the_suffix(world: World) -> None:
    """Case 58: queues are found, and none can be Laravel's, as none ends in the suffix: that is said."""
    world.queue("app-a")
    world.queue("app-b")
    with watch(world, discover="app", suffix="-production") as app:
        poll(app, "queues", source="sqs")
        said = (*state(app, "queues", "sqs").notes, state(app, "queues", "sqs").error)
        assert any("of 2 queues that were found none has a name that ends in '-production'" in each for each in said)


def test_a_page_that_leads_back_ends_the_list(world: World) -> None:
    """Whoever gives the same token again and again is not followed until the time is up."""
    page = {"QueueUrls": [f"{world.aws.prefix}/mail"], "NextToken": "again"}
    world.cloud.mood = lambda asked: ("200 OK", page) if asked.operation == "ListQueues" else None
    with watch(world, discover=True) as app:
        poll(app, "queues", source="sqs")
        assert state(app, "queues", "sqs").reason == "malformed"
        assert world.cloud.operations().count("ListQueues") == 2


def test_rotated_credentials_are_found_although_another_queue_is_dead(world: World) -> None:
    """One refusal is enough to look for credentials anew, where nobody else answers either."""
    world.queue("mail", 1)
    dead = "http://127.0.0.1:9/123456789012/dead"
    refused = error("InvalidClientTokenId")
    with watch(world, queues={"mail": {}, dead: {}}, endpoint_url=None, timeout="20s") as app:
        collector = app.pollers[0].turns[0].collector
        assert isinstance(collector, Queues)
        session = collector.session
        poll(app, "queues", source="sqs")
        before = session.aws._session
        world.cloud.mood = lambda asked: refused
        poll(app, "queues", source="sqs")
        assert session.aws._session is not before


def test_one_queue_under_two_names_is_told(world: World) -> None:
    """The settings cannot know it of two hosts; the queue's own ARN tells."""
    world.queue("mail", 5)
    other = f"{world.aws.prefix.replace('127.0.0.1', 'localhost')}/mail"
    with watch(world, queues={"mail": {}, other: {}}, endpoint_url=None) as app:
        poll(app, "queues", source="sqs")
        assert any("is the same queue as mail" in note for note in state(app, "queues", "sqs").notes)


def test_threads_end() -> None:
    """After all of this no request is still under way."""
    until(lambda: active_count() < 40)


@pytest.mark.parametrize(
    "answer",
    [b"Content-Length: 99\r\n\r\n", b"Content-Length: 99\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}"],
)
def test_an_answer_that_stops_in_the_middle(world: World, answer: bytes) -> None:
    """The connection ends before the answer does: that is said, and no thread of ours dies of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_once() -> None:
            """Promise more than comes."""
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n" + answer)

        Thread(target=answer_once, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with watch(world, endpoint_url=url, queues={"mail": {}}) as app:
            poll(app, "queues", source="sqs")
            assert state(app, "queues", "sqs").reason == "connect", state(app, "queues", "sqs").error
