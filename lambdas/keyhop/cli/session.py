"""What the commands share: a connection, and a clean end on Ctrl-C."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from types import FrameType

from keyhop.cli.exit_status import INTERRUPTED, TERMINATED
from keyhop.cli.options import Options
from keyhop.dynamodb.client import Connection, Endpoint, connect

CONNECTIONS = 16
"""Connections kept open at least; the first look at a table uses up to eight at once."""


@dataclass(slots=True)
class Stop:
    """Asked to stop, by Ctrl-C or by SIGTERM; status: the exit status that this calls for."""

    event: Event
    status: int = INTERRUPTED


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """The first signal asks for a clean end; a second one ends at once, as a crash would."""
    stop = Stop(Event())

    def ask(number: int, _frame: FrameType | None) -> None:
        stop.status = TERMINATED if number == signal.SIGTERM else INTERRUPTED
        if stop.event.is_set():
            os._exit(stop.status)
        stop.event.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def connection_of(options: Options, threads: int = 0) -> Connection:
    """Where the options say that the table is; for so many threads."""
    endpoint = Endpoint(options.region, options.profile, options.endpoint_url)
    return connect(endpoint, max(CONNECTIONS, threads))
