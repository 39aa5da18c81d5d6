"""The command line: serve, once, status, check, demo."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path
from threading import Event

from . import __version__, app, asking, config, logs, runbooks, status, terminal
from .amounts import printable
from .documents import Complaint
from .errors import ConfigError

FINE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Options(argparse.Namespace):
    """What can be given on the command line, with the defaults."""

    command: str = "serve"
    config: Path | None = None
    log_level: str = ""
    log_format: logs.Form = "logfmt"
    url: str | None = None
    incident: str | None = None


def parser() -> argparse.ArgumentParser:
    """Options may stand before or after the command."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--config", type=Path, metavar="FILE", help=f"the settings; without it {config.DSN} is used")
    common.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="default: info")
    common.add_argument("--log-format", choices=("logfmt", "json"), help="default: logfmt")
    common.add_argument("--version", action="version", version=f"queue-exporter {__version__}")
    top = argparse.ArgumentParser("queue-exporter", description="Laravel's queues for Prometheus.", parents=[common])
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, run in COMMANDS.items():
        what = (run.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=what, description=run.__doc__, parents=[common])
        if name == "status":
            command.add_argument(
                "--url",
                metavar="http://[USER:PASSWORD@]HOST:PORT/",
                help="of the running exporter; default: the address in the settings",
            )
        if name == "demo":
            command.add_argument("--incident", type=incident, metavar="NAME", help="rehearse one of the incidents")
    return top


def incident(name: str) -> str:
    """The name of an incident. They are looked up only here: no other command needs the demo in memory."""
    from .demo.fargate.incidents import INCIDENTS as ON_AWS
    from .demo.incidents import INCIDENTS

    if name not in (names := (*INCIDENTS, *ON_AWS)):
        raise argparse.ArgumentTypeError(f"expected one of: {', '.join(names)}")
    return name


def main(argv: list[str] | None = None) -> int:
    """Run a command. Returns the exit status: 0 fine, 1 over a limit or failed, 2 usage or settings, 3 blind."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115  # it was closed: nobody wants to hear
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # none if it was closed
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # whatever the locale
    options = parser().parse_args(argv, namespace=Options())
    try:
        return COMMANDS[options.command](options)
    except ConfigError as error:
        for problem in error.problems:
            print(f"queue-exporter: {problem}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def show(text: str) -> None:
    """Print to standard output. A reader that has gone, as `head` does, changes no exit status."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        return
    except OSError as error:
        raise SystemExit(f"queue-exporter: the output cannot be written: {error.strerror}") from None


def until_stopped() -> Event:
    """An event that SIGTERM and SIGINT set."""
    stop = Event()
    app.end_by(stop, signal.SIGTERM, signal.SIGINT)
    return stop


def read_settings(options: Options, level: str) -> config.Config:
    """The settings, and logs set up so that no secret of theirs gets out."""
    settings = config.load(options.config)
    logs.set_up(options.log_level or level, options.log_format, logs.Secrets(settings.secrets()))
    return settings


def serve(options: Options) -> int:
    """Poll, and serve the pages until SIGTERM or Ctrl-C (the default)."""
    settings = read_settings(options, "info")
    stop = until_stopped()
    if not sys.stderr.isatty():  # a terminal that is closed ends it, as everything in it
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # settings are read once, and nobody's reload should end it
    wired = app.build(settings)
    wired.serve(app.listen(wired, settings), stop)
    return FINE


def once(options: Options) -> int:
    """Poll every collector once and print the metrics."""
    wired = app.build(read_settings(options, "error"), once=True)
    wired.poll_once()
    show(wired.exposition.page("text").decode())
    failed = defaultdict[str, list[str]](list)  # why → collectors
    for key, state in wired.board.read().items():
        if not state.up:
            failed[f"{key.source}: {state.reason}: {state.error}"].append(key.collector)
        for failure in state.failures:  # of a part of it
            failed[f"{key.source}: {failure}"].append(key.collector)
    for why, collectors in failed.items():
        print(f"queue-exporter: {printable(why)} ({', '.join(collectors)})", file=sys.stderr)
    return FAILED if failed else FINE


def show_status(options: Options) -> int:
    """Print what is over its limit now, and all queues; by one poll of its own if no exporter answers."""
    given = options.config or os.environ.get(config.DSN)
    settings = read_settings(options, "error") if given and not options.url else None
    where = asking.Where(options.url) if options.url else asking.here(settings.web if settings else config.Web())
    try:
        text, verdict = asking.ask(where)
    except asking.NoAnswerError as error:
        silence = f"no exporter answers at {where.shown} ({error})"
    else:
        show(text)
        return verdict
    try:
        settings = settings or read_settings(options, "error")
    except ConfigError as error:
        raise ConfigError(silence, *error.problems) from None
    print(f"queue-exporter: {silence}; this is one poll of its own", file=sys.stderr)
    wired = app.build(settings, once=True)
    wired.poll_once()
    now = status.report(wired.board, runbooks.names())
    show(terminal.text(now))
    return now.verdict


def check(options: Options) -> int:
    """Read the settings and say what is wrong with them, and what they say is about to go wrong in Laravel."""
    settings = read_settings(options, "error")
    doubts = [
        Complaint(("connections", name, *doubt.at), doubt.text)
        for name, connection in settings.connections.items()
        for doubt in connection.doubts()
    ]
    if doubts:
        show("".join(f"{doubt}\n" for doubt in doubts))
        return FAILED
    connections, queues = len(settings.connections), sum(len(c.queues) for c in settings.connections.values())
    show(f"settings are fine: connections {connections}, named queues {queues}; nobody was asked (once does)\n")
    return FINE


def demo(options: Options) -> int:
    """Watch a small Laravel-shaped world on an embedded PostgreSQL, until Ctrl-C."""
    stop = until_stopped()  # before anything that takes time
    from .demo import run

    logs.set_up(options.log_level or "error", options.log_format, logs.Secrets())
    return run.demo(options.incident, stop)


COMMANDS = {"serve": serve, "once": once, "status": show_status, "check": check, "demo": demo}
