"""Tables by the lengths of their item collections, and what a sampler of a report sees of them.

Nothing is stored: a collection is a rank, a segment a Poisson number of random ranks, a read unit
is counted as the service would charge it. Lengths of collections of several pages are measured by
`LengthProber` itself: a library of what it says of collections with Poisson times is made once, and
drawn from.
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
"""Items of 500 bytes in one block of 4 KB, with room for larger ones."""

KEYS_PER_SEGMENT = 8
FOR_KEYS = 0.25
"""Of the budget, for segments of which the keys alone are counted."""

PROBE_UNITS = 3.0
MEAN = 1_000


@dataclass(frozen=True)
class Population:
    """A table. lengths: items per collection, ascending."""

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
        """Of all items, in collections of at least so many."""
        at = bisect_left(self.lengths, threshold)
        return 1 - (self.sums[at - 1] if at else 0.0) / self.items

    def gini(self) -> float:
        weighted = math.fsum(rank * one for rank, one in enumerate(self.lengths, 1))
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
    """Lognormal of sigma 1, and a few equal ones that hold the share."""
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
    """One of MAKERS, a thousand items a key on average."""
    return Population(name, array("d", sorted(max(1.0, round(one)) for one in MAKERS[name](keys))))


class Collection:
    """An item collection by its sort keys, in their order; how a Query answers."""

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
    """A collection of about `items` items at Poisson times that is made where it is looked at.

    Of each tick the items are drawn anew, from the same seed. write: a number in [0, items / 10),
    with 6 decimals, as a sort key; read: the number back.
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
        found: list[SortKey] = []
        while 0 <= tick < self._ticks and len(found) < ask.limit:
            for key in self._tick(tick)[::step]:
                if ask.start is None or (key >= ask.start) == ask.forward:
                    found.append(key)
            tick += step
        return found[: ask.limit]


def probe(
    collection: Collection,
    chance: random.Random,
    budget: float,
    per_block: int = PER_BLOCK,
    head: Sequence[SortKey] = (),
) -> LengthProber:
    """A prober that has done its work on a collection."""
    prober = LengthProber(chance, per_block, budget, head)
    while (ask := prober.next()) is not None:
        prober.take(collection.page(ask))
    return prober


def poisson_times(items: int, chance: random.Random, gap: float = 1e9) -> list[int]:
    """Ascending: nanoseconds, so that no two are alike."""
    at, times = 1.7e18, []
    for _ in range(items):
        at += chance.expovariate(1 / gap)
        times.append(int(at))
    return times


@cache
def library(size: int = 1_500, budget: float = PROBE_UNITS) -> tuple[Estimate, ...]:
    """What the prober says of collections with Poisson times, each of length 1."""
    chance = random.Random(7)
    items = 500
    return tuple(
        probe(Collection(poisson_times(items, chance)), chance, budget).estimate().scaled(1 / items)
        for _ in range(size)
    )


@dataclass(frozen=True)
class Seen:
    """What a budget buys. lengths: of collections drawn uniformly. item_count: as reported."""

    lengths: list[Estimate]
    keys: Estimate
    item_count: float
    rru: float


def sample(table: Population, budget: float, chance: random.Random) -> Seen:
    """Whole random segments, skip-scanned: in the first ones each collection that was cut is
    probed, in the others keys are counted. Nothing is begun that might exceed the budget.
    """
    segments = max(1, round(table.keys / KEYS_PER_SEGMENT))
    counts: list[int] = []
    lengths: list[Estimate] = []
    spent = dearest = 0.0
    measured = (1 - FOR_KEYS) * budget
    while len(counts) < segments:
        probing = spent + dearest < measured
        if spent + (dearest if probing else 12) > budget:
            break
        drawn = [
            table.lengths[chance.randrange(table.keys)]
            for _ in range(_poisson(table.keys / segments, chance))
        ]
        counts.append(len(drawn))
        cost = _segment_units(drawn)
        if probing:
            for length in drawn:
                estimate, units = _length(length, chance)
                lengths.append(estimate)
                cost += units
            dearest = max(dearest, 1.5 * cost)
        spent += cost
    keys = distinct_keys(counts, segments)
    assert keys is not None
    return Seen(lengths, keys, table.items, spent)


def _segment_units(drawn: Sequence[float]) -> float:
    """Pages of one block; a hop after a collection that goes on, and one at the end."""
    pages, left = 1, PER_BLOCK
    for length in drawn:
        if length < left:
            left -= int(length)
        else:
            pages, left = pages + 1, PER_BLOCK
    return 0.5 * pages


def _length(length: float, chance: random.Random) -> tuple[Estimate, float]:
    """Of one collection, and the read units beyond the page that found it."""
    whole = int(length)
    if whole < PER_BLOCK:
        return Estimate.exactly(float(whole), whole, "counted"), 0.0
    if whole <= 2 * PER_BLOCK:
        return Estimate.exactly(float(whole), whole, "counted"), 1.0
    noise = chance.choice(library())
    return noise.scaled(length), PROBE_UNITS


def _poisson(mean: float, chance: random.Random) -> int:
    count, product, limit = 0, chance.random(), math.exp(-mean)
    while product > limit:
        count += 1
        product *= chance.random()
    return count


def stale(seen: Seen, factor: float) -> Seen:
    """The same with an ItemCount that is so many times the truth."""
    return replace(seen, item_count=seen.item_count * factor)
