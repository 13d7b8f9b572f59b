"""The rows of a sample in a run's files: digests and derived figures, no keys. Pure.

A row is for one drawn segment: of the table, with its collections, or of an index, with the table's
keys in its entries.
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
    """One collection.

    Attributes:
        key: The key in the form that may be shown.
        form: The form of the key.
        items: The number of items that were read from its beginning.
        whole: Whether these are all.
        length: The probed length, if it is not whole.
        observations: The observations of its items.
        orphan: Whether the primary of a constraint is missing; None for another collection, or if
            it is not known.
    """

    key: Shown
    form: KeyForm
    items: int
    whole: bool
    length: Estimate | None = None
    observations: tuple[Observation, ...] = ()
    orphan: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON with short names."""
        return {
            "k": self.key,
            "f": self.form.to_json(),
            "n": self.items,
            "e": self.whole,
            **({"l": self.length.to_json()} if self.length else {}),
            **({"p": self.orphan} if self.orphan is not None else {}),
            **(
                {"o": [observation.to_json() for observation in self.observations]}
                if self.observations
                else {}
            ),
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
    """A segment of the table, read to its end.

    Attributes:
        number: The number of the segment.
        probed: Whether its collections with unread items were probed for their lengths.
        collections: Its collections.
    """

    number: int
    probed: bool
    collections: tuple[CollectionRow, ...] = ()


@dataclass(frozen=True, slots=True)
class DrawRow:
    """A segment of an index.

    Attributes:
        index: The name of the index.
        number: The number of the segment.
        segments: The number of segments of the index.
        whole: Whether it was read to its end.
        keys: The number of entries by key of the table.
        entries: The number of entries by key of the index.
    """

    index: str
    number: int
    segments: int
    whole: bool
    keys: Mapping[Shown, int] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """Return the number of entries that were read."""
        return sum(self.keys.values())


Row = SegmentRow | DrawRow


def to_key(row: Row) -> Key:
    """Return a row in the form of a key, as jobs store rows."""
    state: dict[str, Any]
    if isinstance(row, SegmentRow):
        state = {
            "segment": row.number,
            "probed": row.probed,
            "collections": [collection.to_json() for collection in row.collections],
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
    """Reverse `to_key`."""
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
    """Yield the rows in the keys that a run lists."""
    return map(from_key, keys)
