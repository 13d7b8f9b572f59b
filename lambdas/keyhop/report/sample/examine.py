"""What is read for one drawn segment, to its row. Pure: asks, and gets answers (asks.py)."""

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
"""For one length of many: its own error matters less than how lengths differ."""

THROUGH_UNITS = 6.0
"""For a collection whose sort keys are no numbers: most are shorter than the 48 KB that this reads.
"""

DRAW_PAGES = 3
"""Of a segment of an index, which should hold one."""


@dataclass(frozen=True, slots=True)
class Examination:
    """How the segments of one table are looked at. segments: into which it is divided. ours:
    attributes that tell items of Keyhop's own. probe_units: for one length. seed: of places. noted:
    share of the segments of whose items something is noted. through: whether all items are read.
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
        """A segment of the table. probed: whether cut collections are probed for their lengths."""
        hop = self.space.sort is not None and not self.through
        seen = yield from walk(self.space, number, self.segments, self.ours, hop)
        rows: list[CollectionRow] = []
        noted = probed and random.Random(f"{self.seed} {number}").random() < self.noted
        for one in seen:
            length = None
            whole, weighted = not one.cut, [(item, 1.0) for item in one.items]
            # Where nothing but an item of Keyhop's was seen, there may be no key at all.
            if one.cut and (probed or not one.items):
                units = self.probe_units if probed else 0.0
                chance = random.Random(f"{self.seed} {number} {len(rows)}")
                mean = statistics.fmean(map(size_of, one.items or [{}]))
                found = yield from probe(
                    self.space, one.key, mean, self.ours, units, chance, THROUGH_UNITS
                )
                length, whole, weighted = found.length, found.whole, found.weighted
            if not weighted:
                continue
            row = self._row(one.key, whole, length, weighted, noted)
            sort = self.space.sort.name if self.space.sort else ""
            if probed and is_constraint(one.key, one.items, sort):
                orphan = yield from is_orphan(self.space, one.key, one.items)
                row = replace(row, orphan=orphan)
            rows.append(row)
        return SegmentRow(number, probed, tuple(rows))

    def _row(
        self,
        key: Key,
        whole: bool,
        length: Estimate | None,
        weighted: Sequence[tuple[Item, float]],
        noted: bool,
    ) -> CollectionRow:
        observations: tuple[Observation, ...] = ()
        if noted:
            observations = tuple(
                Observation.of(item, self.looking, weight) for item, weight in weighted
            )
        return CollectionRow(
            key=self.looking.shower.shown(key),
            form=KeyForm.of(key[min(key)]),
            items=len(weighted),
            whole=whole,
            length=None if whole else length,
            observations=observations,
        )

    def draw(self, index: str, number: int, segments: int, names: Sequence[str]) -> Asks[DrawRow]:
        """A segment of an index; names: of its partition key's attributes."""
        shown = self.looking.shower.shown
        items, whole = yield from self._read(index, number, segments)
        keys = Counter(shown(self.space.partition_of(item)) for item in items)
        entries = Counter(shown({name: item[name] for name in names}) for item in items)
        return DrawRow(index, number, segments, whole, dict(keys), dict(entries))

    def entries(self, index: str, number: int, segments: int) -> Asks[Sequence[Item]]:
        """Those of an index's segment that `draw` reads."""
        items, _ = yield from self._read(index, number, segments)
        return items

    def _read(self, index: str, number: int, segments: int) -> Asks[tuple[list[Item], bool]]:
        """Entries of an index's segment, and whether those are all."""
        items: list[Item] = []
        start: Key | None = None
        for _ in range(DRAW_PAGES):
            answer = yield Ask.scan(number, segments, start, index)
            items += [item for item in answer.items if not is_ours(item, self.ours)]
            start = answer.next
            if start is None:
                return items, True
        return items, False
