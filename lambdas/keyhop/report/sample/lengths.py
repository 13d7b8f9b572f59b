"""The length of a collection without reading it, and the hash place of its key. Pure: see asks.py.

statistics/window.py decides what to read next, and evaluates it.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Item, Key, TypedValue, has_values, size_of
from keyhop.report.estimate import Estimate
from keyhop.report.sample.asks import Ask, Asks
from keyhop.report.statistics.sort_key import SortKey
from keyhop.report.statistics.window import LengthProber
from keyhop.scan.page_size import FILL

MOST_PER_BLOCK = 100
"""The maximum number of items of a window: more hardly improve a length, and take longer."""

PLACE_BITS = 12


@dataclass(frozen=True, slots=True)
class Probed:
    """A collection whose length was probed.

    Attributes:
        length: The estimated length.
        whole: Whether every item was read.
        items: The items that were read.
        weights: The number of items that each of `items` represents; empty if each represents one.
    """

    length: Estimate
    whole: bool
    items: Sequence[Item]
    weights: Sequence[float] = ()

    @property
    def weighted(self) -> list[tuple[Item, float]]:
        weights = self.weights or [1.0] * len(self.items)
        return [*zip(self.items, weights, strict=True)]

    @property
    def mean_bytes(self) -> float:
        """Return the mean size of an item; 0 without items."""
        total = sum(weight for _, weight in self.weighted)
        return sum(weight * size_of(item) for item, weight in self.weighted) / total if total else 0


def probe(
    space: KeySpace,
    key: Key,
    mean: float,
    ours: Sequence[Key],
    units: float,
    chance: random.Random,
    through: float = 0.0,
) -> Asks[Probed]:
    """Estimate the length of a collection of a table with a sort key.

    Args:
        space: The keys of the table.
        key: The partition key.
        mean: The approximate bytes of an item.
        ours: The attributes that identify items of Keyhop.
        units: The approximate read units to use.
        chance: The random numbers.
        through: The read units to read it from its beginning, perhaps to its end, if its sort keys
            are not numbers.
    """
    assert space.sort is not None
    sort = space.sort
    per_block = min(MOST_PER_BLOCK, max(1, int(FILL * BLOCK_BYTES / max(1.0, mean))))
    prober = LengthProber(chance, per_block, units)
    items_by_key: dict[SortKey, Item] = {}
    while (ask := prober.next()) is not None:
        at = None if ask.start is None else _value(ask.start, sort.type)
        answer = yield Ask.query(key, sort.name, at, ask.forward, ask.limit, beyond=not ask.forward)
        keys = [sort_key(item[sort.name]) for item in answer.items]
        items_by_key.update(zip(keys, answer.items, strict=True))
        prober.take(keys, answer.units)
    length = prober.estimate()
    weights = prober.weights()
    if math.isinf(length.high) and through * BLOCK_BYTES > mean * per_block:
        limit = max(per_block, int(through / UNITS_PER_BLOCK * BLOCK_BYTES / max(1.0, mean)))
        answer = yield Ask.query(key, limit=limit)
        read = {sort_key(item[sort.name]): item for item in answer.items}
        items_by_key.update(read)
        if answer.next is None:
            length = Estimate.exactly(float(len(read)), len(read), "read through")
        else:
            length = Estimate.at_least(float(len(items_by_key)), len(items_by_key), length.method)
        weights = [(at, 1.0) for at in items_by_key]
    ours_by_key = {
        at
        for at, item in items_by_key.items()
        if any(has_values(item, attributes) for attributes in ours)
    }
    is_whole = length.level == 1.0
    if is_whole:
        length = Estimate.exactly(
            length.value - len(ours_by_key), length.n - len(ours_by_key), length.method
        )
    weighted = [(items_by_key[at], weight) for at, weight in weights if at not in ours_by_key]
    return Probed(
        length, is_whole, [item for item, _ in weighted], [weight for _, weight in weighted]
    )


def place(space: KeySpace, key: Key, bits: int = PLACE_BITS) -> Asks[float]:
    """Return the hash place of a partition key in [0, 1), to `bits` bits.

    Segment s of T holds the hashes from s/T to (s+1)/T, and a Scan refuses an ExclusiveStartKey of
    another segment. So each answer halves the interval. Each segment that does not refuse the key
    costs half a unit.
    """
    start = key if space.sort is None else space.hop_from(key)
    segment = 0
    for known_bits in range(bits):
        segment *= 2
        answer = yield Ask.scan(segment, 2 << known_bits, start, limit=1, may_be_refused=True)
        segment += answer.refused
    return (segment + 0.5) / (1 << bits)


def sort_key(value: TypedValue) -> SortKey:
    """Return a sort key as the statistics need it.

    Binary keys are given by their hexadecimal digits, which have the same order.
    """
    if "N" in value:
        number = Decimal(value["N"])
        return int(number) if number == number.to_integral_value() else number
    return str(value["S"]) if "S" in value else bytes(value["B"]).hex()


def _value(key: SortKey, type_: str) -> TypedValue:
    if type_ == "N":
        return {"N": str(key)}
    if type_ == "S":
        return {"S": str(key)}
    text = str(key)
    return {"B": bytes.fromhex(text[: len(text) // 2 * 2])}
