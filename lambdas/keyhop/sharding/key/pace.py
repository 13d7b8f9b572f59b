"""How fast a drain moves items: as fast as the target has room beside its users. Pure."""

from dataclasses import dataclass, field

FIRST_UNITS = 200.0
MOST_UNITS = 1_000.0
"""Write units a second for each target shard, source and target together: half at the target, where
a partition takes 1,000."""
LEAST_UNITS = 4.0
"""One item of a kilobyte: who is always throttled makes room for the users, and goes on."""
RECOVERY_SECONDS = 50.0
"""From nothing to the most, if nothing is throttled."""
HALVING_SECONDS = 1.0
"""Several movers are throttled at the same moment, which counts once."""


@dataclass(slots=True)
class Pace:
    """Write units a second: halved by throttles, and more again by and by. targets: shards.

    All moments are of one clock, in seconds.
    """

    targets: int
    rate: float = field(init=False)
    each: float = 4.0
    _next: float = float("-inf")
    _halved: float = float("-inf")

    def __post_init__(self) -> None:
        self.rate = FIRST_UNITS * self.targets

    def turn(self, now: float) -> float:
        """Take the next turn; returns for how many seconds to wait for it."""
        at = max(now, self._next)
        self._next = at + self.each / self.rate
        return at - now

    def throttled(self, now: float) -> None:
        """A move was refused."""
        if now - self._halved >= HALVING_SECONDS:
            self._halved = now
            self.rate = max(LEAST_UNITS, self.rate / 2)
            self._next = max(self._next, now) + self.each / self.rate

    def moved(self, units: float) -> None:
        """A move was made, for so many units."""
        self.each = max(1.0, units)
        most = MOST_UNITS * self.targets
        self.rate = min(most, self.rate + most / RECOVERY_SECONDS * self.each / self.rate)
