"""What a stream record tells of one write: its cost, and what changed in the item. Pure.

Nothing here keeps a value: what is compared is forgotten, or kept as a hash.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.values import Key, same, size_of

WRITE_UNIT_BYTES = 1024
MOST_STATUSES = 20
"""Values of an attribute that is a status: of one with more, no transitions are kept."""
MOST_ATTRIBUTES = 100
LONGEST_STATUS = 40
RARE = 0.05
"""A transition is rare if it is so few of those that go the other way."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d")
_TTL = ("Service", "dynamodb.amazonaws.com")


def write_units(record: Mapping[str, Any]) -> float:
    """What the write cost the table: of the larger of both images, as far as the view has them; 1
    at least. An item that TTL deleted cost nothing. A transaction costs twice, and cannot be seen.
    """
    who = record.get("userIdentity") or {}
    kind = who.get("Type") or who.get("type"), who.get("PrincipalId") or who.get("principalId")
    if record["eventName"] == "REMOVE" and kind == _TTL:
        return 0.0
    told = record["dynamodb"]
    largest = max(size_of(told.get(image) or {}) for image in ("NewImage", "OldImage"))
    return float(max(1, math.ceil(largest / WRITE_UNIT_BYTES)))


def changed(old: Key, new: Key) -> list[str]:
    """Names of the attributes that differ."""
    return [
        name
        for name in old.keys() | new.keys()
        if name not in old or name not in new or not same(old[name], new[name])
    ]


def counted(old: Key, new: Key, names: Iterable[str]) -> str | None:
    """The one number that changed, if nothing else did but moments: what a counter's write does.

    names: see `changed`.
    """
    others = [name for name in names if not (is_moment(new, name) or is_moment(old, name))]
    if len(others) != 1:
        return None
    (name,) = others
    return name if "N" in new.get(name, {}) and "N" in old.get(name, {}) else None


def is_moment(item: Key, name: str) -> bool:
    """Whether an attribute looks like a date, or an epoch time in seconds or milliseconds."""
    value = item.get(name, {})
    if "S" in value:
        return bool(_MOMENT.match(value["S"]))
    if "N" not in value:
        return False
    number = float(value["N"])
    return 1e9 <= number < 2.2e9 or 1e12 <= number < 2.2e12


@dataclass(slots=True)
class Transitions:
    """How short texts change from one into another, by attribute; texts are kept as hashes."""

    _of: dict[str, Counter[tuple[int, int]] | None] = field(default_factory=dict)

    def take(self, old: Key, new: Key, names: Iterable[str]) -> None:
        """A change of an item. names: see `changed`."""
        for name in names:
            before, after = old.get(name, {}).get("S"), new.get(name, {}).get("S")
            if before is None or after is None or is_moment(new, name):
                continue
            if name not in self._of and len(self._of) >= MOST_ATTRIBUTES:
                continue
            seen = self._of.setdefault(name, Counter())
            if seen is None:
                continue
            pair = hash(before), hash(after)
            is_new = pair not in seen
            seen[pair] += 1
            if is_new and not self._is_status(seen, before, after):
                self._of[name] = None

    def _is_status(self, seen: Counter[tuple[int, int]], before: str, after: str) -> bool:
        values = {value for pair in seen for value in pair}
        return len(values) <= MOST_STATUSES and max(len(before), len(after)) <= LONGEST_STATUS

    def reversals(self) -> dict[str, tuple[int, int]]:
        """By attribute: its transitions, and those of them that go a way that is rare, where the
        other way is not.
        """
        return {
            name: (seen.total(), sum(_backwards(seen, pair) for pair in seen))
            for name, seen in self._of.items()
            if seen
        }


def _backwards(seen: Counter[tuple[int, int]], pair: tuple[int, int]) -> int:
    return seen[pair] if seen[pair] <= RARE * seen.get((pair[1], pair[0]), 0) else 0
