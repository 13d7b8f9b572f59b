"""What the reading commands share: a client, a table, a reader, and a clean end on Ctrl-C."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event
from types import FrameType

from keyhop.cli.exit_status import INTERRUPTED, TERMINATED
from keyhop.dynamodb.client import DynamoDB, Endpoint, dynamodb_client
from keyhop.dynamodb.tables import Target, describe
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader

SURVEY_CONNECTIONS = 16
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


@dataclass(frozen=True, slots=True)
class Limits:
    """What the user allows: read units a second, read units in all, seconds of failure."""

    max_rate: float | None
    max_units: float | None
    patience: float


def connect(
    endpoint: Endpoint, table: str, index: str | None, workers: int, patience: float
) -> tuple[DynamoDB, Target, Endpoint]:
    """A client for `workers` threads, the table that it finds, and the endpoint with its region."""
    client = dynamodb_client(endpoint, max(SURVEY_CONNECTIONS, workers))
    found = replace(endpoint, region=client.region)
    return client, describe(client, found, table, index, patience), found


def reader_of(
    client: DynamoDB, target: Target, endpoint: Endpoint, limits: Limits, stop: Stop
) -> PageReader:
    """A reader within the user's limits."""
    return PageReader(
        client,
        target,
        Budget(limits.max_rate, limits.max_units),
        endpoint=endpoint,
        patience=limits.patience,
        stop=stop.event,
    )
