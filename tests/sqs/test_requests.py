"""One request to AWS: its limits of time, and what is said of a network that fails."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from threading import Thread

import pytest
import trustme

from exporter.errors import Reason, SourceError
from exporter.sources.sqs.aws import MOST_LEFT_BEHIND, Aws, Service
from exporter.sources.sqs.names import Place
from exporter.sources.sqs.settings import Queue, Sqs
from exporter.timing import Deadline

from ..conformance.babbler import Babbler
from ..database.proxies import Absent, Deaf, Peer, Proxy, Stranger
from .cloud import World

GET = "GetQueueAttributes"


def settings(timeout: float = 2.0) -> Sqs:
    """Settings that only matter for their timeout."""
    return Sqs(driver="sqs", region="eu-west-1", timeout=timeout, queues={"mail": Queue()})


def within(seconds: float) -> Deadline:
    """A deadline on the real clock."""
    return Deadline(time.monotonic() + seconds)


def ask(aws: Aws, url: str, deadline: Deadline, queue: str = "mail") -> object:
    """One question to an endpoint."""
    service = Service("sqs", Place("eu-west-1", url))
    return aws.ask(service, GET, deadline, QueueUrl=f"{url}/123456789012/{queue}", AttributeNames=["All"])


def failure(url: str, seconds: float = 3.0) -> SourceError:
    """How a question to this endpoint fails."""
    with pytest.raises(SourceError) as caught:
        ask(Aws(settings()), url, within(seconds))
    return caught.value


def test_botocore_repeats_nothing_by_itself(world: World) -> None:
    """What its own retries would do behind our back: one question of ours makes one request."""
    world.cloud.mood = lambda asked: ("503 Service Unavailable", b"")
    aws = Aws(settings())
    with pytest.raises(SourceError):
        ask(aws, world.aws.url, within(5))
    assert len(world.cloud.asked) == 1
    assert aws.requests.counts()[GET, "throttled"] == 1


@pytest.mark.parametrize(("peer", "reason"), [(Deaf, "timeout"), (Absent, "timeout"), (Babbler, "malformed")])
def test_peers_that_are_no_aws(peer: type[Peer], reason: Reason) -> None:
    """Deaf, behind a firewall that drops all, or speaking something else: each in time, and by name."""
    with peer() as far:
        began = time.monotonic()
        said = failure(f"http://127.0.0.1:{far.port}", 0.8)
        assert said.reason == reason
        assert time.monotonic() - began < 1.8


def test_a_peer_that_speaks_no_http() -> None:
    """An SSH server on that port is no AWS."""
    with Stranger(b"SSH-2.0-OpenSSH_9.2\r\n") as far:
        assert failure(f"http://127.0.0.1:{far.port}").reason in ("malformed", "connect")


def test_nobody_listens() -> None:
    """A closed port is told apart from silence, and is not knocked at three times."""
    with Deaf() as far:
        pass
    said = failure(f"http://127.0.0.1:{far.port}")
    assert said.reason == "refused"
    assert "0x" not in str(said)


def test_a_name_without_an_address() -> None:
    """A region that is misspelt has no host."""
    assert failure("http://sqs.invalid").reason == "dns"


def test_a_certificate_that_nobody_knows(tmp_path: object) -> None:
    """An endpoint whose certificate our system does not trust is not asked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            for _ in range(3):
                try:
                    context.wrap_socket(listener.accept()[0], server_side=True).close()
                except OSError:
                    continue

        Thread(target=accept, daemon=True).start()
        assert failure(f"https://127.0.0.1:{listener.getsockname()[1]}").reason == "tls"


def test_a_connection_that_is_reset_is_made_anew(world: World) -> None:
    """A proxy or a load balancer that closes idle connections costs nothing but another try."""
    world.queue("mail", 1)
    with Proxy(("127.0.0.1", int(world.aws.url.rpartition(":")[2]))) as proxy:
        aws = Aws(settings())
        url = f"http://127.0.0.1:{proxy.port}"
        for reset in (True, False):
            assert ask(aws, url, within(3))
            proxy.cut(reset=reset)
        assert ask(aws, url, within(3))
        assert aws.requests.counts()[GET, "ok"] == 3


def test_a_far_side_that_falls_silent_leaves_a_bounded_number_of_threads(world: World) -> None:
    """Requests without an end are left behind: one for each question, and a bounded number in each place."""
    world.queue("mail", 1)
    with Proxy(("127.0.0.1", int(world.aws.url.rpartition(":")[2]))) as proxy:
        aws, url = Aws(settings(30.0)), f"http://127.0.0.1:{proxy.port}"
        assert ask(aws, url, within(3))
        proxy.swallow()
        for number in range(MOST_LEFT_BEHIND):
            with pytest.raises(SourceError, match="no answer in time"):
                ask(aws, url, within(0.02), f"queue-{number}")
            with pytest.raises(SourceError, match="still no answer since an earlier poll"):
                ask(aws, url, within(0.02), f"queue-{number}")
        with pytest.raises(SourceError, match="too many requests are still without an answer"):
            ask(aws, url, within(0.02), "one-more")
        assert ask(aws, world.aws.url, within(3))  # another endpoint is another matter
        proxy.heal()
        for request in list(aws._left_behind.values()):
            request.join(5)
        assert ask(aws, url, within(3))


def test_no_log_has_a_signature_or_a_token(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even at debug: botocore would log the request that it signs, with the session's token in it."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-of-a-session")
    caplog.set_level(logging.DEBUG)
    world.queue("mail", 1)
    assert ask(Aws(settings()), world.aws.url, within(3))
    assert world.cloud.asked[-1].headers["x_amz_security_token"] == "a-token-of-a-session"
    assert not [record for record in caplog.records if "a-token-of-a-session" in record.getMessage()]
    assert not [record for record in caplog.records if record.name.startswith(("botocore", "urllib3"))]
