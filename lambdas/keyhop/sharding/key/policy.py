"""When to add shards, how many, and when fewer would do. Pure.

What a throttled writer does is decided by the reasons that the service gives (AWS documentation,
"Diagnosing throttling"; service model of botocore 1.44):

    hot key range of the table   the key is hot: counted, and at the threshold shards are added
    hot key range of an index    a suffix helps only if the index key carries it: back off, say so
    provisioned throughput       the table is too small: back off, or raise it within bounds
    maximum on-demand            the owner's own cap: back off
    account limit                a quota: back off
    none                         unknown: find out; never a shard
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from keyhop.dynamodb.throttling import NO_REASON, reason_names
from keyhop.sharding.key.demand import TELL_SECONDS, Demand
from keyhop.sharding.key.names import MOST_SHARDS
from keyhop.sharding.key.shards import DRAINING, Phase, Shards

PARTITION_WRITE_UNITS = 1_000.0
"""Write units that one partition serves in a second."""
QUIET_HOURS = 24
"""Since the last change of a key, before fewer shards are proposed."""
HEADROOM = 5.0
"""How many times the busiest minute's mean may be exceeded within it."""
LASTING_SECONDS = 8
"""Of the window, in which there must be throttles for a drain that moves items to be called off."""
URGENT = 2.0
"""Of the pressure, from which new items may wait for new shards: most of them do so anyway."""
LEAST_SHARE = 0.02
"""Of the first attempts that must be throttled: below, chance fills a shard for a moment."""
SURE_SECONDS = 2.0
"""For so long throttling must last if nobody can tell how much is wanted."""
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


def cause_of(response: Mapping[str, Any]) -> Cause | None:
    """Why a write was throttled, from a throttling error's response; None if it does not say.

    Of several causes the one that more shards do not help against: they would be for nothing.
    """
    names = reason_names(response)
    if names == (NO_REASON,):
        return None
    return max((_CAUSES.get(name, Cause.UNKNOWN) for name in names), key=list(Cause).index)


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
    key look hotter than it is. throttles: of all attempts. demand: since the first of them.
    """

    window: float
    accepted: deque[float] = field(default_factory=deque)
    throttled: deque[float] = field(default_factory=deque)
    throttles: deque[float] = field(default_factory=deque)
    demand: Demand | None = None

    def note(self, at: float, *, throttled: bool, first: bool) -> None:
        if throttled:
            self.throttles.append(at)
            self.demand = self.demand or Demand(at)
        if first:
            (self.throttled if throttled else self.accepted).append(at)
        for moments in (self.accepted, self.throttled, self.throttles):
            while moments and moments[0] <= at - self.window:
                moments.popleft()
        if not self.throttles:
            self.demand = None

    @property
    def share(self) -> float:
        """Of the first attempts, those that were throttled; all, if there were retries only."""
        attempts = len(self.throttled) + len(self.accepted)
        return len(self.throttled) / attempts if attempts else 1.0

    def is_measured(self, now: float) -> bool:
        """Whether the callers' own pace is known."""
        return self.demand is not None and self.demand.measured(now) is not None

    @property
    def lasting(self) -> float:
        """Seconds from the first throttle to the last."""
        return self.throttles[-1] - self.throttles[0] if self.throttles else 0.0

    @property
    def throttled_seconds(self) -> int:
        """Seconds in which there was a throttle."""
        return len({int(at) for at in self.throttles})

    def clear(self) -> None:
        self.demand = None
        for moments in (self.accepted, self.throttled, self.throttles):
            moments.clear()

    def pressure(self, now: float) -> float:
        """Writes that are wanted for each one that is accepted, at least 1.

        Where the callers' own pace is not known, first attempts for each that was accepted. Of a
        few attempts of one writer, many may be throttled by chance, and the unluckiest of all
        writers is the one that adds shards: some accepted ones are counted on top.
        """
        measured = self.demand.measured(now, badly=True) if self.demand else None
        if measured is not None:
            return measured.pressure
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
        return shards.number + 1


@dataclass(frozen=True, slots=True)
class AsMeasured:
    """As many as the pressure calls for; one more at first, as chance fills shards unevenly.

    most_times: no step is greater: what was measured within a second may be wrong, and the next
    step is measured, too. A later step, when little is missing, goes three quarters of the way:
    more shards than needed cost every read.
    """

    most_times: int = 8

    def next_count(self, shards: Shards, now: float, pressure: float) -> int:
        if pressure >= URGENT:
            count = math.ceil(shards.number * pressure) + (shards.number == 1)
            return min(count, shards.number * self.most_times)
        missing = math.ceil(shards.number * (pressure - 1) * 0.75)
        return shards.number + min(shards.number, max(1, missing))


@dataclass(frozen=True, slots=True)
class Policy:
    """When a key gets more shards.

    threshold: throttles of one key, within `window` seconds, that one writer must see, the last of
    them `lasting` seconds after the first, if there are as many as that. start_shards: of new keys
    that are known to become hot, by key, or by prefix: "/logs/*"; the longest counts. cooldown:
    seconds for which it must have seen the metadata unchanged. spread: seconds, of which each
    writer waits a random share before it adds shards. most: shards of one key. most_in_all: shards
    that all keys of the table may have beyond their first; None: not limited.
    """

    threshold: int = 5
    window: float = 10.0
    cooldown: float = 5.0
    spread: float = 0.2
    lasting: float = 0.3
    most: int = 64
    most_in_all: int | None = None
    growth: Growth = field(default_factory=AsMeasured)
    start_shards: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST_SHARDS:
            raise ValueError(f"a key may have 1 to {MOST_SHARDS} shards, not {self.most}")
        if not all(1 <= count <= self.most for count in self.start_shards.values()):
            raise ValueError(f"start_shards may be 1 to {self.most} shards of a key")
        times = (self.window, self.cooldown, self.spread, self.lasting)
        if self.threshold < 1 or min(times) < 0:
            raise ValueError("threshold must be at least 1, the times not negative")

    def first_count(self, key: str | bytes) -> int:
        """How many shards a new key gets."""
        if not self.start_shards:
            return 1
        text = key if isinstance(key, str) else key.decode(errors="replace")
        if text in self.start_shards:
            return self.start_shards[text]
        prefixes = [
            given
            for given in self.start_shards
            if given.endswith("*") and text.startswith(given[:-1])
        ]
        return self.start_shards[max(prefixes, key=len)] if prefixes else 1


class Action(StrEnum):
    """What a writer does about a hot key, besides backing off."""

    GROW = "grow"
    WAIT = "wait"
    ASK = "ask the other processes what they have seen"
    REOPEN = "reopen"
    AT_MAXIMUM = "at maximum"


def decide(
    policy: Policy,
    shards: Shards,
    recent: RecentAttempts,
    now: float,
    known_for: float,
    at: float = 0.0,
    asked: bool = False,
) -> tuple[Action, int]:
    """What a writer does to whom the service says that this key is hot, and the new shard count.

    now: epoch seconds, for the size of the step only: clocks need not agree. known_for: seconds
    for which this writer has seen that the metadata is as it is. at: now, by the clock of `recent`.
    asked: whether the other processes have just told what they have seen.
    """
    enough = len(recent.throttles) >= policy.threshold and recent.lasting >= policy.lasting
    left = 0.0 if shards.is_new else shards.settle - known_for
    if not enough or left > TELL_SECONDS:
        return Action.WAIT, shards.number
    if shards.phase in DRAINING:
        # Its own moves are throttled as well, and yield: what they cause ends, heat lasts.
        lasting = min(LASTING_SECONDS, policy.window * 0.8)
        if left > 0 or (shards.phase is Phase.MOVING and recent.throttled_seconds < lasting):
            return Action.WAIT, shards.number
        return Action.REOPEN, shards.number
    is_cooling = known_for + TELL_SECONDS < policy.cooldown and not shards.is_new
    is_growing = shards.phase not in (Phase.STEADY, Phase.OPENED, Phase.WIDENED)
    if is_cooling or is_growing or recent.share < LEAST_SHARE:
        return Action.WAIT, shards.number
    if shards.number >= policy.most:
        return Action.AT_MAXIMUM, shards.number
    is_measured = recent.is_measured(at)
    if not is_measured and not asked:
        return Action.ASK, shards.number  # and so all have told theirs when growth may begin
    is_sure = is_measured or recent.lasting >= min(SURE_SECONDS, policy.window / 2)
    is_cooling = known_for < policy.cooldown and not shards.is_new
    if left > 0 or is_cooling or not is_sure:
        return Action.WAIT, shards.number
    number = policy.growth.next_count(shards, now, recent.pressure(at))
    return Action.GROW, min(policy.most, max(shards.number + 1, number))


def fewer_shards(
    shards: Shards, traffic: Mapping[int, float] | None, now: float
) -> tuple[int, str] | None:
    """The count that would do, and why; None: leave it.

    traffic: write units by epoch minute, as writers have reported them; None: it is not known. Of
    no report nobody knows whether it means no writes. now: epoch seconds.
    """
    if traffic is None:
        return None
    if shards.phase is not Phase.STEADY or now - shards.last_updated < QUIET_HOURS * 3600:
        return None
    since = int(now // 60) - QUIET_HOURS * 60
    reported = [units for minute, units in traffic.items() if minute >= since]
    if not reported:
        return None
    busiest = max(reported) / 60
    number = max(1, math.ceil(busiest * HEADROOM / PARTITION_WRITE_UNITS))
    if number >= shards.number:
        return None
    return number, f"the busiest minute of {QUIET_HOURS} h had {busiest:.0f} write units a second"
