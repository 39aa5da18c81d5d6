"""The world's payloads beside real ones."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from exporter.demo.incidents import HEALTHY
from exporter.demo.payload import copies, payload, serialised
from exporter.demo.plan import Job

REAL = (Path(__file__).parent / "payloads.jsonl").read_text().splitlines()  # written by Laravel 12.67, one a line
IMPORT, INVOICE, BATCH = REAL
NOW = 1_796_059_128
RECOGNISES = """
$payload = json_decode(stream_get_contents(STDIN), true);
$object = unserialize($payload['data']['command']);
echo json_encode([serialize($object) === $payload['data']['command'], array_keys((array) $object)]);
"""


@pytest.mark.parametrize(
    ("real", "job", "delay"),
    [
        (IMPORT, Job("App\\Jobs\\ImportCsv", timeout=120, tries=3, backoff=(1, 5, 10)), None),
        (INVOICE, Job("App\\Jobs\\SendInvoice"), 60),
    ],
)
def test_payload_is_as_laravel_writes_it(real: str, job: Job, delay: int | None) -> None:
    """A payload is a real one, but for its uuid, a setting that no job of ours has, and the job's own properties."""
    mine = payload(job, "default", Random(1), NOW, delay)
    assert normal(mine) == normal(real)


def normal(text: str) -> str:
    """A payload without what may differ; the keys keep their order."""
    text = re.sub(r'"uuid":"[0-9a-f-]{36}"', '"uuid":""', text)
    text = text.replace('"maxExceptions":2', '"maxExceptions":null').replace('s:13:\\"maxExceptions\\";i:2;', "")
    return re.sub(r':\d+:\{.*?s:3:\\"job\\"', r':{s:3:\\"job\\"', text, count=1)


def test_payload_holds_a_nul() -> None:
    """A property that is not public has NULs in its name, spelled in JSON as in a real payload with such a property."""
    assert "\\u0000App\\\\Jobs\\\\BatchJob\\u0000fakeBatch" in BATCH
    assert "\\u0000*\\u0000order" in payload(Job("App\\Jobs\\BatchJob"), "default", Random(1), NOW)


@pytest.mark.parametrize("job", HEALTHY.jobs.values(), ids=HEALTHY.jobs)
def test_php_reads_the_command(job: Job) -> None:
    """PHP reads the serialised object, and writes it again exactly so."""
    php = subprocess.run(
        ["php", "-r", RECOGNISES],
        input=payload(job, "default", Random(1), NOW),
        capture_output=True,
        text=True,
        check=True,
    )
    same, properties = json.loads(php.stdout)
    assert same
    assert {"\0*\0order", "queue", "chained"} <= set(properties)


def test_lengths_are_bytes() -> None:
    """PHP counts bytes, not characters."""
    assert serialised("Grüße") == 's:7:"Grüße";'


def test_each_job_has_its_own_uuid() -> None:
    """Two jobs never share a uuid; the same luck gives the same jobs."""
    chance = Random(1)
    job = Job("App\\Jobs\\SendInvoice")
    first, second = (json.loads(payload(job, "default", chance, NOW))["uuid"] for _ in range(2))
    assert first != second
    assert json.loads(payload(job, "default", Random(1), NOW))["uuid"] == first


def test_copies_differ_in_nothing_but_their_uuid() -> None:
    """The jobs of a past are payloads like all others, each under a uuid of its own."""
    job = Job("App\\Jobs\\SendInvoice", tries=3)
    first, second = map(json.loads, islice(copies(job, "default", Random(1), NOW), 2))
    assert {name for name in first if first[name] != second[name]} == {"uuid"}
    assert normal(json.dumps(first, separators=(",", ":"))) == normal(payload(job, "default", Random(2), NOW))
