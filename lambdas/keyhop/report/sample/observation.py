"""The observation of an item in a sample: sizes, names and forms, and never a value. Pure.

An observation represents `weight` items of its collection: 1 if the whole collection was read, and
1 / P of being drawn in a window of a long one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.values import Item, size_of
from keyhop.report.candidates.template import Candidate
from keyhop.report.forms import tag_of, width_of
from keyhop.report.shown import Shower

TYPE_NAMES = frozenset(
    {"type", "entitytype", "itemtype", "recordtype", "objecttype", "doctype", "typename", "entity"}
    | {"kind"}
)
"""Attributes that name an item's type, in lower case without marks."""

LEAST_MILLISECONDS = 1e11
"""Seconds of the year 5138: a larger number is in milliseconds (from 1973 on)."""

DAY_SECONDS = 86_400.0
MOST_NAMES = 100
"""The maximum number of attribute names of an observation."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The settings of observations of a table's items.

    Attributes:
        shower: The writer of keys.
        now: The time in epoch seconds.
        sort: The name of the sort key.
        ttl: The TTL attribute, if there is one.
        indexes: The key attributes of each GSI, the partition's first, and the number in the
            partition key.
        candidates: Keys that the items might have.
    """

    shower: Shower
    now: float
    sort: str | None = None
    ttl: str | None = None
    indexes: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of one item.

    Attributes:
        bytes: The size.
        names: The names of its attributes, sorted.
        weight: The number of items that it represents.
        tag: The tag of its sort key (forms.py).
        width: The width of its sort key (forms.py).
        ttl: The days since it expired, negative before that; "type" or "ms" for a value that TTL
            does not use as a future time; None without the attribute.
        entries: The index key, in the form that may be shown, of each GSI that contains the item.
        candidates: Digests of the keys that it might have; None where it cannot have one.
    """

    bytes: int
    names: tuple[str, ...]
    weight: float = 1.0
    tag: str = ""
    width: int = 0
    ttl: float | str | None = None
    entries: Mapping[str, str] = field(default_factory=dict)
    candidates: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, item: Item, looking: Looking, weight: float = 1.0) -> "Observation":
        sort = item.get(looking.sort, {}) if looking.sort else {}
        return cls(
            bytes=size_of(item),
            names=tuple(sorted(item)[:MOST_NAMES]),
            weight=weight,
            tag=tag_of(sort["S"]) if "S" in sort else "",
            width=width_of(sort),
            ttl=_ttl_of(item, looking),
            entries={
                index: looking.shower.shown({name: item[name] for name in names[:partition]})
                for index, (names, partition) in looking.indexes.items()
                if all(name in item for name in names)
            },
            candidates=tuple(
                None if key is None else looking.shower.digest({"candidate": {"S": key}})
                for key in (candidate.of(item) for candidate in looking.candidates)
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields with a value, under short names, as there are thousands."""
        state: dict[str, Any] = {"b": self.bytes, "a": list(self.names)}
        if self.weight != 1.0:
            state["w"] = round(self.weight, 6)
        if self.tag:
            state["t"] = self.tag
        if self.width:
            state["d"] = self.width
        if self.ttl is not None:
            state["l"] = self.ttl
        if self.entries:
            state["i"] = dict(self.entries)
        if self.candidates:
            state["c"] = list(self.candidates)
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Observation":
        return cls(
            state["b"],
            tuple(state["a"]),
            state.get("w", 1.0),
            state.get("t", ""),
            state.get("d", 0),
            state.get("l"),
            state.get("i", {}),
            tuple(state.get("c", ())),
        )


def is_type_name(name: str) -> bool:
    """Return whether an attribute has a name for an item's type."""
    return name.lower().replace("_", "").replace("-", "").strip("#$@") in TYPE_NAMES


def _ttl_of(item: Item, looking: Looking) -> float | str | None:
    if looking.ttl is None or looking.ttl not in item:
        return None
    value = item[looking.ttl]
    if "N" not in value:
        return "type"
    seconds = float(value["N"])
    if seconds >= LEAST_MILLISECONDS:
        return "ms"
    return round((looking.now - seconds) / DAY_SECONDS, 1)
