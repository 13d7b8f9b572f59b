"""When to add shards, how many, and when to propose fewer; and how fast a drain moves. Pure.

A throttled writer decides by the reasons that the service gives (AWS documentation, "Diagnosing
throttling"; service model of botocore 1.44):

    hot key range of the table   the key is hot: count; at the threshold, add shards
    hot key range of an index    a suffix helps only if it is in the index key: back off, warn
    provisioned throughput       the table is too small: back off, or raise it within bounds
    maximum on-demand            the owner's limit: back off
    account limit                a quota: back off
    none                         unknown: find out; never add a shard
"""

import math
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from keyhop.checks import MOST_NUMBER, number, shown, whole
from keyhop.dynamodb.throttling import NO_REASON, reason_names
from keyhop.dynamodb.units import PARTITION_WRITE_UNITS
from keyhop.sharding.key.shards import DRAINING, MOST_SHARDS, Phase, Shards

SUPPOSED = 1
"""Requested and accepted writes that are assumed beforehand, because few writes show little."""
LEAST_CYCLES = 8
POOLED_CYCLES = 5
"""The minimum number of cycles for measuring the callers' pace: in one process, and in all. All
processes together need fewer, because random variations are smaller.
"""
LEAST_ACCEPTED = 25
"""The minimum number of accepted writes, of one process or of all, for an accurate measurement."""
RECENT_SECONDS = 0.2
"""The longest cycle before a caller's first throttle that counts, as a longer one may be of a time
before the burst.
"""
WAIT_SECONDS = 0.12
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

    def note_request(self, caller: Hashable, at: float) -> None:
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
        observed, callers = self.sums(now), len(self.callers)
        is_enough = observed.are_enough(LEAST_CYCLES) and self.accepted >= LEAST_ACCEPTED
        if is_enough and callers >= LEAST_CALLERS:
            return observed
        pooled = self.pooled
        if badly:
            return pooled if pooled.are_enough(FEW_CYCLES) else None
        is_enough = pooled.are_enough(POOLED_CYCLES) and pooled.accepted >= LEAST_ACCEPTED
        return pooled if is_enough else None

    def news(self, now: float) -> Sums | None:
        """Return observations to report to other processes; None if the last report is recent."""
        seconds = TELL_CYCLES_SECONDS if self.cycles > self.reported.cycles else TELL_SECONDS
        if now - self.reported_at < seconds:
            return None
        before, self.reported_at = self.reported, now
        observed = self.sums(now)
        with_wait = observed.caller_seconds + WAIT_SECONDS
        self.reported = replace(observed, caller_seconds=with_wait)
        return self.reported - before


QUIET_HOURS = 24
"""The minimum time since a key's last change before fewer shards are proposed."""
HEADROOM = 5.0
"""The peak within the busiest minute, as a multiple of its mean."""
LASTING_SECONDS = 8
"""The seconds of the window that must have throttles before a drain in `moving` is cancelled."""
LARGE = 1.5
"""The pressure from which a step adds all shards that it requires."""
LARGEST_STEP = 32
"""The maximum factor of a step, because a measurement of one second may be wrong."""
LARGEST_UNSURE_STEP = 8
"""The same if there were too few observations for an accurate measurement."""
LEAST_SHARE = 0.02
"""The minimum share of throttled first attempts; below it, a shard may be busy by chance."""
SURE_SECONDS = 2.0
"""The minimum duration of throttling if the demand cannot be measured."""
ACCEPTED_BEFOREHAND = 4
"""Accepted attempts that are assumed before any was observed."""


class Cause(StrEnum):
    """The cause of throttling; the later one has precedence."""

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
"""Reasons for reads are not included, because they say nothing about writes."""


def cause_of(response: Mapping[str, Any]) -> Cause | None:
    """Return why a write was throttled, by the error's response; None if it has no reason. Of
    several causes, return one that more shards do not help against.
    """
    names = reason_names(response)
    if names == (NO_REASON,):
        return None
    return max((_CAUSES.get(name, Cause.UNKNOWN) for name in names), key=list(Cause).index)


def cause_by_consumption(consumed: float | None, provisioned: float | None) -> Cause:
    """Return why writes are throttled without a reason, by CloudWatch's write units a second: a key
    is hot if half of the capacity is unused. For an on-demand table (None), the answer is unknown.
    """
    if consumed is None or not provisioned:
        return Cause.UNKNOWN
    share = consumed / provisioned
    if share >= 0.8:
        return Cause.TABLE_TOO_SMALL
    return Cause.HOT_KEY if share <= 0.5 else Cause.UNKNOWN


@dataclass(slots=True)
class RecentAttempts:
    """The observations of one writer for a key in the last `window` seconds, at one shard count.

    `accepted` and `throttled` are moments of first attempts. Retries are not included, because they
    would make a key look hotter than it is. `throttles` are of all attempts.
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
        """The share of throttled first attempts; 1 if there were only retries."""
        attempts = len(self.throttled) + len(self.accepted)
        return len(self.throttled) / attempts if attempts else 1.0

    def is_measured(self, now: float) -> bool:
        """Return whether the callers' pace was measured."""
        return self.demand is not None and self.demand.measured(now) is not None

    @property
    def lasting(self) -> float:
        """Seconds from the first throttle to the last."""
        return self.throttles[-1] - self.throttles[0] if self.throttles else 0.0

    @property
    def throttled_seconds(self) -> int:
        """The number of seconds with a throttle."""
        return len({int(at) for at in self.throttles})

    def clear(self) -> None:
        self.demand = None
        for moments in (self.accepted, self.throttled, self.throttles):
            moments.clear()

    def pressure(self, now: float) -> float:
        """Return the requested writes for each accepted one, at least 1.

        If the callers' pace was not measured, this is the ratio of first attempts. Some accepted
        attempts are added, because few attempts may be throttled by chance, and the writer with the
        highest value adds shards.
        """
        measured = self.demand.measured(now, badly=True) if self.demand else None
        if measured is not None:
            return measured.pressure
        accepted = len(self.accepted) + ACCEPTED_BEFOREHAND
        return (accepted + len(self.throttled)) / accepted


@dataclass(frozen=True, slots=True)
class Policy:
    """The conditions in which a key gets more shards.

    One writer must observe `threshold` throttles within `window` seconds, with `lasting` seconds
    from the first to the last, and know the present shard count for `cooldown` seconds. Then it
    waits up to `spread` seconds at random. `most` is the maximum of one key's shards, `most_added`
    of the shards that one step adds, and `most_in_all` of all shards beyond the first of each key;
    None: no limit. `start_shards` are for new keys that will be hot, by key, or by prefix, as
    "/logs/*"; the longest prefix applies.
    """

    threshold: int = 5
    window: float = 10.0
    cooldown: float = 5.0
    spread: float = 0.2
    lasting: float = 0.3
    most: int = 64
    most_added: int | None = None
    most_in_all: int | None = None
    start_shards: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_count("most", self.most, 1, MOST_SHARDS)
        for count in self.start_shards.values():
            _check_count("a count in start_shards", count, 1, self.most)
        _check_count("threshold", self.threshold, 1)
        if self.most_added is not None:
            _check_count("most_added", self.most_added, 1)
        if self.most_in_all is not None:
            _check_count("most_in_all", self.most_in_all, 0)
        for name in ("window", "cooldown", "spread", "lasting"):
            seconds = getattr(self, name)
            if not number(0)(seconds):
                raise ValueError(f"{name} is {shown(seconds)}; it must be a number of at least 0")

    def first_count(self, key: str | bytes) -> int:
        """Return the shard count of a new key."""
        if not self.start_shards:
            return 1
        text = key if isinstance(key, str) else key.decode(errors="replace")
        if text in self.start_shards:
            return self.start_shards[text]
        prefixes = [
            prefix
            for prefix in self.start_shards
            if prefix.endswith("*") and text.startswith(prefix[:-1])
        ]
        return self.start_shards[max(prefixes, key=len)] if prefixes else 1

    def next_count(self, number: int, pressure: float, is_measured: bool = True) -> int:
        """Return the next shard count: as many as the pressure requires, and one more, as shards
        are uneven. If little is missing, three quarters of that are added, because each
        shard makes reads more expensive, and the next step is measured again.
        """
        if pressure >= LARGE:
            count = math.ceil(number * pressure) + 1
            largest = LARGEST_STEP if is_measured else LARGEST_UNSURE_STEP
            added = min(count, number * largest) - number
        else:
            added = min(number, math.ceil(number * (pressure - 1) * 0.75))
        added = max(1, added if self.most_added is None else min(self.most_added, added))
        return min(self.most, number + added)


def _check_count(name: str, count: object, low: int, high: int | None = None) -> None:
    """Raise ValueError unless a count is in the range, and an int: a range cannot end at 2.0."""
    if not isinstance(count, int) or not whole(low, high or MOST_NUMBER)(count):
        within = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} is {shown(count)}; it must be a whole number {within}")


class Action(StrEnum):
    """The action of a writer for a hot key, in addition to backing off."""

    GROW = "grow"
    WAIT = "wait"
    ASK = "ask the other processes what they have seen"
    REOPEN = "reopen"
    AT_MAXIMUM = "at maximum"


def decide(
    policy: Policy,
    shards: Shards,
    recent: RecentAttempts,
    known_for: float,
    counted_for: float,
    at: float = 0.0,
    informed: bool = False,
) -> tuple[Action, int]:
    """Return a writer's action for a hot key, and the new shard count.

    The writer has seen the present metadata for `known_for` seconds, and its shard count for
    `counted_for` seconds. `at` is now, by the clock of `recent`, and `informed` says that it has
    just read the observations of the other processes. It asks for them before it has seen enough
    itself, so that they are there when one of the processes has.
    """
    wait = 0.0 if shards.is_new else shards.settle - known_for
    if recent.lasting < policy.lasting or wait > TELL_SECONDS:
        return Action.WAIT, shards.number
    is_enough = len(recent.throttles) >= policy.threshold
    if shards.phase in DRAINING:
        # The drain's moves are throttled as well, and slow down: only other throttling lasts.
        lasting = min(LASTING_SECONDS, policy.window * 0.8)
        is_moving = shards.phase is Phase.MOVING
        if not is_enough or wait > 0 or (is_moving and recent.throttled_seconds < lasting):
            return Action.WAIT, shards.number
        return Action.REOPEN, shards.number
    cooling = 0.0 if shards.is_new else policy.cooldown - counted_for
    is_growing = shards.phase not in (Phase.STEADY, Phase.OPENED)
    if cooling > TELL_SECONDS or is_growing or recent.share < LEAST_SHARE:
        return Action.WAIT, shards.number
    if shards.number >= policy.most:
        return Action.AT_MAXIMUM if is_enough else Action.WAIT, shards.number
    is_measured = recent.is_measured(at)
    if not is_measured and not informed:
        return Action.ASK, shards.number
    is_sure = is_measured or recent.lasting >= min(SURE_SECONDS, policy.window / 2)
    if not is_enough or wait > 0 or cooling > 0 or not is_sure:
        return Action.WAIT, shards.number
    return Action.GROW, policy.next_count(shards.number, recent.pressure(at), is_measured)


def fewer_shards(
    shards: Shards, traffic: Mapping[int, float] | None, now: float
) -> tuple[int, str] | None:
    """Return a lower sufficient shard count and the reason, or None, by write units by epoch minute
    as writers reported them. A missing report does not mean no writes. `now` is in epoch seconds.
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

    def note_moved(self, units: float) -> None:
        """Record a move, and its write units."""
        self.each = max(1.0, units)
        maximum = MOST_UNITS * self.targets
        self.rate = min(maximum, self.rate + maximum / RECOVERY_SECONDS * self.each / self.rate)
