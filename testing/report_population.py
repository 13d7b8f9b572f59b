"""Models of tables with given lengths of item collections, and of a report's sampler.

No items are stored: a collection is a rank, a segment is a Poisson number of random ranks, and read
units are counted as the service charges them. `LengthProber` itself measures the lengths of
collections of several pages: a library of its estimates for Poisson times is made once, and the
sampler draws from it.
"""

import math
import random
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from statistics import NormalDist

from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import distinct_keys
from keyhop.report.statistics.sort_key import SortKey
from keyhop.report.statistics.window import Ask, LengthProber

PER_BLOCK = 7
"""The items of 500 bytes in a block of 4 KB, with room for larger ones."""

KEYS_PER_SEGMENT = 8
FOR_KEYS = 0.25
"""The share of the budget for segments in which only keys are counted."""

PROBE_UNITS = 3.0
MEAN = 1_000


@dataclass(frozen=True)
class Population:
    """A table, given the lengths of its collections in ascending order."""

    name: str
    lengths: array

    @property
    def keys(self) -> int:
        return len(self.lengths)

    @property
    def items(self) -> float:
        return self.sums[-1]

    @property
    def sums(self) -> array:
        return _sums(self)

    def quantile(self, level: float) -> float:
        return self.lengths[min(self.keys - 1, int(self.keys * level))]

    def share_from(self, threshold: float) -> float:
        """Return the share of items in collections with at least this length."""
        at = bisect_left(self.lengths, threshold)
        return 1 - (self.sums[at - 1] if at else 0.0) / self.items

    def gini(self) -> float:
        weighted = math.fsum(rank * length for rank, length in enumerate(self.lengths, 1))
        return 2 * weighted / (self.keys * self.items) - (self.keys + 1) / self.keys

    def __hash__(self) -> int:
        return hash((self.name, self.keys))


@cache
def _sums(population: Population) -> array:
    return array("d", accumulate(population.lengths))


def _lognormal(keys: int, sigma: float) -> list[float]:
    normal = NormalDist(math.log(MEAN) - sigma**2 / 2, sigma)
    return [math.exp(normal.inv_cdf((rank + 0.5) / keys)) for rank in range(keys)]


def _zipf(keys: int, exponent: float) -> list[float]:
    weights = [rank**-exponent for rank in range(keys, 0, -1)]
    scale = MEAN * keys / math.fsum(weights)
    return [scale * weight for weight in weights]


def _with_giants(keys: int, giants: int, share: float) -> list[float]:
    """Return lognormal lengths with sigma 1, and equal giants that together have this share."""
    rest = _lognormal(keys - giants, 1.0)
    return [*rest, *[math.fsum(rest) * share / (1 - share) / giants] * giants]


MAKERS: dict[str, Callable[[int], Sequence[float]]] = {
    "equal": lambda keys: [float(MEAN)] * keys,
    "lognormal, sigma 1": lambda keys: _lognormal(keys, 1.0),
    "lognormal, sigma 2": lambda keys: _lognormal(keys, 2.0),
    "Zipf 1.0": lambda keys: _zipf(keys, 1.0),
    "one key of 40 %": lambda keys: _with_giants(keys, 1, 0.4),
    "200 keys of 47 %": lambda keys: _with_giants(keys, 200, 0.47),
}


@cache
def population(name: str, keys: int = 200_000) -> Population:
    """Return one of MAKERS, with a mean of a thousand items per key."""
    lengths = sorted(max(1.0, round(length)) for length in MAKERS[name](keys))
    return Population(name, array("d", lengths))


class Collection:
    """An item collection with these sort keys in order, which answers like a Query."""

    def __init__(self, keys: Sequence[SortKey]) -> None:
        self._keys = keys

    def page(self, ask: Ask) -> list[SortKey]:
        if ask.start is None:
            at = 0 if ask.forward else len(self._keys)
        else:
            at = bisect_left(self._keys, ask.start)
        if ask.forward:
            return list(self._keys[at : at + ask.limit])
        return list(reversed(self._keys[max(0, at - ask.limit) : at]))


class Endless(Collection):
    """A collection of about `items` items at Poisson times, which are generated when they are read.

    The items of a tick are always drawn from the same seed. `write` makes a sort key of a number in
    [0, items / 10) with 6 decimals; `read` is its inverse.
    """

    PER_TICK = 10

    def __init__(
        self,
        items: int,
        seed: int,
        write: Callable[[float], SortKey],
        read: Callable[[SortKey], float],
    ) -> None:
        self._ticks, self._seed = items // self.PER_TICK, seed
        self._write, self._read = write, read

    def _tick(self, tick: int) -> list[SortKey]:
        chance = random.Random(self._seed * 1_000_003 + tick)
        return sorted(
            self._write(tick + chance.random()) for _ in range(_poisson(self.PER_TICK, chance))
        )

    def page(self, ask: Ask) -> list[SortKey]:
        step = 1 if ask.forward else -1
        if ask.start is None:
            tick = 0 if ask.forward else self._ticks - 1
        else:
            tick = min(self._ticks - 1, max(0, int(self._read(ask.start))))
        keys: list[SortKey] = []
        while 0 <= tick < self._ticks and len(keys) < ask.limit:
            for key in self._tick(tick)[::step]:
                if ask.start is None or (key >= ask.start) == ask.forward:
                    keys.append(key)
            tick += step
        return keys[: ask.limit]


def probe(
    collection: Collection,
    chance: random.Random,
    budget: float,
    per_block: int = PER_BLOCK,
    head: Sequence[SortKey] = (),
) -> LengthProber:
    """Return a prober that has finished its work on a collection."""
    prober = LengthProber(chance, per_block, budget, head)
    while (ask := prober.next()) is not None:
        prober.take(collection.page(ask))
    return prober


def poisson_times(items: int, chance: random.Random, gap: float = 1e9) -> list[int]:
    """Return ascending times in nanoseconds, which are therefore distinct."""
    at, times = 1.7e18, []
    for _ in range(items):
        at += chance.expovariate(1 / gap)
        times.append(int(at))
    return times


@cache
def library(size: int = 1_500, budget: float = PROBE_UNITS) -> tuple[Estimate, ...]:
    """Return the prober's estimates for collections with Poisson times, scaled to length 1."""
    chance = random.Random(7)
    items = 500
    return tuple(
        probe(Collection(poisson_times(items, chance)), chance, budget).estimate().scaled(1 / items)
        for _ in range(size)
    )


@dataclass(frozen=True)
class Sample:
    """The data that a budget buys.

    Attributes:
        lengths: The lengths of collections that were drawn uniformly.
        item_count: The number of items that DescribeTable reports.
    """

    lengths: list[Estimate]
    keys: Estimate
    item_count: float
    rru: float


def sample(table: Population, budget: float, chance: random.Random) -> Sample:
    """Skip-scan random segments as long as the budget certainly suffices.

    In the first segments, each collection of more than one page is probed; in the others, only keys
    are counted.
    """
    segments = max(1, round(table.keys / KEYS_PER_SEGMENT))
    counts: list[int] = []
    lengths: list[Estimate] = []
    spent = largest_cost = 0.0
    probe_budget = (1 - FOR_KEYS) * budget
    while len(counts) < segments:
        is_probing = spent + largest_cost < probe_budget
        if spent + (largest_cost if is_probing else 12) > budget:
            break
        collections = [
            table.lengths[chance.randrange(table.keys)]
            for _ in range(_poisson(table.keys / segments, chance))
        ]
        counts.append(len(collections))
        cost = _segment_units(collections)
        if is_probing:
            for length in collections:
                estimate, units = _length(length, chance)
                lengths.append(estimate)
                cost += units
            largest_cost = max(largest_cost, 1.5 * cost)
        spent += cost
    keys = distinct_keys(counts, segments)
    assert keys is not None
    return Sample(lengths, keys, table.items, spent)


def _segment_units(lengths: Sequence[float]) -> float:
    """Return the read units of a segment: pages of one block, with a hop after a cut collection."""
    pages, room = 1, PER_BLOCK
    for length in lengths:
        if length < room:
            room -= int(length)
        else:
            pages, room = pages + 1, PER_BLOCK
    return 0.5 * pages


def _length(length: float, chance: random.Random) -> tuple[Estimate, float]:
    """Return an estimate of a collection's length, and its read units after the first page."""
    items = int(length)
    if items < PER_BLOCK:
        return Estimate.exactly(float(items), items, "counted"), 0.0
    if items <= 2 * PER_BLOCK:
        return Estimate.exactly(float(items), items, "counted"), 1.0
    noise = chance.choice(library())
    return noise.scaled(length), PROBE_UNITS


def _poisson(mean: float, chance: random.Random) -> int:
    count, product, limit = 0, chance.random(), math.exp(-mean)
    while product > limit:
        count += 1
        product *= chance.random()
    return count


def stale(sample: Sample, factor: float) -> Sample:
    """Return the sample with an item count that is wrong by this factor."""
    return replace(sample, item_count=sample.item_count * factor)
