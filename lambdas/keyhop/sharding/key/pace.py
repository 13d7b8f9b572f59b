"""The speed of a drain, which uses the capacity that users leave at the target. Pure."""

from dataclasses import dataclass, field

FIRST_UNITS = 200.0
MOST_UNITS = 1_000.0
"""The maximum write units a second for each target shard, source and target together. Half of them
are at the target, where a partition accepts 1,000.
"""
LEAST_UNITS = 4.0
"""One item of 1 KB: even if it is always throttled, a drain makes progress beside users."""
RECOVERY_SECONDS = 50.0
"""The time from zero to the maximum without throttling."""
HALVING_SECONDS = 1.0
"""Several movers are throttled at the same time, which must count once."""


@dataclass(slots=True)
class Pace:
    """Write units a second to `targets` shards, halved by throttling and then raised slowly. All
    moments are from one clock, in seconds.
    """

    targets: int
    rate: float = field(init=False)
    each: float = 4.0
    _next: float = float("-inf")
    _halved: float = float("-inf")

    def __post_init__(self) -> None:
        self.rate = FIRST_UNITS * self.targets

    def turn(self, now: float) -> float:
        """Reserve the next move, and return the seconds to wait for it."""
        at = max(now, self._next)
        self._next = at + self.each / self.rate
        return at - now

    def throttled(self, now: float) -> None:
        """Record a throttled move."""
        if now - self._halved >= HALVING_SECONDS:
            self._halved = now
            self.rate = max(LEAST_UNITS, self.rate / 2)
            self._next = max(self._next, now) + self.each / self.rate

    def moved(self, units: float) -> None:
        """Record a move, and its write units."""
        self.each = max(1.0, units)
        maximum = MOST_UNITS * self.targets
        self.rate = min(maximum, self.rate + maximum / RECOVERY_SECONDS * self.each / self.rate)
