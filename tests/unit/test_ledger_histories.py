"""The ledger against histories of a table of which all is known: it counts what happened, or less, never more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.ledger import Ledger, OfClass, OfQueue

from .readings import RETRY_AFTER, SLOW, job, ledger, reading


@dataclass
class Row:
    """A job in the table."""

    attempts: int = 0
    reserved_at: int | None = None


@dataclass
class Table:
    """A jobs table with Laravel's statements, who looks at it, and what really happened."""

    book: Ledger = field(default_factory=ledger)
    now: int = 0
    rows: dict[int, Row] = field(default_factory=dict)
    last_id: int = 0
    repeated: int = 0
    lengths: list[int] = field(default_factory=list)  # of reservations that are over

    def push(self) -> None:
        """A new job; a release makes one as well."""
        self.last_id += 1
        self.rows[self.last_id] = Row()

    def pop(self) -> None:
        """The first job that may be taken; an expired one before a younger one that waits."""
        for row in self.rows.values():
            if row.reserved_at is None or row.reserved_at <= self.now - RETRY_AFTER:
                if row.reserved_at is not None:
                    self.repeated += 1
                    self.lengths.append(self.now - row.reserved_at)
                row.attempts, row.reserved_at = row.attempts + 1, self.now
                return

    def release(self) -> None:
        """The first worker puts its job back: a new id, the same attempts."""
        attempts = self.delete()
        if attempts is not None:
            self.push()
            self.rows[self.last_id].attempts = attempts

    def delete(self) -> int | None:
        """The job that was taken first is done. Returns its attempts."""
        for id_, row in self.rows.items():
            if row.reserved_at is not None:
                self.lengths.append(self.now - row.reserved_at)
                return self.rows.pop(id_).attempts
        return None

    def look(self, *, is_pass: bool = True) -> None:
        """Read what is held and what was known to be, or what is watched."""
        held = {id_: row.reserved_at for id_, row in self.rows.items() if row.reserved_at is not None}
        known = self.book.held if is_pass else self.book.watched
        asked = {key.id for key in known} | (held.keys() if is_pass else set())
        rows = (job(id_, at, self.rows[id_].attempts) for id_, at in held.items() if id_ in asked)
        self.book = self.book.after(reading(self.now, *rows, asked=asked, is_pass=is_pass))

    def watch(self) -> None:
        """Look at those alone that are held for long."""
        self.look(is_pass=False)

    @property
    def held(self) -> list[int]:
        """For how long each job that is held has been."""
        return [self.now - row.reserved_at for row in self.rows.values() if row.reserved_at is not None]

    @property
    def long(self) -> int:
        """How many reservations have outlasted half of retry_after."""
        return sum(length > RETRY_AFTER / 2 for length in (*self.lengths, *self.held))


ACTIONS: list[Callable[[Table], object]] = [
    Table.push, Table.pop, Table.release, Table.delete, Table.look, Table.watch,
]  # fmt: skip
HISTORIES = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from([0, 1, 15, 30, 100])), max_size=60)
History = list[tuple[Callable[[Table], object], int]]  # what happens, and seconds until the next


def true(table: Table) -> tuple[int, ...]:
    """What happened: handed out again, long, over, seconds of those that are over."""
    return table.repeated, table.long, len(table.lengths), sum(table.lengths)


def counted(table: Table) -> tuple[int, ...]:
    """The same as far as the ledger knows."""
    of = table.book.queues.get("default", OfQueue())
    slow = table.book.classes.get(("default", SLOW), OfClass())
    return of.repeated, slow.long, int(of.lengths), int(of.lengths.sum)


@given(HISTORIES)
def test_nothing_is_counted_that_did_not_happen(history: History) -> None:
    """However the table is used and whenever it is looked at: each count is at most the truth, and none ever falls."""
    table = Table()
    for act, later in history:
        before = counted(table)
        act(table)
        assert all(a <= b <= c for a, b, c in zip(before, counted(table), true(table), strict=True))
        table.now += later


@given(HISTORIES)
def test_who_looks_before_and_after_each_change_misses_nothing(history: History) -> None:
    """With a look just before and after everything that happens, the counts are the truth."""
    table = Table()
    for act, later in history:
        table.look()
        act(table)
        table.look()
        assert counted(table) == true(table)
        table.now += later
