"""When to add shards, how many, and when fewer would do. Pure.

What a throttled writer does is decided by the reasons that the service gives (AWS documentation,
"Diagnosing throttling"; service model of botocore 1.44):

    hot key range of the table   the key is hot: counted, and at the threshold shards are added
    hot key range of an index    a suffix helps only if the index key carries it: back off, say so
    provisioned throughput       the table is too small: back off, or raise it within bounds
    maximum on-demand            the owner's own cap: back off
    account limit                a quota: back off
    none                         unknown: find out; never a shard

A partition serves 1,000 write units a second.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from keyhop.dynamodb.throttling import NO_REASON, reason_names
from keyhop.sharding.key.names import MOST_SHARDS
from keyhop.sharding.key.shards import DRAINING, Phase, Shards

PARTITION_WRITE_UNITS = 1_000.0
"""Write units that one partition serves in a second."""


ACCEPTED_BEFOREHAND = 4
"""Attempts that a writer supposes to have seen accepted, before it has seen any."""


class Cause(StrEnum):
    """Why a request was throttled; the gravest last."""

    UNKNOWN = "no reason given"
    HOT_KEY = "hot key range of the table"
    OWN_CAP = "maximum on-demand throughput"
    INDEX_TOO_SMALL = "provisioned throughput of an index"
    TABLE_TOO_SMALL = "provisioned throughput of the table"
    HOT_INDEX_KEY = "hot key range of an index"
    ACCOUNT_QUOTA = "account limit"


_CAUSES = {
    "TableWriteKeyRangeThroughputExceeded": Cause.HOT_KEY,
    "TableWriteProvisionedThroughputExceeded": Cause.TABLE_TOO_SMALL,
    "TableWriteAccountLimitExceeded": Cause.ACCOUNT_QUOTA,
    "TableWriteMaxOnDemandThroughputExceeded": Cause.OWN_CAP,
    "IndexWriteKeyRangeThroughputExceeded": Cause.HOT_INDEX_KEY,
    "IndexWriteProvisionedThroughputExceeded": Cause.INDEX_TOO_SMALL,
    "IndexWriteAccountLimitExceeded": Cause.ACCOUNT_QUOTA,
    "IndexWriteMaxOnDemandThroughputExceeded": Cause.OWN_CAP,
}
"""Reasons for reads are not here: they say nothing of a write, and are unknown to a writer."""


def cause_of(response: Mapping[str, Any]) -> Cause:
    """Why a write was throttled, from a throttling error's response.

    Of several causes the one that more shards do not help against: they would be for nothing.
    """
    causes = {_CAUSES.get(name, Cause.UNKNOWN) for name in reason_names(response)}
    return max(causes, key=list(Cause).index)


def has_reasons(response: Mapping[str, Any]) -> bool:
    """Whether a throttling error says why."""
    return reason_names(response) != (NO_REASON,)


def cause_by_consumption(consumed: float | None, provisioned: float | None) -> Cause:
    """Why writes are throttled that tell no reason, by CloudWatch's figures for the table.

    consumed, provisioned: write units a second. A table that is throttled with half of its
    capacity left has a hot key; an on-demand table (provisioned: None) tells nothing.
    """
    if consumed is None or not provisioned:
        return Cause.UNKNOWN
    share = consumed / provisioned
    if share >= 0.8:
        return Cause.TABLE_TOO_SMALL
    return Cause.HOT_KEY if share <= 0.5 else Cause.UNKNOWN


@dataclass(slots=True)
class RecentAttempts:
    """What one writer has seen of one key in the last `window` seconds, at one shard count.

    accepted, throttled: moments of first attempts; retries are not counted, they would make a
    key look hotter than it is. throttles: of all attempts.
    """

    window: float
    accepted: deque[float] = field(default_factory=deque)
    throttled: deque[float] = field(default_factory=deque)
    throttles: deque[float] = field(default_factory=deque)

    def note(self, at: float, *, throttled: bool, first: bool) -> None:
        """Count an attempt at moment `at`."""
        if throttled:
            self.throttles.append(at)
        if first:
            (self.throttled if throttled else self.accepted).append(at)
        for moments in (self.accepted, self.throttled, self.throttles):
            while moments and moments[0] <= at - self.window:
                moments.popleft()

    def clear(self) -> None:
        """Begin anew: with another number of shards nothing of it holds."""
        for moments in (self.accepted, self.throttled, self.throttles):
            moments.clear()

    @property
    def pressure(self) -> float:
        """First attempts for each one that was accepted, at least 1.

        Of a few attempts of one writer, many may be throttled by chance, and the unluckiest of all
        writers is the one that adds shards: some accepted ones are counted on top.
        """
        accepted = len(self.accepted) + ACCEPTED_BEFOREHAND
        return (accepted + len(self.throttled)) / accepted


class Growth(Protocol):
    """Chooses the next shard count."""

    def next_count(self, shards: Shards, now: float, pressure: float) -> int:
        """From the metadata, epoch seconds, and attempts for each accepted one; above the count."""


@dataclass(frozen=True, slots=True)
class OneMore:
    """One shard at a time."""

    def next_count(self, shards: Shards, now: float, pressure: float) -> int:
        """One more than there are."""
        return shards.number + 1


@dataclass(frozen=True, slots=True)
class Doubling:
    """One more; twice as many if the count has grown a moment ago and that was not enough.

    fast_seconds: two changes within this time are fast growth. It goes only half of the way that
    the throttles call for: more shards than needed cost every read.
    """

    fast_seconds: float = 60.0

    def next_count(self, shards: Shards, now: float, pressure: float) -> int:
        """Between one more and twice as many."""
        grew = len(shards.history) > 1 and shards.history[-1][1] > shards.history[-2][1]
        if not grew or now - shards.history[-1][0] > self.fast_seconds:
            return shards.number + 1
        missing = math.ceil(shards.number * (pressure - 1) / 2)
        return shards.number + min(shards.number, max(1, missing))


@dataclass(frozen=True, slots=True)
class Policy:
    """When a key gets more shards.

    threshold: throttles of one key, within `window` seconds, that one writer must see. cooldown:
    seconds since the last change of the metadata. spread: seconds, of which each writer waits a
    random share before it adds shards. most: shards of one key. most_in_all: shards that all keys
    of the table may have beyond their first; None: not limited.
    """

    threshold: int = 5
    window: float = 10.0
    cooldown: float = 5.0
    spread: float = 0.5
    most: int = 64
    most_in_all: int | None = None
    growth: Growth = field(default_factory=Doubling)

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST_SHARDS:
            raise ValueError(f"a key may have 1 to {MOST_SHARDS} shards, not {self.most}")
        if self.threshold < 1 or min(self.window, self.cooldown, self.spread) < 0:
            raise ValueError("threshold must be at least 1, the times not negative")


class Action(StrEnum):
    """What a writer does about a hot key, besides backing off."""

    GROW = "grow"
    WAIT = "wait"
    REOPEN = "reopen"
    AT_MAXIMUM = "at maximum"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and why. number: the new shard count, of GROW."""

    action: Action
    reason: str
    number: int = 0


def decide(
    policy: Policy, shards: Shards, recent: RecentAttempts, now: float, known_for: float
) -> Decision:
    """What a writer does to whom the service says that this key is hot.

    now: epoch seconds. known_for: seconds for which the metadata has been as it is (protocol.py).
    """
    throttles = len(recent.throttles)
    if throttles < policy.threshold:
        return Decision(Action.WAIT, f"{throttles} of {policy.threshold} throttles")
    if known_for < shards.settle:
        return Decision(Action.WAIT, "the metadata is too new")
    if shards.phase in DRAINING:
        return Decision(Action.REOPEN, "the key is hot while it is being drained")
    if shards.phase not in (Phase.STEADY, Phase.OPENED):
        return Decision(Action.WAIT, f"the shard count is being changed ({shards.phase})")
    # Both, as a clock that is ahead must not hold growth up for as long.
    if max(known_for, now - shards.last_updated) < policy.cooldown:
        return Decision(Action.WAIT, "within the cooldown")
    if shards.number >= policy.most:
        return Decision(Action.AT_MAXIMUM, f"{shards.number} shards are the most allowed")
    number = policy.growth.next_count(shards, now, recent.pressure)
    number = min(policy.most, max(shards.number + 1, number))
    return Decision(Action.GROW, f"{throttles} throttles in {policy.window:g} s", number)


@dataclass(frozen=True, slots=True)
class Shrinking:
    """When a key has more shards than it needs.

    quiet_hours: since the last change. headroom: how many times the busiest hour's mean may be
    exceeded within it.
    """

    quiet_hours: float = 24.0
    headroom: float = 5.0


def shrunk_count(
    policy: Shrinking, shards: Shards, traffic: Mapping[int, float], now: float
) -> Decision | None:
    """The count that would do, and why; None: leave it.

    traffic: write units by epoch hour, as writers have reported them. now: epoch seconds.
    """
    if shards.phase is not Phase.STEADY or shards.number == 1:
        return None
    if now - shards.last_updated < policy.quiet_hours * 3600:
        return None
    since = int(now // 3600) - math.ceil(policy.quiet_hours)
    busiest = max((units for hour, units in traffic.items() if hour >= since), default=0.0)
    peak = busiest / 3600 * policy.headroom
    number = max(1, math.ceil(peak / PARTITION_WRITE_UNITS))
    if number >= shards.number:
        return None
    reason = (
        f"the busiest hour of {policy.quiet_hours:g} had {busiest / 3600:.0f} write units a second"
    )
    return Decision(Action.WAIT, reason, number)
