"""Wiring: from settings to sources, pollers, pages."""

from __future__ import annotations

import logging
import signal
import sys
from _thread import start_new_thread
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread

from .board import Board
from .config import Config
from .exposition import Exposition
from .logs import Secrets
from .pages import Pages
from .poller import Poller
from .server import Server, open_server
from .source import Source
from .sources.readings import Readings
from .sources.redis.settings import Redis
from .sources.sqs.settings import Sqs
from .timing import Clock
from .web import Gate

log = logging.getLogger(__name__)

SWITCH = 0.0005  # seconds after which a busy poll thread lets a scrape go on; Python's default is ten times that
LOOK = 0.5  # seconds; a signal that comes just before a wait begins does not end it, so no wait may be endless
GOODBYE = 0.5  # seconds for all sources together to close their connections


def sources(config: Config, clock: Clock = Clock(), *, once: bool = False) -> Iterator[Source]:
    """A source for each connection, and the clocks. A driver is imported only where it is configured."""
    readings = Readings(clock)
    for name, connection in config.connections.items():
        if isinstance(connection, Sqs):
            from .sources.sqs import source as sqs

            yield sqs.open(name, connection, clock, once=once)
        elif isinstance(connection, Redis):
            from .sources.redis import source as redis

            yield redis.open(name, connection, readings, clock, once=once)
        else:
            from .sources.database import source as database

            yield database.open(name, connection, readings, clock, once=once)
    from .sources.clock import source as clocks

    yield clocks.open(config.clock, readings, clock)


@dataclass(frozen=True, slots=True)
class App:
    """Everything that runs, or could."""

    board: Board
    pollers: tuple[Poller, ...]
    exposition: Exposition

    def poll_once(self) -> None:
        """Poll every collector once, and let the connections go."""
        for poller in self.pollers:
            poller.poll_all()
            poller.source.close()

    def serve(self, server: Server, stop: Event) -> None:
        """Poll and serve until `stop` is set. The process may end at once: nothing of ours outlives a question."""
        sys.setswitchinterval(SWITCH)
        polling = [Thread(target=p.run, args=(stop,), name=p.source.name, daemon=True) for p in self.pollers]
        for thread in polling:
            thread.start()
        Thread(target=server.serve, name="http", daemon=True).start()
        log.info("serving", extra={"address": server.where})
        while not stop.wait(LOOK):
            pass
        server.stop()
        for thread in polling:  # each says goodbye to its far side, unless it is stuck in a poll
            thread.join(GOODBYE / len(polling))


def end_by(stop: Event, *signals: signal.Signals) -> None:
    """Have these signals set `stop`: in a thread, as a handler may interrupt whoever holds the event's lock."""
    for number in signals:
        signal.signal(number, lambda *_: start_new_thread(stop.set, ()))


def build(config: Config, clock: Clock = Clock(), *, once: bool = False) -> App:
    """Wire up what the settings name, to be polled `once` only or on and on, without touching any of it yet."""
    all_sources = tuple(sources(config, clock, once=once))
    board = Board((constant for source in all_sources for constant in source.constants), config.queues())
    hide = Secrets(config.secrets()).hide
    pollers = tuple(Poller(source, board, clock, hide=hide) for source in all_sources)
    return App(board, pollers, Exposition(board, clock))


def listen(app: App, config: Config) -> Server:
    """The server of the pages, listening but not serving yet. Raises `ConfigError`."""
    web = config.web.config_file
    return open_server(config.web.address, Pages(app.board, app.exposition, Gate(web.basic_auth_users)), web)
