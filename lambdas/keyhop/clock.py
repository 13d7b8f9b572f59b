"""The time, as the library sees it; tests bring their own."""

import time
from datetime import UTC, datetime
from typing import Protocol

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux stops CLOCK_MONOTONIC while a machine is suspended, or a snapshot of it lies there."""


class Clock(Protocol):
    """Durations, moments, and waiting."""

    def monotonic(self) -> float:
        """Return seconds whose differences count, those of a sleeping machine included."""

    def time(self) -> float:
        """Return the seconds since 1970."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


class SystemClock:
    """This machine's."""

    sleep = staticmethod(time.sleep)
    time = staticmethod(time.time)

    @staticmethod
    def monotonic() -> float:
        return time.clock_gettime(_CLOCK)


def now() -> str:
    """Return the current time in UTC, to the second, as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
