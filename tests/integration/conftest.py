"""Fixtures for the stand-in's charges, and for Ctrl-C of a command in this process."""

import os
import signal
import time
from collections.abc import Callable
from threading import Event, Lock

import pytest
from keyhop.cli import session

from testing.standin.server import StandIn

Scans = list[tuple[float, float]]
Interrupt = Callable[[], None]


@pytest.fixture
def charged(stand_in: StandIn) -> Scans:
    """The time and the units of each Scan that the stand-in has answered."""
    scans: Scans = []

    def note(operation: str, request, body) -> None:
        if operation == "Scan":
            scans.append((time.monotonic(), body["ConsumedCapacity"]["CapacityUnits"]))

    stand_in.alter(note)
    return scans


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """A function that sends Ctrl-C once, for use in other threads than the command's main one.

    Each call waits until the command has received the signal, as it might end before that.
    """
    return interrupting(monkeypatch, signal.SIGINT)


def interrupting(monkeypatch: pytest.MonkeyPatch, number: int) -> Interrupt:
    stops: list[Event] = []
    is_sent, one_at_a_time = Event(), Lock()

    def recorded_event() -> Event:
        stops.append(Event())
        return stops[-1]

    def interrupt() -> None:
        with one_at_a_time:
            if not is_sent.is_set():
                is_sent.set()
                os.kill(os.getpid(), number)
        assert stops[-1].wait(300)

    monkeypatch.setattr(session, "Event", recorded_event)
    return interrupt
