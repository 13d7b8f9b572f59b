"""The clock of the library, which tests replace."""

import time
from datetime import UTC, datetime
from typing import Protocol

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that continues while the machine is suspended. CLOCK_MONOTONIC of Linux stops then."""


class Clock(Protocol):
    """A clock that measures durations and times, and waits."""

    def monotonic(self) -> float:
        """Return seconds for differences, including the time of a suspended machine."""

    def time(self) -> float:
        """Return the seconds since 1970."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


class SystemClock:
    """The clock of this machine."""

    sleep = staticmethod(time.sleep)
    time = staticmethod(time.time)

    @staticmethod
    def monotonic() -> float:
        return time.clock_gettime(_CLOCK)


def now() -> str:
    """Return the current time in UTC, to the second, as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
