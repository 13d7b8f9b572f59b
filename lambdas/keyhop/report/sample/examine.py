"""The requests for one drawn segment, and its row. Pure: it uses asks and answers (asks.py)."""

import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, Key, size_of
from keyhop.report.estimate import Estimate
from keyhop.report.forms import KeyForm
from keyhop.report.sample.asks import Ask, Asks
from keyhop.report.sample.constraints import is_constraint, is_orphan
from keyhop.report.sample.lengths import probe
from keyhop.report.sample.observation import Looking, Observation
from keyhop.report.sample.rows import CollectionRow, DrawRow, SegmentRow
from keyhop.report.sample.walk import is_ours, walk

PROBE_UNITS = 4.0
"""The read units of one length of many: its error matters less than how lengths differ."""

THROUGH_UNITS = 6.0
"""The read units of a collection with sort keys that are not numbers: they read 48 KB, and most
collections are shorter."""

DRAW_PAGES = 3
"""The maximum number of pages of a segment of an index, which should hold one."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The settings by which the segments of one table are read.

    Attributes:
        segments: The number of segments of the table.
        looking: The settings of observations.
        ours: The attributes that identify items of Keyhop.
        probe_units: The read units of one length.
        seed: The seed of random places.
        noted: The share of the segments whose items are observed.
        through: Whether every item is read.
    """

    space: KeySpace
    segments: int
    looking: Looking
    ours: tuple[Key, ...] = ()
    probe_units: float = PROBE_UNITS
    seed: str = ""
    noted: float = 1.0
    through: bool = False

    def segment(self, number: int, probed: bool) -> Asks[SegmentRow]:
        """Read a segment of the table.

        Args:
            number: The number of the segment.
            probed: Whether collections with unread items are probed for their lengths.
        """
        hop = self.space.sort is not None and not self.through
        collections = yield from walk(self.space, number, self.segments, self.ours, hop)
        rows: list[CollectionRow] = []
        is_observed = probed and random.Random(f"{self.seed} {number}").random() < self.noted
        for collection in collections:
            length = None
            is_whole, weighted = not collection.cut, [(item, 1.0) for item in collection.items]
            # If only an item of Keyhop was read, the key may not exist.
            if collection.cut and (probed or not collection.items):
                units = self.probe_units if probed else 0.0
                chance = random.Random(f"{self.seed} {number} {len(rows)}")
                mean = statistics.fmean(map(size_of, collection.items or [{}]))
                probed_collection = yield from probe(
                    self.space, collection.key, mean, self.ours, units, chance, THROUGH_UNITS
                )
                length, is_whole, weighted = (
                    probed_collection.length,
                    probed_collection.whole,
                    probed_collection.weighted,
                )
            if not weighted:
                continue
            row = self._row(collection.key, is_whole, length, weighted, is_observed)
            sort = self.space.sort.name if self.space.sort else ""
            if probed and is_constraint(collection.key, collection.items, sort):
                orphan = yield from is_orphan(self.space, collection.key, collection.items)
                row = replace(row, orphan=orphan)
            rows.append(row)
        return SegmentRow(number, probed, tuple(rows))

    def _row(
        self,
        key: Key,
        is_whole: bool,
        length: Estimate | None,
        weighted: Sequence[tuple[Item, float]],
        is_observed: bool,
    ) -> CollectionRow:
        observations: tuple[Observation, ...] = ()
        if is_observed:
            observations = tuple(
                Observation.of(item, self.looking, weight) for item, weight in weighted
            )
        return CollectionRow(
            key=self.looking.shower.shown(key),
            form=KeyForm.of(key[min(key)]),
            items=len(weighted),
            whole=is_whole,
            length=None if is_whole else length,
            observations=observations,
        )

    def draw(self, index: str, number: int, segments: int, names: Sequence[str]) -> Asks[DrawRow]:
        """Read a segment of an index.

        Args:
            index: The name of the index.
            number: The number of the segment.
            segments: The number of segments of the index.
            names: The attributes of its partition key.
        """
        show = self.looking.shower.shown
        items, is_whole = yield from self._read(index, number, segments)
        keys = Counter(show(self.space.partition_of(item)) for item in items)
        entries = Counter(show({name: item[name] for name in names}) for item in items)
        return DrawRow(index, number, segments, is_whole, dict(keys), dict(entries))

    def entries(self, index: str, number: int, segments: int) -> Asks[Sequence[Item]]:
        """Read the entries of an index's segment that `draw` reads."""
        items, _ = yield from self._read(index, number, segments)
        return items

    def _read(self, index: str, number: int, segments: int) -> Asks[tuple[list[Item], bool]]:
        """Read entries of an index's segment, and return whether those are all."""
        items: list[Item] = []
        start: Key | None = None
        for _ in range(DRAW_PAGES):
            answer = yield Ask.scan(number, segments, start, index)
            items += [item for item in answer.items if not is_ours(item, self.ours)]
            start = answer.next
            if start is None:
                return items, True
        return items, False
