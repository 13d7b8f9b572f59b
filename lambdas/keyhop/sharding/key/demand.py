"""The writes that callers of a throttled key would send without throttling. Pure."""

from collections.abc import Hashable
from dataclasses import dataclass, field

SUPPOSED = 1
"""Requested and accepted writes that are assumed beforehand, because few writes show little."""
LEAST_CYCLES = 8
POOLED_CYCLES = 5
"""The minimum number of cycles for measuring the callers' pace: in one process, and in all. All
processes together need fewer, because random variations are smaller.
"""
POOLED_ACCEPTED = 25
"""The minimum number of accepted writes of all processes, for the same reason."""
RECENT_SECONDS = 0.5
"""The longest cycle before a caller's first throttle that counts, as a longer one may be of a time
before the burst.
"""
WAIT_SECONDS = 0.2
"""The time for which a caller that reports, because it is throttled, will at least wait before it
can report again. Without it the sum lacks the callers that wait, and a step is too small.
"""
LEAST_CALLERS = 8
"""The minimum number of callers in one process; with fewer, it needs the other processes' data."""
FEW_CYCLES = 3
"""The minimum for an inaccurate measurement, which is better than none."""
TELL_SECONDS = 1.0
TELL_CYCLES_SECONDS = 0.25
"""The seconds between two reports of one process to the others, the shorter ones if it has new
cycles. Each report costs a write unit of the metadata.
"""


@dataclass(frozen=True, slots=True)
class Sums:
    """Observations of throttled callers, which can be added up over processes: callers times
    seconds, accepted writes, and the number and total seconds of cycles.
    """

    caller_seconds: float = 0.0
    accepted: float = 0.0
    cycles: float = 0.0
    seconds: float = 0.0

    def __sub__(self, earlier: "Sums") -> "Sums":
        return Sums(
            self.caller_seconds - earlier.caller_seconds,
            self.accepted - earlier.accepted,
            self.cycles - earlier.cycles,
            self.seconds - earlier.seconds,
        )

    def are_enough(self, minimum_cycles: int) -> bool:
        """Return whether the callers' pace can be measured with this number of cycles."""
        return self.cycles >= minimum_cycles and self.seconds > 0

    @property
    def pressure(self) -> float:
        """Requested writes for each accepted one, at least 1; only valid if `are_enough`."""
        requested = self.caller_seconds * self.cycles / self.seconds
        return max(1.0, (requested + SUPPOSED) / (self.accepted + SUPPOSED))


@dataclass(slots=True)
class Demand:
    """The writes of one process's callers since the first throttle; moments in seconds.

    A throttled caller sends fewer writes, because it waits. So the demand is computed from cycles:
    the time from one write to the next, if the first was accepted immediately. Callers that send no
    further writes are included, because the window is short. Each caller, a thread, has the start
    of its last write, or None if that was throttled. `reported` is the part that was reported to
    the other processes, and `pooled` the data of all processes, if it was read just now.
    """

    began: float
    accepted: int = 0
    callers: dict[Hashable, float | None] = field(default_factory=dict)
    cycles: int = 0
    seconds: float = 0.0
    reported: Sums = Sums()
    reported_at: float = float("-inf")
    pooled: Sums = Sums()

    def asked(self, caller: Hashable, at: float) -> None:
        """Record that a caller starts a write."""
        since = self.callers.get(caller)
        if since is not None:
            self.cycles += 1
            self.seconds += at - since
        self.callers[caller] = None

    def joined(self, caller: Hashable, cycle: float | None) -> None:
        """Record that a caller was throttled; cycle: that of its writes before, if it is known."""
        if caller not in self.callers:
            self.callers[caller] = None
            if cycle is not None and cycle <= RECENT_SECONDS:
                self.cycles += 1
                self.seconds += cycle

    def answered(self, caller: Hashable, began: float | None) -> None:
        """Record an accepted write. began: its start, if it was accepted at the first attempt."""
        self.accepted += 1
        self.callers[caller] = began

    def sums(self, now: float) -> Sums:
        """Return the observations until now."""
        watched = len(self.callers) * (now - self.began)
        return Sums(watched, float(self.accepted), float(self.cycles), self.seconds)

    def measured(self, now: float, badly: bool = False) -> Sums | None:
        """Return observations that can measure the pace, of this process or of all; or None."""
        observed = self.sums(now)
        if observed.are_enough(LEAST_CYCLES) and len(self.callers) >= LEAST_CALLERS:
            return observed
        pooled = self.pooled
        if badly:
            return pooled if pooled.are_enough(FEW_CYCLES) else None
        is_enough = pooled.are_enough(POOLED_CYCLES) and pooled.accepted >= POOLED_ACCEPTED
        return pooled if is_enough else None

    def news(self, now: float) -> Sums | None:
        """Return observations to report to other processes; None if the last report is recent."""
        seconds = TELL_CYCLES_SECONDS if self.cycles > self.reported.cycles else TELL_SECONDS
        if now - self.reported_at < seconds:
            return None
        before, self.reported_at = self.reported, now
        self.reported = self.sums(now + WAIT_SECONDS)
        return self.reported - before
