"""How much more callers would write to a throttled key than is accepted. Pure."""

from collections.abc import Hashable
from dataclasses import dataclass, field

SUPPOSED = 4
"""Writes that are supposed to have been asked for, and accepted, beforehand: few tell little."""
LEAST_CYCLES = 8
POOLED_CYCLES = 5
"""Cycles that must be known to tell the callers' pace: of one process, and of several, whose chance
is less."""
LEAST_CALLERS = 8
"""Of one process, that tell how much of what is wanted is accepted; else it asks the others."""
FEW_CYCLES = 3
"""They tell it badly, and better than nothing does."""
TELL_SECONDS = 1.0
TELL_CYCLES_SECONDS = 0.25
"""Between two reports of one process to all others, the shorter one if it has seen a cycle; each
costs a write unit of the metadata."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What was seen of callers that are throttled; of several processes these add up.

    caller_seconds: callers, times the seconds for which they were watched. accepted: writes.
    cycles, seconds: how many cycles were seen, and how long they took in all.
    """

    caller_seconds: float = 0.0
    accepted: float = 0.0
    cycles: float = 0.0
    seconds: float = 0.0

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(
            self.caller_seconds - other.caller_seconds,
            self.accepted - other.accepted,
            self.cycles - other.cycles,
            self.seconds - other.seconds,
        )

    def are_enough(self, least: int) -> bool:
        """Whether they tell the callers' own pace."""
        return self.cycles >= least and self.seconds > 0

    @property
    def pressure(self) -> float:
        """Writes that are wanted for each that is accepted, at least 1; if they are enough."""
        wanted = self.caller_seconds * self.cycles / self.seconds
        return max(1.0, (wanted + SUPPOSED) / (self.accepted + SUPPOSED))


@dataclass(slots=True)
class Demand:
    """What the callers of one process have done since the first throttle; moments in seconds.

    Who is throttled asks less often, as he waits. So what callers want is worked out from their
    cycles: from one write to the next, where the first was accepted at once. Callers that do not
    come again are counted all the same: the window is short.

    callers: each of them (a thread), with the moment at which he began such a write last; None: his
    last write was held up. cycles, seconds: how many cycles were seen, and their sum. told: of this
    to the other processes, at `told_at`; pooled: what all have seen, if they were asked just now.
    """

    began: float
    accepted: int = 0
    callers: dict[Hashable, float | None] = field(default_factory=dict)
    cycles: int = 0
    seconds: float = 0.0
    told: Sums = Sums()
    told_at: float = float("-inf")
    pooled: Sums = Sums()

    def asked(self, caller: Hashable, at: float) -> None:
        """A caller begins a write."""
        since = self.callers.get(caller)
        if since is not None:
            self.cycles += 1
            self.seconds += at - since
        self.callers[caller] = None

    def answered(self, caller: Hashable, began: float | None) -> None:
        """A write was accepted; began: when it was asked for, if it was accepted at once."""
        self.accepted += 1
        self.callers[caller] = began

    def sums(self, now: float) -> Sums:
        """Until now."""
        watched = len(self.callers) * (now - self.began)
        return Sums(watched, float(self.accepted), float(self.cycles), self.seconds)

    def measured(self, now: float, badly: bool = False) -> Sums | None:
        """What tells the callers' own pace: what this process has seen, or else all of them."""
        own = self.sums(now)
        if own.are_enough(LEAST_CYCLES) and len(self.callers) >= LEAST_CALLERS:
            return own
        return (
            self.pooled if self.pooled.are_enough(FEW_CYCLES if badly else POOLED_CYCLES) else None
        )

    def news(self, now: float) -> Sums | None:
        """To be told to the other processes; None: they were told a moment ago."""
        seconds = TELL_CYCLES_SECONDS if self.cycles > self.told.cycles else TELL_SECONDS
        if now - self.told_at < seconds:
            return None
        before, self.told, self.told_at = self.told, self.sums(now), now
        return self.told - before
