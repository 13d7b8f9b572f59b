"""What a partition would have thought of a stream of writes: throttles under another key. Pure.

Each key has a bucket of tokens, as a partition that holds this key alone: 1,000 write units a
second, and what it did not use in the last five minutes at most. No split is reckoned with.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from keyhop.report.estimate import Estimate

RATE = 1_000.0
BURST_SECONDS = 300.0
METHOD = "stream replayed per key"


@dataclass(frozen=True, slots=True)
class Write:
    """time: epoch seconds. units: write units that it costs."""

    time: float
    key: Hashable
    units: float


@dataclass(frozen=True, slots=True)
class Replay:
    """throttled: share of write units. peak: units of the busiest key-second. keys: throttled."""

    throttled: Estimate
    peak: float
    keys: int


def replay(
    writes: Sequence[Write], rate: float = RATE, burst: float = BURST_SECONDS
) -> Replay | None:
    """Share of the units that would have been refused; None of no writes.

    The value and its low end take a partition that was at rest before, with `burst` seconds saved;
    the high end one that had nothing saved but a second.
    """
    if not writes:
        return None
    order = sorted(writes, key=lambda write: write.time)
    total = sum(write.units for write in order)
    rested, keys = _refused(order, rate, burst * rate, burst * rate)
    tired, _ = _refused(order, rate, burst * rate, rate)
    share = rested / total
    estimate = Estimate(share, share, max(share, tired / total), len(order), METHOD)
    return Replay(estimate, _peak(order), keys)


def _refused(order: Iterable[Write], rate: float, burst: float, saved: float) -> tuple[float, int]:
    buckets: dict[Hashable, tuple[float, float]] = {}
    refused = 0.0
    keys: set[Hashable] = set()
    for write in order:
        tokens, at = buckets.get(write.key, (saved, write.time))
        tokens = min(burst, tokens + (write.time - at) * rate)
        if tokens + 1e-9 >= min(write.units, burst):
            tokens -= write.units
        else:
            refused += write.units
            keys.add(write.key)
        buckets[write.key] = (tokens, write.time)
    return refused, len(keys)


def _peak(order: Iterable[Write]) -> float:
    seconds: defaultdict[tuple[Hashable, int], float] = defaultdict(float)
    for write in order:
        seconds[write.key, int(write.time)] += write.units
    return max(seconds.values())
