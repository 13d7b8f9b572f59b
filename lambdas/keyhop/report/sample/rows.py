"""What a sample leaves in a run's files: digests and figures that were derived, no key. Pure.

A row is of one drawn segment: of the table, with its collections, or of an index, with the table's
keys that its entries carry.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.values import Key
from keyhop.report.estimate import Estimate
from keyhop.report.facts import Shown
from keyhop.report.facts_json import estimate_of
from keyhop.report.forms import KeyForm
from keyhop.report.sample.observation import Observation

ROW = "row"


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """One collection. items: that were seen from its beginning on; whole: those are all. length:
    as probed, if it is not whole. orphan: of a constraint, whether its primary is missing; None for
    another collection, and if that could not be told.
    """

    key: Shown
    form: KeyForm
    items: int
    whole: bool
    length: Estimate | None = None
    observations: tuple[Observation, ...] = ()
    orphan: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """By short names."""
        return {
            "k": self.key,
            "f": self.form.to_json(),
            "n": self.items,
            "e": self.whole,
            **({"l": self.length.to_json()} if self.length else {}),
            **({"p": self.orphan} if self.orphan is not None else {}),
            **({"o": [one.to_json() for one in self.observations]} if self.observations else {}),
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "CollectionRow":
        return cls(
            state["k"],
            KeyForm.from_json(state["f"]),
            state["n"],
            state["e"],
            estimate_of(state["l"]) if "l" in state else None,
            tuple(map(Observation.from_json, state.get("o", ()))),
            state.get("p"),
        )


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment of the table, read to its end. probed: whether the collections in it that are not
    whole were probed for their lengths.
    """

    number: int
    probed: bool
    collections: tuple[CollectionRow, ...] = ()


@dataclass(frozen=True, slots=True)
class DrawRow:
    """A segment of an index, of `segments`. whole: read to its end. keys: of the table, and how
    many of the entries read belong to each; entries: the same of the index's own keys.
    """

    index: str
    number: int
    segments: int
    whole: bool
    keys: Mapping[Shown, int] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """Entries that were read."""
        return sum(self.keys.values())


Row = SegmentRow | DrawRow


def to_key(row: Row) -> Key:
    """As the skeleton takes rows: with the form of a key."""
    state: dict[str, Any]
    if isinstance(row, SegmentRow):
        state = {
            "segment": row.number,
            "probed": row.probed,
            "collections": [one.to_json() for one in row.collections],
        }
    else:
        state = {
            "index": row.index,
            "segment": row.number,
            "of": row.segments,
            "whole": row.whole,
            "keys": dict(row.keys),
            "entries": dict(row.entries),
        }
    return {ROW: {"S": json.dumps(state, separators=(",", ":"), ensure_ascii=False)}}


def from_key(key: Key) -> Row:
    """The inverse of `to_key`."""
    state = json.loads(key[ROW]["S"])
    if "index" in state:
        return DrawRow(
            state["index"],
            state["segment"],
            state["of"],
            state["whole"],
            state["keys"],
            state["entries"],
        )
    collections = tuple(map(CollectionRow.from_json, state["collections"]))
    return SegmentRow(state["segment"], state["probed"], collections)


def rows_of(keys: Iterable[Key]) -> Iterable[Row]:
    """Rows, from the keys that a run lists."""
    return map(from_key, keys)
