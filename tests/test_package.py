"""What somebody gets who installs the package: what it needs at run time, and what goes beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
SHARED = "laravel_queue_exporter-*.data/data/share/laravel-queue-exporter"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    with ZipFile(found) as packed:
        packed.extractall(folder / "unpacked")
    return folder / "unpacked"


def names(folder: Path, pattern: str) -> set[str]:
    """The files there that fit."""
    return {path.name for path in folder.glob(pattern)}


def test_it_brings_its_pages(wheel: Path) -> None:
    """From the wheel alone every runbook and both pages for browsers are served."""
    program = (
        "from exporter import browser, runbooks; from exporter.board import Board; from exporter.status import report;"
        "assert all(browser.runbook_page(name) for name in runbooks.names());"
        "assert '</html>' in browser.status_page(report(Board())); print(*sorted(runbooks.names()))"
    )
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(wheel)}, cwd="/")
    assert set(told.stdout.split()) == {name.removesuffix(".md") for name in names(ROOT, "runbooks/*.md")} - {"README"}


def test_it_brings_the_bundle(wheel: Path) -> None:
    """Rules, alerts and boards lie in the environment's `share`, all of them."""
    assert names(wheel, f"{SHARED}/alerts/*.yml") == names(ROOT, "alerts/*.yml")
    assert names(wheel, f"{SHARED}/dashboards/*.json") == names(ROOT, "dashboards/*.json")
    assert names(wheel, f"{SHARED}/dashboards/provisioning/*") == names(ROOT, "dashboards/provisioning/*")


def test_it_brings_no_tests(wheel: Path) -> None:
    """Nor tools, nor what makes the boards."""
    assert {path.name for path in wheel.iterdir() if path.is_dir() and not path.name.startswith("laravel_queue")} == {
        "exporter"
    }
