"""The segments that a sample reads: the draw, the maximum cost of each kind, and their table. Pure.

The segments of the sampling run are the drawn ones: first those of the table whose collections are
probed, then those that are only counted, then those of indexes.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.scan.page_size import FILL
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.scan.statistics import KEYS_PER_SAMPLE

Kind = Literal["probe", "count", "draw"]

SHARES: Mapping[Kind, float] = {"probe": 0.44, "count": 0.16, "draw": 0.33}
"""The shares of the read units. Lengths cost most: 2,000 units give about 350 of them. The rest is
for a second look at the largest collections (report/sampling.py)."""

SHARES_WITHOUT_INDEX: Mapping[Kind, float] = {"probe": 0.68, "count": 0.3, "draw": 0.0}
LEAST_UNITS: Mapping[Kind, float] = {"probe": 1.5, "count": 1.5, "draw": 0.5}
"""The minimum cost of a segment, which limits the draw to what the units can pay."""

USUAL_UNITS: Mapping[Kind, float] = {"probe": 34.0, "count": 4.0, "draw": 1.0}
"""The assumed cost of a segment until some were read: those that end first are the cheapest."""

THROUGH: Mapping[Kind, float] = {"probe": 1.0, "count": 0.0, "draw": 0.0}
"""The shares of a sample that reads every item, where indexes have nothing to add."""

UNITS_PER_SEGMENT = 8.0
"""The read units of a segment of a sample that reads every item."""

ROOM = 1.25
"""The factor by which a table may be larger than reported, as its size is up to six hours old."""

FEWEST_SEGMENTS = 20
"""The least number of segments to pay for: in a table of large items they have fewer keys."""

ENTRIES_PER_DRAW = 20
"""The entries of a drawn segment of an index: a block of them, if they have 200 bytes."""

MOST_DRAWN = 4_000
"""The maximum number of drawn segments of a kind."""


@dataclass(frozen=True, slots=True)
class Population:
    """The table from which a sample was drawn, as DescribeTable reports it.

    Attributes:
        segments: The number of segments into which the table was divided.
        items: The number of items of the table; 0 if it is not known. It is up to six hours old.
        bytes: The size of all items; 0 if it is not known. It is as old.
        has_sort: Whether a collection can have more than one item.
        ttl: The TTL attribute, if there is one.
        indexes: The number of entries of each GSI; 0 if it is not known.
        candidates: The templates of keys that the items might have.
        has_sentinels: Whether each collection has an item of Keyhop, which `items` counts and the
            sample leaves out.
        all_units: The read units with which a sample reads every item; 0 if that is not known.
    """

    segments: int
    items: int
    has_sort: bool = True
    ttl: str | None = None
    indexes: Mapping[str, int] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()
    bytes: float = 0.0
    has_sentinels: bool = False
    all_units: float = 0.0

    @property
    def mean_bytes(self) -> float:
        """Return the mean size of an item; 0 if it is not known."""
        return self.bytes / self.items if self.items else 0.0


@dataclass(frozen=True, slots=True)
class IndexDraws:
    """Segments drawn from an index.

    Attributes:
        index: The name of the index.
        names: The attributes of its partition key.
        segments: The number of segments of the index.
        numbers: The drawn segments.
    """

    index: str
    names: tuple[str, ...]
    segments: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The segments that a sample reads.

    Attributes:
        segments: The number of segments of the table.
        probed: The segments whose collections are probed.
        counted: The segments that are only counted.
        indexes: The segments of indexes.
        shares: The shares of the read units; None without a limit, when every segment is read.
        through: Whether every item of the segments is read.
    """

    segments: int
    probed: tuple[int, ...]
    counted: tuple[int, ...]
    indexes: tuple[IndexDraws, ...]
    shares: Mapping[Kind, float] | None
    through: bool = False

    @property
    def size(self) -> int:
        """Return the number of segments of the run."""
        return (
            len(self.probed) + len(self.counted) + sum(len(index.numbers) for index in self.indexes)
        )

    def kind(self, number: int) -> Kind:
        """Return the kind of a segment of the run."""
        if number < len(self.probed):
            return "probe"
        return "count" if number < len(self.probed) + len(self.counted) else "draw"

    def of_table(self, number: int) -> int:
        """Return the table's segment for a segment of the run."""
        first = len(self.probed)
        return self.probed[number] if number < first else self.counted[number - first]

    def of_index(self, number: int) -> tuple[IndexDraws, int]:
        """Return the index and its segment for a segment of the run."""
        offset = number - len(self.probed) - len(self.counted)
        for index in self.indexes:
            if offset < len(index.numbers):
                return index, index.numbers[offset]
            offset -= len(index.numbers)
        raise IndexError(number)


def draw(
    keys: float,
    units: float | None,
    indexes: Mapping[str, tuple[Sequence[str], int]],
    chance: random.Random,
    page_units: float = UNITS_PER_BLOCK,
) -> Drawing:
    """Draw the segments to read.

    Args:
        keys: The approximate number of keys of the table.
        units: The maximum read units; None for no limit.
        indexes: The names of the partition key and the number of items of each index to draw from.
        chance: The random numbers.
        page_units: The cost of a page of one item.
    """
    shares = SHARES if indexes else SHARES_WITHOUT_INDEX
    keys_per_segment = float(KEYS_PER_SAMPLE)
    if units is not None:
        keys_per_segment = max(
            1.0, min(keys_per_segment, units * shares["probe"] / FEWEST_SEGMENTS / page_units)
        )
    segments = min(MOST_SEGMENTS, max(1, round(keys / keys_per_segment)))
    of_indexes = tuple(
        _draws(index, tuple(names), items, units, len(indexes), chance)
        for index, (names, items) in indexes.items()
    )
    if units is None:
        return Drawing(segments, tuple(range(segments)), (), of_indexes, None)
    probed = _most("probe", units * shares["probe"])
    counted = _most("count", units * shares["count"])
    chosen = chance.sample(range(segments), min(segments, probed + counted))
    if len(chosen) == segments:  # few enough to probe every segment
        return Drawing(segments, tuple(chosen), (), of_indexes, _all_probed(shares))
    return Drawing(segments, tuple(chosen[:probed]), tuple(chosen[probed:]), of_indexes, shares)


def draw_all(keys: float, units: float, all_units: float, chance: random.Random) -> Drawing | None:
    """Draw every segment if that costs less than a sample, so that every item is read.

    The order is random: if the table has grown since its size was reported, the segments that the
    units suffice for are a sample.

    Args:
        keys: The approximate number of keys of the table.
        units: The maximum read units.
        all_units: The read units of all items, as reported; 0 if the size is not known.
        chance: The random numbers.

    Returns:
        The drawing; None if a sample costs less.
    """
    if not 0 < units_to_read_through(all_units) <= units:
        return None
    fewest = min(FEWEST_SEGMENTS, max(1, round(keys / KEYS_PER_SAMPLE)))
    segments = _segments_to_read_through(all_units, fewest)
    numbers = tuple(chance.sample(range(segments), segments))
    return Drawing(segments, numbers, (), (), THROUGH, through=True)


def units_to_read_through(all_units: float) -> float:
    """Return the read units with which `draw_all` reads every item; 0 if the size is not known."""
    if not all_units:
        return 0.0
    ends = UNITS_PER_BLOCK * _segments_to_read_through(all_units, FEWEST_SEGMENTS)
    return math.ceil(ROOM * (all_units / FILL + ends))


def _segments_to_read_through(all_units: float, fewest: int) -> int:
    return min(MOST_SEGMENTS, max(fewest, round(all_units / UNITS_PER_SEGMENT)))


def _all_probed(shares: Mapping[Kind, float]) -> Mapping[Kind, float]:
    return {"probe": shares["probe"] + shares["count"], "count": 0.0, "draw": shares["draw"]}


def _draws(
    index: str,
    names: tuple[str, ...],
    items: int,
    units: float | None,
    indexes: int,
    chance: random.Random,
) -> IndexDraws:
    segments = min(MOST_SEGMENTS, max(1, round(items / ENTRIES_PER_DRAW)))
    maximum = MOST_DRAWN if units is None else _most("draw", units * SHARES["draw"] / indexes)
    return IndexDraws(
        index, names, segments, tuple(chance.sample(range(segments), min(segments, maximum)))
    )


def _most(kind: Kind, units: float) -> int:
    return max(1, min(MOST_DRAWN, int(units / LEAST_UNITS[kind])))
