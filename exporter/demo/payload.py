"""A job as Laravel writes it into a row: JSON around an object that PHP has serialised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from uuid import UUID

from .plan import Job


def payload(job: Job, queue: str, chance: Random, now: int, delay: int | None = None) -> str:
    """What Laravel 12.67 writes for an object job, in its order of keys."""
    fields = {
        "uuid": identity(chance),
        "displayName": job.name,
        "job": "Illuminate\\Queue\\CallQueuedHandler@call",
        "maxTries": job.tries,
        "maxExceptions": None,
        "failOnTimeout": False,
        "backoff": ",".join(map(str, job.backoff)) or None,
        "timeout": job.timeout,
        "retryUntil": None,
        "data": {"commandName": job.name, "command": command(job, queue, chance, delay), "batchId": None},
        "createdAt": now,
        "delay": delay,
    }
    return json.dumps(fields, separators=(",", ":"))


def copies(job: Job, queue: str, chance: Random, now: int) -> Iterator[str]:
    """Payloads without end, alike but for their uuids: to write a hundred thousand anew takes many seconds."""
    text = payload(job, queue, chance, now)
    before, _, after = text.partition(json.loads(text)["uuid"])
    while True:
        yield f"{before}{identity(chance)}{after}"


def identity(chance: Random) -> str:
    """A uuid."""
    return str(UUID(int=chance.getrandbits(128), version=4))


def command(job: Job, queue: str, chance: Random, delay: int | None) -> str:
    """
    The job object as PHP serialises it.

    The protected property's name holds NULs, as in most real jobs; in the payload's JSON they
    are `\\u0000`, which none of PostgreSQL's JSON operators can take.
    """
    properties: dict[str, object] = {"\0*\0order": chance.randrange(1, 1_000_000), "job": None, "connection": None}
    properties |= {"queue": queue, "messageGroup": None, "deduplicator": None, "delay": delay, "afterCommit": None}
    properties |= {"middleware": (), "chained": (), "chainConnection": None, "chainQueue": None}
    properties |= {"chainCatchCallbacks": None}
    own = {"timeout": job.timeout, "tries": job.tries, "backoff": job.backoff or None}
    properties |= {name: value for name, value in own.items() if value is not None}
    body = "".join(serialised(name) + serialised(value) for name, value in properties.items())
    return f'O:{len(job.name)}:"{job.name}":{len(properties)}:{{{body}}}'


def serialised(value: object) -> str:
    """PHP's `serialize` of a scalar or a list."""
    match value:
        case None:
            return "N;"
        case bool():
            return f"b:{value:d};"
        case int():
            return f"i:{value};"
        case str():
            return f's:{len(value.encode())}:"{value}";'
        case tuple():
            members = "".join(serialised(index) + serialised(member) for index, member in enumerate(value))
            return f"a:{len(value)}:{{{members}}}"
    raise TypeError(f"not a value of a job's property: {value!r}")
