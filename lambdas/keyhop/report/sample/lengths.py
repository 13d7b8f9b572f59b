"""How long a collection is, without reading it, and where its key lies. Pure: asks (asks.py).

What to read next, and what that says, is decided by statistics/window.py and statistics/place.py.
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
from keyhop.report.statistics.place import PlaceFinder
from keyhop.report.statistics.sort_key import SortKey
from keyhop.report.statistics.window import LengthProber
from keyhop.scan.page_size import FILL

MOST_PER_BLOCK = 100
"""Items of a window: more tell little more of a length, and take longer to send."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What is known of a collection. whole: all items were read. weights: for how many items each
    of `items` stands; none if each stands for itself alone.
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
        """Of an item; 0 of none."""
        whole = sum(weight for _, weight in self.weighted)
        return sum(weight * size_of(item) for item, weight in self.weighted) / whole if whole else 0


def probe(
    space: KeySpace,
    key: Key,
    mean: float,
    ours: Sequence[Key],
    units: float,
    chance: random.Random,
    through: float = 0.0,
) -> Asks[Probed]:
    """The length of a collection of a table with a sort key, for about so many read units.

    mean: bytes of an item, roughly. ours: attributes that tell items of Keyhop's own. through: read
    units for which it is read from its beginning, if its sort keys are no numbers: it may end.
    """
    assert space.sort is not None
    sort = space.sort
    per_block = min(MOST_PER_BLOCK, max(1, int(FILL * BLOCK_BYTES / max(1.0, mean))))
    prober = LengthProber(chance, per_block, units)
    met: dict[SortKey, Item] = {}
    while (ask := prober.next()) is not None:
        at = None if ask.start is None else _value(ask.start, sort.type)
        answer = yield Ask.query(key, sort.name, at, ask.forward, ask.limit, beyond=not ask.forward)
        keys = [sort_key(item[sort.name]) for item in answer.items]
        met.update(zip(keys, answer.items, strict=True))
        prober.take(keys, answer.units)
    length = prober.estimate()
    weights = prober.weights()
    if math.isinf(length.high) and through * BLOCK_BYTES > mean * per_block:
        most = max(per_block, int(through / UNITS_PER_BLOCK * BLOCK_BYTES / max(1.0, mean)))
        answer = yield Ask.query(key, limit=most)
        read = {sort_key(item[sort.name]): item for item in answer.items}
        met.update(read)
        if answer.next is None:
            length = Estimate.exactly(float(len(read)), len(read), "read through")
        else:
            length = Estimate.at_least(float(len(met)), len(met), length.method)
        weights = [(at, 1.0) for at in met]
    own = {at for at, item in met.items() if any(has_values(item, one) for one in ours)}
    whole = length.level == 1.0
    if whole:
        length = Estimate.exactly(length.value - len(own), length.n - len(own), length.method)
    weighted = [(met[at], weight) for at, weight in weights if at not in own]
    return Probed(length, whole, [item for item, _ in weighted], [weight for _, weight in weighted])


def place(space: KeySpace, key: Key, bits: int) -> Asks[float]:
    """Where in [0, 1) the hash of a partition key lies, to `bits` bits: half a unit for each that a
    segment does not refuse.
    """
    start = key if space.sort is None else space.hop_from(key)
    finder = PlaceFinder(bits)
    while (segment := finder.next()) is not None:
        answer = yield Ask.scan(segment.segment, segment.total, start, limit=1, may_be_refused=True)
        finder.take(not answer.refused)
    return finder.place


def sort_key(value: TypedValue) -> SortKey:
    """As the statistics take it; of binary keys its hexadecimal digits, which sort alike."""
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
