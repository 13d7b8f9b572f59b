"""Constraint items, such as unique#email#x@example.org, and whether their primary exists. Pure.

Such an item names its primary's key in one of its attributes: by a value with a type tag, or in an
attribute whose name means a reference. If the primary does not exist, it may have been deleted
without its constraint, which then blocks the value forever.
"""

import re
from collections.abc import Sequence

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, Key
from keyhop.report.forms import tag_of
from keyhop.report.sample.asks import Ask, Asks

TAGS = frozenset({"unique", "uniq", "uniqueness", "constraint"})
_TYPE = re.compile(r"_*(entity[_-]?)?(type|kind)_*", re.IGNORECASE)
_REFERS = re.compile(r"(owner|primary|parent|ref|target|entity|belongs)([_-]?\w*)?", re.IGNORECASE)

MOST_LOOKED_FOR = 3
"""The maximum number of primaries to look up for one item, at half a unit each."""


def is_constraint(key: Key, items: Sequence[Item] = (), sort: str = "") -> bool:
    """Return whether a collection is a constraint.

    The type tag of its key shows it, or its first item does: in its sort key, or in an attribute
    that names the type.

    Args:
        key: The partition key.
        items: Its first items.
        sort: The name of the sort key.
    """
    if any("S" in value and tag_of(value["S"]).lower() in TAGS for value in key.values()):
        return True
    return any(
        value.get("S", "").lower() in TAGS
        for item in items[:1]
        for name, value in item.items()
        if name == sort or _TYPE.fullmatch(name)
    )


def is_orphan(space: KeySpace, key: Key, items: Sequence[Item]) -> Asks[bool | None]:
    """Return whether none of the primaries that a constraint names exists.

    None if the constraint names no primary.
    """
    (partition,) = space.partition
    named = list(
        dict.fromkeys(
            value["S"]
            for item in items[:1]
            for name, value in item.items()
            if "S" in value and _may_name_a_key(name, value["S"], space)
        )
    )[:MOST_LOOKED_FOR]
    if partition.type != "S" or not named:
        return None
    for value in named:
        answer = yield Ask.query({partition.name: {"S": value}}, limit=1)
        if answer.items:
            return False
    return True


def _may_name_a_key(name: str, value: str, space: KeySpace) -> bool:
    keys = {*space.names, space.sort.name if space.sort else ""}
    if name in keys or not value or len(value.encode()) > 2_048:
        return False
    tag = tag_of(value).lower()
    return bool(tag and tag not in TAGS) or bool(_REFERS.fullmatch(name))
