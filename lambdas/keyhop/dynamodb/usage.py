"""The meter of requests and units, for pages, for single items and for sharded tables."""

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Any


@dataclass(slots=True)
class Usage:
    """The numbers of requests, units and throttles, for any number of threads. It holds no keys.

    Attributes:
        requests: The requests that were answered.
        items: The items that Scans have read.
        throttles: The throttles by the service's reasons.
        counters: Further counters, by name.
    """

    requests: int = 0
    items: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    retries: int = 0
    throttles: Counter[str] = field(default_factory=Counter)
    counters: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def count(self, **amounts: float) -> None:
        """Add to the fields with these names, or otherwise to the counters."""
        with self._lock:
            for name, amount in amounts.items():
                if not amount:
                    continue
                if name in _NUMBERS:
                    setattr(self, name, getattr(self, name) + amount)
                else:
                    self.counters[name] += amount  # type: ignore[assignment]

    def count_answer(self, units: float, is_write: bool) -> None:
        """Count a request that was answered, and its units."""
        with self._lock:
            self.requests += 1
            if is_write:
                self.write_units += units
            else:
                self.read_units += units

    def count_throttle(self, reasons: tuple[str, ...]) -> None:
        """Count a throttle, under each of its reasons."""
        with self._lock:
            self.throttles.update(reasons)

    def add(self, usage: "Usage") -> None:
        self.count(**{name: getattr(usage, name) for name in _NUMBERS})
        with self._lock:
            self.throttles.update(usage.throttles)
            self.counters.update(usage.counters)

    def copy(self) -> "Usage":
        with self._lock:
            return self - Usage()

    def take(self) -> "Usage":
        """Return the usage since the last `take`."""
        with self._lock:
            usage = self - Usage()
            for name in _NUMBERS:
                setattr(self, name, getattr(self, name) - getattr(usage, name))
            self.throttles.clear()
            self.counters.clear()
        return usage

    def __sub__(self, before: "Usage") -> "Usage":
        """Return the usage since `before`, an earlier state of the same usage."""
        numbers: dict[str, Any] = {n: getattr(self, n) - getattr(before, n) for n in _NUMBERS}
        return Usage(
            **numbers,
            throttles=self.throttles - before.throttles,
            counters=self.counters - before.counters,
        )


_NUMBERS = ("requests", "items", "read_units", "write_units", "retries")
