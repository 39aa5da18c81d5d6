"""The command line: serve, once, status, check, demo."""

from __future__ import annotations

import argparse
import signal
import sys
import urllib.request
from pathlib import Path
from threading import Event

from . import __version__, app, config, logs, status, web
from .errors import ConfigError
from .server import VERDICT

FINE, FAILED, USAGE = 0, 1, 2
ASKING = 3.0  # seconds that `status` waits for the running exporter


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
    common.add_argument(
        "--config", type=Path, metavar="FILE", help="the settings; without it QUEUE_EXPORTER_DSN is used"
    )
    common.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="default: info")
    common.add_argument("--log-format", choices=("logfmt", "json"), help="default: logfmt")
    top = argparse.ArgumentParser("queue-exporter", description="Laravel's queues for Prometheus.", parents=[common])
    top.add_argument("--version", action="version", version=f"queue-exporter {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, run in COMMANDS.items():
        what = (run.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=what, description=run.__doc__, parents=[common])
        if name == "status":
            command.add_argument("--url", help="of the running exporter; default: the address in the settings")
        if name == "demo":
            from .demo.incidents import INCIDENTS

            command.add_argument(
                "--incident", choices=sorted(INCIDENTS), help="rehearse one of the documented incidents"
            )
    return top


def main(argv: list[str] | None = None) -> int:
    """Run a command. Returns the exit status: 0 fine, 1 over a limit or failed, 2 usage or settings, 3 blind."""
    options = parser().parse_args(argv, namespace=Options())
    try:
        return COMMANDS[options.command](options)
    except ConfigError as error:
        for problem in error.problems:
            print(f"queue-exporter: {problem}", file=sys.stderr)
        return USAGE


def until_stopped() -> Event:
    """An event that SIGTERM and SIGINT set."""
    stop = Event()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
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
    wired = app.build(settings)
    wired.serve(app.listen(wired, settings), stop)
    return FINE


def once(options: Options) -> int:
    """Poll every collector once and print the metrics."""
    wired = app.build(read_settings(options, "error"))
    wired.poll_once()
    sys.stdout.write(wired.exposition.page("text").decode())
    failed = [(key, state) for key, state in wired.board.read().items() if not state.up]
    for key, state in failed:
        print(f"queue-exporter: {key.source}/{key.collector}: {state.reason}: {state.error}", file=sys.stderr)
    return FAILED if failed else FINE


def show_status(options: Options) -> int:
    """Print what is over its limit now, and all queues; by one poll of its own if no exporter answers."""
    settings = read_settings(options, "error")
    asked = options.url or address_to_ask(settings)
    try:
        with urllib.request.urlopen(asked, timeout=ASKING) as answer:  # noqa: S310  # the user's own address
            sys.stdout.write(answer.read().decode())
            return int(answer.headers.get(VERDICT, FAILED))
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        print(f"no running exporter at {asked} ({why}); this is one poll of its own", file=sys.stderr)
    wired = app.build(settings)
    wired.poll_once()
    now = status.report(wired.board)
    sys.stdout.write(status.text(now))
    return now.verdict


def address_to_ask(settings: config.Config) -> str:
    """Where an exporter with these settings can be reached from this machine."""
    host, port = settings.web.address
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104  # not listening on it
    scheme = "https" if settings.web.config_file else "http"
    return f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"


def check(options: Options) -> int:
    """Read the settings and say what is wrong with them."""
    settings = read_settings(options, "error")
    web.load(settings.web.config_file)
    queues = sum(len(connection.queues) for connection in settings.connections.values())
    print(f"settings are fine: {len(settings.connections)} connection(s), {queues} named queue(s)")
    return FINE


def demo(options: Options) -> int:
    """Watch a small Laravel-shaped world on an embedded PostgreSQL, until Ctrl-C."""
    from .demo import run

    logs.set_up(options.log_level or "error", options.log_format, logs.Secrets())
    return run.demo(options.incident, until_stopped())


COMMANDS = {"serve": serve, "once": once, "status": show_status, "check": check, "demo": demo}
