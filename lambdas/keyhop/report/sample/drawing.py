"""Which segments a sample reads: what is drawn, and what each kind may cost. Pure.

The segments of the run that samples are the drawn ones: first those of the table whose collections
are probed, then those that are only counted, then those of indexes.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.scan.statistics import KEYS_PER_SAMPLE

Kind = Literal["probe", "count", "draw"]

SHARES: Mapping[Kind, float] = {"probe": 0.45, "count": 0.15, "draw": 0.35}
"""Of the read units. Lengths are dearest: 3,000 units bring some 500. What is left over is for a
second look at the largest collections (report/second_look.py)."""

SHARES_WITHOUT_INDEX: Mapping[Kind, float] = {"probe": 0.7, "count": 0.25, "draw": 0.0}

LEAST_UNITS: Mapping[Kind, float] = {"probe": 1.5, "count": 1.5, "draw": 0.5}
"""Of a segment: so no more are drawn than could be paid."""

USUAL_UNITS: Mapping[Kind, float] = {"probe": 36.0, "count": 4.0, "draw": 1.0}
"""What a segment may well cost, until some were read: those that end first are the cheapest."""

FEWEST_SEGMENTS = 20
"""That should be paid: of a table of large items, segments of fewer keys."""

ENTRIES_PER_DRAW = 20
"""Entries that a drawn segment of an index should hold: a block of them, if they are 200 bytes."""

MOST_DRAWN = 4_000
"""Of a kind."""


@dataclass(frozen=True, slots=True)
class IndexDraws:
    """Segments drawn of an index that was divided into `segments`. names: of its partition key."""

    index: str
    names: tuple[str, ...]
    segments: int
    drawn: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """segments: into which the table is divided. probed, counted: which of them are read so.
    shares: of what may be read, None for no limit. all: each segment of the table is read.
    """

    segments: int
    probed: tuple[int, ...]
    counted: tuple[int, ...]
    indexes: tuple[IndexDraws, ...]
    shares: Mapping[Kind, float] | None

    @property
    def size(self) -> int:
        """Segments of the run."""
        return len(self.probed) + len(self.counted) + sum(len(one.drawn) for one in self.indexes)

    def kind(self, number: int) -> Kind:
        """Of a segment of the run."""
        if number < len(self.probed):
            return "probe"
        return "count" if number < len(self.probed) + len(self.counted) else "draw"

    def of_table(self, number: int) -> int:
        """The table's segment that a segment of the run stands for."""
        first = len(self.probed)
        return self.probed[number] if number < first else self.counted[number - first]

    def of_index(self, number: int) -> tuple[IndexDraws, int]:
        """The same of an index's."""
        left = number - len(self.probed) - len(self.counted)
        for one in self.indexes:
            if left < len(one.drawn):
                return one, one.drawn[left]
            left -= len(one.drawn)
        raise IndexError(number)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "segments": self.segments,
            "probed": list(self.probed),
            "counted": list(self.counted),
            "indexes": [
                [one.index, list(one.names), one.segments, list(one.drawn)] for one in self.indexes
            ],
            "shares": None if self.shares is None else dict(self.shares),
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Drawing":
        return cls(
            state["segments"],
            tuple(state["probed"]),
            tuple(state["counted"]),
            tuple(
                IndexDraws(index, tuple(names), segments, tuple(drawn))
                for index, names, segments, drawn in state["indexes"]
            ),
            state["shares"],
        )


def draw(
    keys: float,
    units: float | None,
    indexes: Mapping[str, tuple[Sequence[str], int]],
    chance: random.Random,
    page_units: float = UNITS_PER_BLOCK,
) -> Drawing:
    """keys: how many the table has, roughly. units: that may be read; None for everything that
    there is. indexes: of each to draw from, the names of its partition key, and its items.
    page_units: what a page of one item costs.
    """
    shares = SHARES if indexes else SHARES_WITHOUT_INDEX
    each = float(KEYS_PER_SAMPLE)
    if units is not None:
        each = max(1.0, min(each, units * shares["probe"] / FEWEST_SEGMENTS / page_units))
    segments = min(MOST_SEGMENTS, max(1, round(keys / each)))
    of_indexes = tuple(
        _draws(index, tuple(names), items, units, len(indexes), chance)
        for index, (names, items) in indexes.items()
    )
    if units is None:
        return Drawing(segments, tuple(range(segments)), (), of_indexes, None)
    probed = _most("probe", units * shares["probe"])
    counted = _most("count", units * shares["count"])
    chosen = chance.sample(range(segments), min(segments, probed + counted))
    if len(chosen) == segments:  # few enough to look at all of them alike
        return Drawing(segments, tuple(chosen), (), of_indexes, _all_probed(shares))
    return Drawing(segments, tuple(chosen[:probed]), tuple(chosen[probed:]), of_indexes, shares)


def reads_through(drawing: Drawing, units: float | None, all_units: float) -> bool:
    """Whether every item may be read, instead of what shows each collection.

    units: that may be read; all_units: what all items take. Then shares are counts. Of twice as
    much at most: the size that is told is up to six hours old.
    """
    if units is None or drawing.shares is None or len(drawing.probed) < drawing.segments:
        return False
    return (
        2 * (all_units + LEAST_UNITS["draw"] * drawing.segments) <= units * drawing.shares["probe"]
    )


def units_to_read_through(
    segments: int, all_units: float, shares: Mapping[Kind, float] | None
) -> float:
    """Return the read units with which `reads_through` lets a sample read every item.

    Args:
        segments: Into how many segments the table is divided. All of them must be probed.
        all_units: What reading all items costs.
        shares: The shares of a drawing; None for those of a table with indexes.
    """
    probe = _all_probed(SHARES)["probe"] if shares is None else shares["probe"]
    return math.ceil(2 * (all_units + LEAST_UNITS["draw"] * segments) / probe)


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
    most = MOST_DRAWN if units is None else _most("draw", units * SHARES["draw"] / indexes)
    return IndexDraws(
        index, names, segments, tuple(chance.sample(range(segments), min(segments, most)))
    )


def _most(kind: Kind, units: float) -> int:
    return max(1, min(MOST_DRAWN, int(units / LEAST_UNITS[kind])))
