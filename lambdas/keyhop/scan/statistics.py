"""What samples of a table's segments say about the whole. Pure."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.scan.cost_simulation import Forecast, SeenCollection, forecast

UNKNOWN_KEYS = 10_000.0
"""How many keys to lay a run out for if nothing at all is known."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval."""

    mean: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Interval":
        """All three, times `factor`."""
        return Interval(self.mean * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class SegmentSample:
    """One segment of `segments`, read in pages of about 4 KB, hopping.

    whole: to its end; otherwise it holds more than was seen. units: what it cost. first_blocks:
    what the first items of its pages would have cost alone, as far as that is known.
    """

    segments: int
    whole: bool
    collections: tuple[SeenCollection, ...]
    pages: int
    units: float
    first_blocks: float

    @property
    def keys(self) -> int:
        """Distinct keys of the segment."""
        return len(self.collections)


@dataclass(frozen=True, slots=True)
class Findings:
    """What sampling found out about a table.

    keys: distinct partition keys. skip: what a skip-scan costs per key. item_bytes: of an item, on
    average. latency: seconds that a request took.
    """

    keys: Interval
    skip: Forecast
    published_units_per_key: float
    item_bytes: float
    latency: float
    exact: bool = False


def rough_keys(looks: Sequence[SegmentSample], item_count: int) -> float:
    """How many keys there are, roughly: the likeliest number, by a few segments of various sizes.

    The keys of a segment are a Poisson count, because they are hashed. A segment that was not read
    to its end has at least as many as were seen; if none was, the answer is ten for each of the
    smallest segments. Without any look it is the item count.
    """
    if not looks:
        return item_count or UNKNOWN_KEYS
    most = math.log10(10 * max(look.segments for look in looks))
    candidates = [10 ** (most * step / 200) for step in range(201)]
    return max(candidates, key=lambda keys: sum(_log_likelihood(look, keys) for look in looks))


def rough_interval(looks: Sequence[SegmentSample], rough: float, found: int) -> Interval:
    """`rough` keys, with the interval that as many keys as the looks have seen allow it.

    found: keys that are there for certain.
    """
    seen = max(1, sum(look.keys for look in looks))
    told = count_interval([seen]).scaled(rough / seen)
    return Interval(max(found, told.mean), max(found, told.low), max(found, told.high))


def _log_likelihood(look: SegmentSample, keys: float) -> float:
    mean = keys / look.segments
    if look.whole:
        return look.keys * math.log(mean) - mean
    term = below = math.exp(-mean)
    for count in range(1, look.keys):
        term *= mean / count
        below += term
    return math.log(max(1e-300, 1 - below))


def findings_of(
    samples: Sequence[SegmentSample], item_bytes: float, latency: float, chance: random.Random
) -> Findings | None:
    """What samples of segments of one size say about the whole; None if there are none."""
    if not samples:
        return None
    segments = samples[0].segments
    keys = sum(sample.keys for sample in samples)
    pages = sum(sample.pages for sample in samples)
    exact = len(samples) == segments
    interval = count_interval([sample.keys for sample in samples])
    expected = forecast([c for sample in samples for c in sample.collections], item_bytes, chance)
    first_blocks = sum(sample.first_blocks for sample in samples) / max(1, pages)
    return Findings(
        keys=Interval(keys, keys, keys) if exact else interval.scaled(segments / len(samples)),
        skip=expected,
        published_units_per_key=UNITS_PER_BLOCK * max(1.0, first_blocks),
        item_bytes=item_bytes,
        latency=latency,
        exact=exact,
    )


def count_interval(counts: Sequence[int]) -> Interval:
    """Total of `counts`, each from a random segment, with the interval that chance allows it.

    Partition keys are hashed, so the keys of a segment are a Poisson count: exact limits by Garwood
    (1936) in Wilson and Hilferty's approximation, widened if the counts vary more than that.
    """
    total = sum(counts)
    z = 1.96
    low = 0.0
    if total:
        low = total * (1 - 1 / (9 * total) - z / (3 * math.sqrt(total))) ** 3
    more = total + 1
    high = more * (1 - 1 / (9 * more) + z / (3 * math.sqrt(more))) ** 3
    spread = math.sqrt(max(1.0, _dispersion(counts)))
    return Interval(
        float(total), max(0.0, total - spread * (total - low)), total + spread * (high - total)
    )


def _dispersion(counts: Sequence[int]) -> float:
    if len(counts) < 10 or not sum(counts):
        return 1.0
    mean = sum(counts) / len(counts)
    return sum((c - mean) ** 2 for c in counts) / (len(counts) - 1) / mean
