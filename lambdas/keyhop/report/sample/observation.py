"""What is noted of an item that a sample has read: sizes, names and forms, and never a value. Pure.

An observation stands for `weight` items of its collection: 1 where the collection was read whole,
and in a window of a long one 1 / P of being drawn.
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
"""A number of seconds so large is in the year 5138: it is meant in milliseconds (from 1973 on)."""

DAY_SECONDS = 86_400.0
MOST_NAMES = 100
"""Attributes of an item that are noted."""


@dataclass(frozen=True, slots=True)
class Looking:
    """What is looked at in the items of a table. sort: the sort key's name. ttl: the attribute, if
    there is one. indexes: of each GSI, its key attributes, partition's first, and how many of those
    there are. now: epoch seconds. candidates: keys that the items might have.
    """

    shower: Shower
    now: float
    sort: str | None = None
    ttl: str | None = None
    indexes: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """names: of its attributes, sorted. tag, width: of its sort key (forms.py). ttl: days since it
    has expired, below 0 for days to go; "type" or "ms" for a value that TTL does not take for a
    time to come, None without the attribute. entries: of each GSI that it is in, the index key as
    it may be shown. candidates: digests of the keys that it might have, None where it cannot.
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
                for key in (one.of(item) for one in looking.candidates)
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """What there is of it, under short names: there are thousands."""
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
    """Whether an attribute is called as one that names an item's type."""
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
