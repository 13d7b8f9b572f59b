"""What the stand-in has charged; Ctrl-C of a command in this process."""

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
    """When the stand-in answered a Scan, and what it charged."""
    scans: Scans = []

    def note(operation: str, request, body) -> None:
        if operation == "Scan":
            scans.append((time.monotonic(), body["ConsumedCapacity"]["CapacityUnits"]))

    stand_in.alter(note)
    return scans


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Ctrl-C, once; for other threads than the command's main one, from this moment on.

    All who call it wait until the command has heard of it, or it might end before that.
    """
    return interrupting(monkeypatch, signal.SIGINT)


def interrupting(monkeypatch: pytest.MonkeyPatch, number: int) -> Interrupt:
    stops: list[Event] = []
    sent, one_at_a_time = Event(), Lock()

    def noted() -> Event:
        stops.append(Event())
        return stops[-1]

    def interrupt() -> None:
        with one_at_a_time:
            if not sent.is_set():
                sent.set()
                os.kill(os.getpid(), number)
        assert stops[-1].wait(300)

    monkeypatch.setattr(session, "Event", noted)
    return interrupt
