"""The time, as the library sees it; tests bring their own."""

import time
from typing import Protocol


class Clock(Protocol):
    """Durations, moments, and waiting."""

    def monotonic(self) -> float:
        """Seconds; only differences mean something."""

    def time(self) -> float:
        """Epoch seconds."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """This machine's."""

    def monotonic(self) -> float:
        """Seconds; only differences mean something."""
        return time.monotonic()

    def time(self) -> float:
        """Epoch seconds."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
