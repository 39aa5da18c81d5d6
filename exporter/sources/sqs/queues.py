"""The queues: one request for each, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ... import queues
from ...errors import SourceError
from ...model import Metric, Note, Sample
from ...source import Result
from ...timing import Deadline
from . import errors, metrics, names, parts
from .attributes import Queue, read
from .names import Place
from .session import Counts, Session

PAGE = 1000  # queues; without a size of the page ListQueues would end after one
MOST_PAGES = 100
LIVING = 0.7  # share of a poll's time for the queues; what is left is for their dead-letter queues


class Raw(NamedTuple):
    """What a poll brought."""

    mono: float  # when it began
    wall: float
    watched: Mapping[str, str]  # queue → URL, or name where no URL is known; those without an answer as well
    answers: Mapping[str, Queue]
    dead: Mapping[str, Queue]  # dead-letter queues by ARN
    targets: frozenset[str]  # ARNs of dead-letter queues, those of queues without an answer now as well
    denied: frozenset[str]  # queues, and dead-letter queues by ARN, that we may not look into
    failures: tuple[SourceError, ...]
    dropped: int  # queues that earlier answers had too many


class Queues:
    """GetQueueAttributes for the queues of the settings, for those that are found, and for their dead-letter queues."""

    name = "queues"
    metrics: tuple[Metric, ...] = (
        queues.JOBS,
        queues.RETRY_AFTER,
        queues.TARGET_WAIT,
        queues.QUEUES,
        queues.DROPPED,
        metrics.QUEUE_INFO,
        metrics.DEAD_LETTERS,
        metrics.DEAD_LETTER_INFO,
    )

    def __init__(self, session: Session) -> None:
        self.session, self.settings = session, session.settings
        self.interval = self.settings.interval
        self.named = {queue: self.settings.address_of(queue) for queue in self.settings.queues}
        self.found: dict[str, str] = {}  # queue → URL, as ListQueues said last
        self.urls: dict[str, str] = {}  # name in SQS → URL, as GetQueueUrl said
        self.dropped = 0
        self.targets: dict[str, str] = {}  # queue → ARN of its dead-letter queue, as it said last
        self.asker = parts.Asker[str]()  # for queues
        self.asker_of_lists, self.asker_of_the_dead = parts.Asker[str](), parts.Asker[str]()

    def fetch(self, deadline: Deadline) -> Raw:
        asking, living = parts.asking(deadline), parts.asking(deadline, LIVING)
        mono, wall = self.session.clock.mono(), self.session.clock.wall()
        self.session.ready("sqs", map(self.settings.place_of, self.named.values()), living)
        lost = self._look_around(living)
        watched = self.found | self.named
        found, failures = self.asker.each(
            watched, lambda queue, left: self._queue(queue, watched[queue], left), living, self.named
        )
        if failures and not found:
            raise self._whole([*failures.values(), *lost])
        answers = {queue: answer for queue, answer in found.items() if answer is not None}
        watched = {queue: url for queue, url in watched.items() if queue in answers or queue not in found}
        dead, unseen = self._dead_letters(watched, answers, asking)
        told = (*lost, *failures.values(), *unseen.values())
        targets = frozenset(self.targets.values())
        return Raw(mono, wall, watched, answers, dead, targets, denied(failures) | denied(unseen), told, self.dropped)

    def _whole(self, failures: list[SourceError]) -> SourceError:
        """The failure of all. If credentials are refused anywhere, the next question looks for others."""
        if any(failure.reason == "auth" for failure in failures):
            self.session.aws.close()
        return parts.whole(failures, everywhere=True)

    def _look_around(self, asking: Deadline) -> list[SourceError]:
        """Find queues by the beginning of their names. If that fails, those that were found before are asked."""
        if self.settings.discover is None:
            return []
        begins = self.settings.discover
        lists, failures = self.asker_of_lists.each([begins], self._listed, asking)
        if begins not in lists:
            if not (self.found or self.named):
                raise self._whole([*failures.values()])
            return [*failures.values()]
        urls = lists[begins]
        found = {names.unsuffixed(names.sqs_name(url), self.settings.suffix): url for url in urls}
        here = {*map(self.settings.identity_of, self.named.values())}  # of a queue without a URL its name
        self.found = {
            queue: url
            for queue, url in found.items()
            if queue and not {self.settings.identity_of(url), names.sqs_name(url)} & here
        }
        if any(found):
            return []
        which = f"no queue has a name that begins with {begins!r}" if begins else "there is no queue"
        if urls:
            which = f"of {len(urls)} queues that were found none has a name that ends in {self.settings.suffix!r}"
        return [SourceError("not_found", which)]

    def _listed(self, begins: str, asking: Deadline) -> list[str]:
        """The URLs of all queues whose names in SQS begin so."""
        place = Place(self.settings.home, self.settings.place_of(self.settings.prefix or "").endpoint)
        how: dict[str, Any] = {"MaxResults": PAGE}
        if begins:
            how["QueueNamePrefix"] = begins
        with errors.reading("ListQueues"):
            pages = self.session.pages("sqs", place, "ListQueues", asking, MOST_PAGES, **how)
            return [_url(said) for page in pages for said in page.get("QueueUrls", [])]

    def _queue(self, queue: str, address: str, deadline: Deadline) -> Queue | None:
        """One queue; None if it was found and is gone since."""
        try:
            return self._attributes(address, deadline)
        except SourceError as failure:
            if failure.reason == "not_found":
                self.urls.pop(address, None)
                if queue not in self.named:
                    return None
            raise parts.of(queue, failure) from None

    def _attributes(self, address: str, deadline: Deadline) -> Queue:
        place = self.settings.place_of(address)
        url = self.urls.get(address, address)
        if not names.is_url(url):
            answer = self.session.ask("sqs", place, "GetQueueUrl", deadline, QueueName=address)
            url = self.urls[address] = _url(answer.get("QueueUrl"))
        answer = self.session.ask("sqs", place, "GetQueueAttributes", deadline, QueueUrl=url, AttributeNames=["All"])
        return read(answer.get("Attributes", {}))

    def _dead_letters(
        self, watched: Mapping[str, str], answers: Mapping[str, Queue], asking: Deadline
    ) -> tuple[dict[str, Queue], dict[str, SourceError]]:
        """The dead-letter queues, each once, if it has not been asked as a queue already."""
        self.targets = {queue: arn for queue, arn in self.targets.items() if queue in watched}
        self.targets |= {queue: answer.dead_letter_arn for queue, answer in answers.items()}
        known = {answer.arn: answer for answer in answers.values()}
        urls = {}
        for queue, answer in answers.items():
            if (there := answer.dead_letters) and not answer.foreign and answer.dead_letter_arn not in known:
                address = self.urls.get(watched[queue], watched[queue])
                urls[answer.dead_letter_arn] = names.beside(address, there)

        def ask(arn: str, deadline: Deadline) -> Queue:
            try:
                return self._attributes(urls[arn], deadline)
            except SourceError as failure:
                raise parts.of(f"dead-letter queue {names.sqs_name(urls[arn])}", failure) from None

        dead, unseen = self.asker_of_the_dead.each(urls, ask, asking)
        return known | dead, unseen

    def measure(self, raw: Raw, now: float) -> Iterable[Result]:
        buried = {  # one whose messages go on to yet another queue has workers of its own
            queue
            for queue, answer in raw.answers.items()
            if answer.arn in raw.targets and not answer.dead_letter_arn and queue not in self.named
        }
        answers = {queue: answer for queue, answer in raw.answers.items() if queue not in buried}
        sizes = {queue: answer.messages for queue, answer in answers.items() if queue not in self.named}
        shown = self.session.remembered.shown(sizes, now)
        by_name: dict[str, list[Queue]] = {}
        for queue, answer in answers.items():
            by_name.setdefault(shown[queue], []).append(answer)
        own = {name: together[0] for name, together in by_name.items() if name != queues.OTHER}
        if any(shown.get(queue) != queue for queue in raw.watched.keys() - raw.answers.keys() - raw.denied):
            by_name.pop(queues.OTHER, None)  # a sum without one of its parts is wrong; what is denied is no part
        self._tell(raw, by_name, shown)
        self.dropped = raw.dropped + len(answers) - len(own)
        name = self.session.name
        yield queues.QUEUES(len(raw.watched) - len(buried), name)
        yield queues.DROPPED(self.dropped, name, self.name, "queue")
        for queue, together in by_name.items():
            yield from self._jobs(queue, together)
            yield from self._dead(queue, together, raw)
        for queue, answer in own.items():
            yield from self._kind(queue, answer)
        yield from self._same(answers)
        yield from parts.told(raw.failures)

    def _same(self, answers: Mapping[str, Queue]) -> Iterator[Note]:
        """Named queues that turned out to be one: their numbers are true, but not their sum."""
        by_arn: dict[str, str] = {}
        for queue in (queue for queue in self.named if queue in answers):
            if (first := by_arn.setdefault(answers[queue].arn, queue)) != queue:
                yield Note(f"{queue} is the same queue as {first}: name it once, or it is counted twice")

    def _tell(self, raw: Raw, by_name: Mapping[str, list[Queue]], shown: Mapping[str, str]) -> None:
        """Tell the other collectors what there is; of those that did not answer, where they are."""
        ready = {name: sum(each.ready for each in together) for name, together in by_name.items()}
        reserved = {name: sum(each.reserved for each in together) for name, together in by_name.items()}
        addresses = {queue: self.urls.get(url, url) for queue, url in raw.watched.items()}
        self.session.addresses = {queue: url for queue, url in addresses.items() if shown.get(queue) == queue}
        self.session.tell(Counts(raw.mono, raw.wall, ready, reserved))

    def _jobs(self, queue: str, together: list[Queue]) -> Iterator[Sample]:
        at = (self.session.name, queue)
        for state, counts in (
            ("ready", [each.ready for each in together]),
            ("delayed", [each.delayed for each in together]),
            ("reserved", [each.reserved for each in together]),
        ):
            yield queues.JOBS(sum(counts), *at, state)

    def _kind(self, queue: str, answer: Queue) -> Iterator[Sample]:
        at = (self.session.name, queue)
        yield queues.RETRY_AFTER(answer.visibility_timeout, *at)
        fifo = str(answer.fifo).lower()
        yield metrics.QUEUE_INFO(1, *at, fifo, answer.deduplication_scope, answer.throughput_limit)
        if queue not in self.named and self.settings.target_wait is not None:
            yield queues.TARGET_WAIT(self.settings.target_wait, *at)

    def _dead(self, queue: str, together: list[Queue], raw: Raw) -> Iterator[Sample | Note]:
        """What lies in the dead-letter queues of one queue, or of all those that are `other`."""
        at = (self.session.name, queue)
        for answer in together if queue != queues.OTHER else ():
            if there := answer.dead_letters:
                yield metrics.DEAD_LETTER_INFO(1, *at, there.name, str(answer.foreign).lower())
                if answer.foreign:
                    yield Note(f"{queue}: its dead-letter queue is in another account, so nobody looks into it")
        expected = {each.dead_letter_arn for each in together if each.dead_letters and not each.foreign} - raw.denied
        if expected and expected <= raw.dead.keys():
            yield metrics.DEAD_LETTERS(sum(raw.dead[arn].messages for arn in expected), *at)


def _url(said: object) -> str:
    """A queue's URL. Raises `SourceError`."""
    if not isinstance(said, str) or not names.is_url(said):
        raise SourceError("malformed", "the answer has no URL of a queue")
    return said


def denied(failures: Mapping[str, SourceError]) -> frozenset[str]:
    """Those that we may not look into, now and until somebody allows it."""
    return frozenset(part for part, failure in failures.items() if failure.reason == "permission")
