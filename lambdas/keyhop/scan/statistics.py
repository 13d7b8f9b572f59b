"""Estimates from samples of segments: the number of keys, their cost, and the intervals. Pure."""

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from keyhop.dynamodb.units import PAGE_BYTES, UNITS_PER_BLOCK, blocks_of
from keyhop.scan.page_size import Ledger

Z = 1.959964
"""The number of standard deviations within which 95 % of a normal distribution lie."""

TAIL = 0.025
"""The share of a distribution that is excluded on each side."""

TINY = 1e-300


def proportion_limits(count: float, n: float) -> tuple[float, float]:
    """Return 95 % limits of a proportion, by Clopper and Pearson (1934): never too narrow.

    The numbers need not be whole: an effective sample size is not (Korn and Graubard 1998).
    """
    if n <= 0:
        return 0.0, 1.0
    count = min(n, max(0.0, count))
    low = 0.0 if count <= 0 else beta_quantile(TAIL, count, n - count + 1)
    high = 1.0 if count >= n else beta_quantile(1 - TAIL, count + 1, n - count)
    return low, high


def rank_limits(n: int, level: float) -> tuple[int, int]:
    """Return the ranks (1 to n; 0 and n + 1 for none) between which a quantile lies at 95 %."""
    low = 0
    while low < n and _binomial_below(low + 1, n, level) <= TAIL:
        low += 1
    high = n + 1
    while high > 1 and 1 - _binomial_below(high - 1, n, level) <= TAIL:
        high -= 1
    return low, high


def t_quantile(freedom: float) -> float:
    """Return the two-sided 95 % quantile of Student's t (Cornish and Fisher); from 3 on good to
    2 %. Infinite without a degree of freedom.
    """
    if freedom < 1:
        return math.inf
    if freedom < 3:
        return (12.706, 4.303)[int(freedom) - 1]
    z = Z
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution for a probability, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if beta_below(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_below(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_below(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    c, d = 1.0, 1 / max(TINY, 1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * result / a


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def _binomial_below(count: int, n: int, level: float) -> float:
    """Return the chance of fewer than `count` of n."""
    return 0.0 if count <= 0 else 1 - beta_below(level, count, n - count + 1)


UNKNOWN_KEYS = 10_000.0
"""The number of keys for which a run is planned if nothing is known."""

KEYS_PER_SAMPLE = 8
"""The keys of a sampled segment: rarely none, and few enough for many segments."""

SIMULATED_KEYS = 3_000
"""The number of keys with which the cost of the ledger's learning is small."""

ENDLESS = 1 << 40


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval."""

    mean: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Interval":
        return Interval(self.mean * factor, self.low * factor, self.high * factor)


SeenCollection = tuple[int, bool]
"""The number of items of an item collection in a sample, and whether these are all of its items. So
collections sort by length; of equal lengths, the incomplete ones come first."""


@dataclass(frozen=True, slots=True)
class SegmentSample:
    """One segment of `segments`, read in pages of about 4 KB with hops.

    Attributes:
        whole: Whether it was read to its end; otherwise it holds more than was seen.
        units: Its cost in read units.
        first_blocks: The cost of the first items of its pages alone, if known.
    """

    segments: int
    whole: bool
    collections: tuple[SeenCollection, ...]
    pages: int
    units: float
    first_blocks: float

    @property
    def keys(self) -> int:
        return len(self.collections)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The cost of a skip-scan: means for each distinct key."""

    units_per_key: float
    requests_per_key: float


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a sample about a table.

    Attributes:
        keys: The number of distinct partition keys.
        item_bytes: The mean size of an item.
        latency: The seconds that a request took.
    """

    keys: Interval
    skip: Forecast
    published_units_per_key: float
    item_bytes: float
    latency: float
    exact: bool = False


def rough_keys(looks: Sequence[SegmentSample], item_count: int) -> float:
    """Return the likeliest number of keys, from a few segments of various sizes.

    The keys of a segment are a Poisson count, because they are hashed. A segment that was not read
    to its end has at least as many keys as were seen. If none was read to its end, the answer is
    ten keys for each of the smallest segments. Without any look it is the item count.
    """
    if not looks:
        return item_count or UNKNOWN_KEYS
    upper_exponent = math.log10(10 * max(look.segments for look in looks))
    candidates = [10 ** (upper_exponent * step / 200) for step in range(201)]
    return max(candidates, key=lambda keys: sum(_log_likelihood(look, keys) for look in looks))


def _log_likelihood(look: SegmentSample, keys: float) -> float:
    mean = keys / look.segments
    if look.whole:
        return look.keys * math.log(mean) - mean
    term = below = math.exp(-mean)
    for count in range(1, look.keys):
        term *= mean / count
        below += term
    return math.log(max(1e-300, 1 - below))


def rough_interval(looks: Sequence[SegmentSample], rough: float, keys_found: int) -> Interval:
    """Return `rough` with the interval that the seen keys allow; `keys_found` exist for certain."""
    keys_seen = max(1, sum(look.keys for look in looks))
    scaled = count_interval([keys_seen]).scaled(rough / keys_seen)
    return Interval(
        max(keys_found, scaled.mean), max(keys_found, scaled.low), max(keys_found, scaled.high)
    )


def findings_of(
    samples: Sequence[SegmentSample], item_bytes: float, latency: float, chance: random.Random
) -> Findings | None:
    """Return what whole segments of one size show about the table; None if there are none."""
    if not samples:
        return None
    segments = samples[0].segments
    keys = sum(sample.keys for sample in samples)
    exact = len(samples) == segments
    interval = count_interval([sample.keys for sample in samples]).scaled(segments / len(samples))
    if exact:
        interval = Interval(keys, keys, keys)
    findings = findings_of_parts(samples, interval, item_bytes, latency, chance)
    return findings and replace(findings, exact=exact)


def findings_of_parts(
    looks: Sequence[SegmentSample],
    keys: Interval,
    item_bytes: float,
    latency: float,
    chance: random.Random,
) -> Findings | None:
    """Return what segments of any size show about a table that has an estimated number of keys.

    If no segment was read to its end, that is too little for a sample, so return None.
    """
    if not any(look.whole for look in looks):
        return None
    collections = [collection for look in looks for collection in look.collections]
    pages = sum(look.pages for look in looks)
    first_blocks = sum(look.first_blocks for look in looks) / max(1, pages)
    return Findings(
        keys=keys,
        skip=forecast(collections, item_bytes, chance),
        published_units_per_key=UNITS_PER_BLOCK * max(1.0, first_blocks),
        item_bytes=item_bytes,
        latency=latency,
    )


def count_interval(counts: Sequence[int]) -> Interval:
    """Return the total of `counts`, each from a random segment, with its interval.

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


def forecast(
    sample: Sequence[SeenCollection], item_bytes: float, chance: random.Random
) -> Forecast:
    """Return the cost of a skip-scan of many such collections, with items of `item_bytes` bytes.

    The collections are drawn again and again into a simulated table, and the ledger itself works
    through it.
    """
    if not sample:
        return Forecast(UNITS_PER_BLOCK, 1.0)
    lengths = list(_drawn(sample, chance))
    ledger = Ledger.for_table(item_bytes)
    most_items = max(1, int(PAGE_BYTES / item_bytes))
    requests = blocks = key = 0
    while key < len(lengths):
        bet = ledger.bet()
        remaining = limit = min(bet.limit, most_items)
        runs: list[int] = []
        while remaining and key < len(lengths):
            run = min(remaining, lengths[key])
            runs.append(run)
            remaining -= run
            key += 1
        cost = blocks_of((limit - remaining) * item_bytes)
        ledger.settle(bet, runs, cost)
        requests += 1
        blocks += cost
    return Forecast(UNITS_PER_BLOCK * blocks / len(lengths), requests / len(lengths))


def _drawn(sample: Sequence[SeenCollection], chance: random.Random) -> Iterator[int]:
    """Yield lengths; cut ones are "redistributed to the right" to longer ones (Efron 1967)."""
    by_length = sorted(sample)
    for items, is_whole in chance.choices(sample, k=SIMULATED_KEYS):
        while not is_whole:
            no_shorter = bisect_right(by_length, (items, is_whole))
            if no_shorter == len(by_length):
                items, is_whole = ENDLESS, True
            else:
                items, is_whole = by_length[chance.randrange(no_shorter, len(by_length))]
        yield items
